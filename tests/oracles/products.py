"""Aligned products, written as plainly as possible: a loop over pairs, phases and steps.

Rows of series and landmarks are (time, channels) arrays. Everything is float64.
"""

import numpy as np

from tests.oracles import dtw


def features(rows, landmarks, feature_map):
    """Sums over the landmarks of each bank: (series, banks, phases, d, r)."""
    out = np.zeros((len(rows), len(feature_map.weights), *_shape(landmarks, feature_map)))
    for i, j, pairs in _aligned(rows, landmarks, feature_map):
        for p, q, share in pairs:
            phase = q * feature_map.n_phases // len(landmarks[j])
            product = np.outer(rows[i][p], _directed(landmarks[j][q], feature_map))
            out[i, :, phase] += feature_map.weights[:, j, None, None] * share * product
    return out


def by_landmark(rows, landmarks, feature_map, coef):
    """Parts of the outputs, (series, outputs, landmarks); `coef` is (outputs, banks, ...)."""
    out = np.zeros((len(rows), len(coef), len(landmarks)))
    for i, j, pairs in _aligned(rows, landmarks, feature_map):
        for p, q, share in pairs:
            slopes = _slopes(landmarks[j], j, q, feature_map, coef)
            out[i, :, j] += share * slopes @ rows[i][p]
    return out


def attribution(x, landmarks, feature_map, coef):
    """What every row and channel adds: (outputs, rows, channels)."""
    out = np.zeros((len(coef), *x.shape))
    for _, j, pairs in _aligned([x], landmarks, feature_map):
        for p, q, share in pairs:
            out[:, p] += share * x[p] * _slopes(landmarks[j], j, q, feature_map, coef)
    return out


def _shape(landmarks, feature_map):
    d = landmarks[0].shape[1]
    r = d if feature_map.basis is None else feature_map.basis.shape[1]
    return feature_map.n_phases, d, r


def _directed(row, feature_map):
    return row if feature_map.basis is None else row @ feature_map.basis


def _slopes(landmark, j, q, feature_map, coef):
    """Factors of the channels of a row that is aligned with step q, (outputs, channels)."""
    phase = q * feature_map.n_phases // len(landmark)
    directed = _directed(landmark[q], feature_map)
    weights = feature_map.weights[:, j]
    if feature_map.bank_per_output:
        return weights[:, None] * (coef[:, 0, phase] @ directed)
    return np.einsum("b,cbdr,r->cd", weights, coef[:, :, phase], directed)


def _aligned(rows, landmarks, feature_map):
    """For each pair of series: aligned steps (p, q), and the share of a pair in the path."""
    settings = feature_map.settings
    for i, a in enumerate(rows):
        for j, b in enumerate(landmarks):
            path = dtw.align(a, b, settings.objective, settings.band).path
            yield i, j, [(p, q, 1.0 / len(path)) for p, q in path.tolist()]
