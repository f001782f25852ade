"""Products by SciPy's BLAS."""

import itertools
import sys
from types import ModuleType

import numpy as np
import pytest

from slts.learning.blas import matmul


@pytest.mark.parametrize("sizes", [(3, 4, 5), (1, 4, 1), (0, 4, 5), (3, 0, 5)])
def test_products_are_those_of_numpy_in_every_layout(rng, sizes):
    n, k, m = sizes
    layouts = (np.ascontiguousarray, np.asfortranarray, lambda a: np.repeat(a, 2, axis=1)[:, ::2])
    a, b = rng.normal(size=(n, k)), rng.normal(size=(k, m))
    for first, second in itertools.product(layouts, layouts):
        np.testing.assert_allclose(matmul(first(a), second(b)), a @ b, atol=1e-12)


def test_cupy_that_another_thread_imports_has_no_arrays_yet(rng, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", ModuleType("cupy"))
    a, b = rng.normal(size=(2, 3)), rng.normal(size=(3, 4))
    np.testing.assert_allclose(matmul(a, b), a @ b)
