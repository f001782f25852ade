"""as_series on containers of pandas."""

from __future__ import annotations

import numpy as np
import pytest

from slts.errors import DataError
from slts.series import as_series

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")


def test_other_frames_and_series_of_pandas_are_lists_of_series():
    X = np.arange(6.0).reshape(2, 3)
    assert as_series(pd.DataFrame(X)) == as_series(X)
    for several in (
        [pd.Series([1, 2]), pd.Series([3.0])],
        pd.Series([np.zeros((2, 2)), np.zeros((2, 1))]),
    ):
        assert as_series(several).lengths.tolist() == [2, 1]


def test_other_pandas_containers_and_infinite_values_are_errors():
    index = pd.MultiIndex.from_product([[0, 1], [0, 1, 2]])
    frame = pd.DataFrame({"x": np.arange(6.0)}, index=index)
    with pytest.raises(DataError, match=r"X has an index of several levels.*reset_index"):
        as_series(frame)
    with pytest.raises(DataError, match=r"series 0 is a data frame: pass x\.to_numpy"):
        as_series([frame])
    table = pd.DataFrame({"id": [0, 0, 1, 1], "t": [0, 1, 0, 1], "x": [0.0, 1.0, 2.0, np.inf]})
    with pytest.raises(DataError, match="infinite"):
        as_series(table, id="id", time="t", channels=["x"])
