"""The training set: distinct series in the order of their keys, whatever the order of the data."""

from dataclasses import replace

import numpy as np
import pytest

import slts
from slts.series.keys import series_digests, series_keys
from tests.data import waves, with_copies
from tests.training.options import training_set


def counted(series, codes, weights):
    """Map (series, class) to its weight, as a loop over the data adds it up."""
    sums = {}
    for x, code, weight in zip(series, codes, weights, strict=True):
        if weight > 0.0:
            name = np.asarray(x).tobytes(), int(code)
            sums[name] = sums.get(name, 0.0) + weight
    return sums


def test_equal_series_of_a_class_are_one_with_all_their_weight():
    series, codes = with_copies(*waves(30, n_classes=3), every=5)
    # One of two equal series is of another class, and one series has no weight.
    codes[1], weights = (codes[0] + 1) % 3, np.arange(30.0) / 7
    data = training_set(series, codes, weights=weights, groups=np.arange(30) // 5)
    expected = counted(series, codes, weights)
    assert len(data) == len(expected) == 24 + 1 - 1
    assert counted(data.series, data.codes, data.weights) == pytest.approx(expected)
    assert data.totals == pytest.approx([weights[codes == c].sum() for c in range(3)])
    assert (data.n_series, data.n_steps) == (30, sum(x.shape[1] for x in series))
    assert (np.diff(data.keys.astype(object)) >= 0).all()
    np.testing.assert_array_equal(data.keys, series_keys(series_digests(data.series), 0))
    np.testing.assert_array_equal(data.digests, np.unique(series_digests(data.series)))
    # `indices` lead to the first of equal series, `positions` back.
    assert data.series == slts.as_series([series[i] for i in data.indices])
    np.testing.assert_array_equal(data.groups, data.indices // 5)
    assert data.positions[0] == -1
    np.testing.assert_array_equal(data.positions[data.indices], np.arange(len(data)))
    assert all(data.series[data.positions[i]].tolist() == series[i].tolist() for i in range(1, 30))


def test_the_order_of_the_data_does_not_matter():
    series, codes = with_copies(*waves(40, n_classes=2))
    order = np.random.default_rng(0).permutation(40)
    one = training_set(series, codes, weights=np.arange(1.0, 41.0))
    other = training_set([series[i] for i in order], codes[order], weights=order + 1.0)
    assert one.series == other.series
    for name in ("codes", "keys", "weights", "totals", "digests"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert training_set(series, codes, seed=1).keys.tolist() != one.keys.tolist()


def test_some_of_the_series_keep_the_share_of_each_class():
    data = training_set(*waves(30, n_classes=3), weights=np.linspace(0.5, 2.0, 30))
    rows = np.sort(data.shuffled(5)[:12])
    some = data.take(rows)
    assert some.series == data.series[rows]
    np.testing.assert_allclose(np.bincount(some.codes, some.weights), data.totals)
    for c in range(3):
        ratio = some.weights[some.codes == c] / data.weights[rows][some.codes == c]
        np.testing.assert_allclose(ratio, ratio[0])
    kept = some.positions >= 0
    np.testing.assert_array_equal(np.flatnonzero(kept), np.sort(data.indices[rows]))
    np.testing.assert_array_equal(some.indices[some.positions[kept]], np.flatnonzero(kept))


def test_positions_come_evenly_from_the_classes_in_an_order():
    data = training_set(np.arange(16.0).reshape(8, 1, 2), [0, 0, 0, 0, 0, 1, 1, 2])
    data = replace(data, codes=np.array([0, 0, 0, 0, 0, 1, 1, 2]))
    order = np.array([4, 3, 7, 2, 6, 5, 1, 0])
    assert data.evenly(3, order).tolist() == [4, 6, 7]
    assert data.evenly(5, order).tolist() == [3, 4, 5, 6, 7]
    assert data.evenly(3).tolist() == [0, 5, 7]
    for count in (8, 9):
        assert data.evenly(count, order).tolist() == list(range(8))


def test_every_purpose_has_its_own_order_of_the_same_series():
    data = training_set(np.arange(1000.0).reshape(500, 1, 2), np.arange(500) % 2)
    orders = [np.arange(500), *(data.shuffled(purpose) for purpose in range(4))]
    firsts = [set(order[:100].tolist()) for order in orders]
    # 20 of 100 are the same by chance.
    for k, one in enumerate(firsts):
        assert all(len(one & other) < 40 for other in firsts[:k])
    turned = replace(data, keys=data.keys[::-1]).shuffled(1)
    assert data.keys[::-1][turned].tolist() == data.keys[orders[2]].tolist()


def test_weights_of_classes():
    data = training_set(np.arange(16.0).reshape(8, 1, 2), [0] * 6 + [1] * 2)
    assert data.class_weights(None).tolist() == [1.0, 1.0]
    assert data.class_weights({1: 3.0}).tolist() == [1.0, 3.0]
    np.testing.assert_allclose(data.class_weights("balanced"), [8 / 12, 2.0])
    for wrong in ("foo", {0: float("nan")}, {9: 2.0, 0: 1.0}, {0: 0.0}, {0: -1.0}):
        with pytest.raises(ValueError, match="class"):
            data.class_weights(wrong)


def test_a_channel_without_values_gives_a_warning():
    X = np.stack([np.arange(12.0).reshape(4, 3), np.full((4, 3), np.nan)], axis=1)
    with pytest.warns(UserWarning, match="channel 1 has no value in any training series"):
        training_set(X, [0, 1, 0, 1]).check()
    X[2, 1, 2] = 0.0
    training_set(X, [0, 1, 0, 1]).check()


@pytest.mark.parametrize(
    ("labels", "shown"),
    [
        (["walk", "run", "walk ", "Walk", "sit"], "'Walk' and 'walk' and 'walk '"),
        ([f"{name}{k}" for k in range(8) for name in ("walk", "Walk")], "'walk4' and 3 more"),
        (["a", "A"], None),
    ],
)
def test_labels_that_may_be_the_same_class_give_a_warning(labels, shown):
    data = replace(
        training_set(np.arange(8.0).reshape(8, 1, 1), [0, 1] * 4), classes=np.unique(labels)
    )
    if shown is None:
        # Letters of both cases may be the classes.
        data.check()
        return
    with pytest.warns(UserWarning, match=shown):
        data.check()
