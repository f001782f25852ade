"""Steps of the local classifier: which series are taken, and how long they may be."""

import numpy as np

import slts
from slts.training import local_fit
from slts.training.local_fit import stratified


def test_positions_come_evenly_from_the_classes_in_the_given_order():
    codes = np.array([0, 0, 0, 0, 0, 1, 1, 2])
    order = np.array([4, 3, 7, 2, 6, 5, 1, 0])
    assert stratified(codes, 3, order).tolist() == [4, 6, 7]
    assert stratified(codes, 5, order).tolist() == [3, 4, 5, 6, 7]
    assert stratified(codes, 7, order).tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert stratified(codes, 8, order).tolist() == stratified(codes, 9, order).tolist()
    assert stratified(codes, 8, order).tolist() == list(range(8))


def test_series_are_averaged_until_the_alignments_fit_the_budget(monkeypatch):
    batch = slts.as_series([np.zeros((1, n)) for n in (100, 1000, 1000, 1000)])
    # Every series is aligned ten times: 40 alignments of (mean length)^2 cells.
    longest = {}
    for mean in (60, 775, 774, 500, 200):
        monkeypatch.setattr(local_fit, "_CELLS", 40.0 * mean**2)
        longest[mean] = local_fit._longest(batch, 10)
    assert longest[775] is None
    assert longest[60] == 128
    for mean in (774, 500, 200):
        # (100 + 3 n) / 4 is the mean length if n is the longest.
        most = (4 * mean - 100) / 3
        assert most - 4 <= longest[mean] <= most
    # The path of two series has a limit of its own.
    monkeypatch.setattr(local_fit, "_CELLS", np.inf)
    monkeypatch.setattr(local_fit, "_LONG", 512)
    assert 500 < local_fit._longest(batch, 10) <= 512
    monkeypatch.setattr(local_fit, "_LONG", 1000)
    assert local_fit._longest(batch, 10) is None
