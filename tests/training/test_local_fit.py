"""Steps of the local classifier: which series are taken."""

import numpy as np

from slts.training.local_fit import stratified


def test_positions_come_evenly_from_the_classes_in_the_given_order():
    codes = np.array([0, 0, 0, 0, 0, 1, 1, 2])
    order = np.array([4, 3, 7, 2, 6, 5, 1, 0])
    assert stratified(codes, 3, order).tolist() == [4, 6, 7]
    assert stratified(codes, 5, order).tolist() == [3, 4, 5, 6, 7]
    assert stratified(codes, 7, order).tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert stratified(codes, 8, order).tolist() == stratified(codes, 9, order).tolist()
    assert stratified(codes, 8, order).tolist() == list(range(8))
