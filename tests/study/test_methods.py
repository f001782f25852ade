import numpy as np
import pytest

import slts
from study.methods import ADAPTERS, METHODS, warm_up


# Numba warns while it compiles the peers, which it does once per machine.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [
    "minirocket", "multirocket", "1nn-dtw",
    *(pytest.param(n, marks=pytest.mark.slow) for n in ("multirocket-hydra", "quant", "rdst")),
])  # fmt: skip
def test_peers_take_ragged_series(name, rng):
    for package in ADAPTERS[name].packages:
        pytest.importorskip(package)
    warm_up(name)
    y = np.arange(12) % 2
    X = slts.as_series([rng.normal(size=(2, 10 + k)) + 3.0 * (k % 2) for k in range(12)])
    adapter = ADAPTERS[name]
    train, test = adapter.prepare(X[:8], X[8:])
    model = adapter.model({}, 0).fit(train, y[:8])
    assert model.predict(test).tolist() == y[8:].tolist()
    assert adapter.size(model) >= 2 * sum(10 + k for k in range(8))


def test_series_are_padded_to_the_longest_of_both_parts(rng):
    short, long = (slts.as_series([rng.normal(size=(2, n))]) for n in (4, 7))
    train, test = ADAPTERS["minirocket"].prepare(short, long)
    assert train.shape == test.shape == (1, 2, 7)
    assert (train[0, :, 4:] == 0).all()
    assert train[0, :, :4] == pytest.approx(short[0])


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_our_classifiers_have_the_parameters_of_their_variants(method):
    if not ADAPTERS[method.adapter].packages:
        model = ADAPTERS[method.adapter].model(dict(method.parameters), 0)
        assert model.get_params().items() >= dict(method.parameters).items()
