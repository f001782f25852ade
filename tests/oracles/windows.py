"""Snippets, written as plainly as possible: no lanes, no tiles, no padding.

Series are (time, channels) arrays in the units of the data. Everything is float64.
"""

import numpy as np

_FLAT = 1e-2


def filled(x, snippets):
    """Interpolate gaps; a channel without any value has its mean over the training series."""
    columns, steps = [], np.arange(len(x))
    for column, mean in zip(x.T, snippets.scale.centre, strict=True):
        known = ~np.isnan(column)
        values = np.interp(steps, steps[known], column[known]) if known.any() else mean
        columns.append(np.broadcast_to(values, len(x)))
    return np.stack(columns, axis=1)


def distances(x, snippets, k):
    """Squared distance of snippet k to the window around every step, shape (steps,)."""
    scale, x = snippets.scale, filled(x, snippets)
    half = snippets.n_steps // 2
    dilation = min(snippets.dilations[k], len(x))
    around = dilation * (np.arange(snippets.n_steps) - half)
    width = dilation if snippets.averaged[k] else 1
    steps = np.arange(len(x))[:, None, None] + around[:, None] + np.arange(width) - (width - 1) // 2
    steps = np.clip(steps, 0, len(x) - 1)
    total = np.zeros(len(x))
    for channel, own in zip(snippets.channels_of(k), snippets.values_of(k), strict=True):
        own = (own - scale.centre[channel]) / scale.spread[channel]
        windows = (x[steps, channel].mean(axis=2) - scale.centre[channel]) / scale.spread[channel]
        if snippets.shape_only[k]:
            own, windows = bends(own), bends(windows)
        if snippets.by_strength[k]:
            own = own - own.mean()
            own = 100.0 * own / np.sqrt(np.sum(own**2) + _FLAT)
        total += np.sum((windows - own) ** 2, axis=1)
    return total


def bends(windows):
    """Second differences of unit mean square along the last axis; nearly zero if they are small."""
    result = windows[..., :-2] - 2 * windows[..., 1:-1] + windows[..., 2:]
    return result / np.sqrt(np.mean(result**2, axis=-1, keepdims=True) + _FLAT)


def counts(x, snippets):
    """Number of steps within each threshold, shape (snippets, thresholds)."""
    return np.array(
        [
            (distances(x, snippets, k)[:, None] <= snippets.thresholds[k]).sum(axis=0)
            for k in range(len(snippets))
        ]
    )


def features(series, snippets):
    """Shares of the steps, and counts relative to the longest: (series, snippets, ..., kinds)."""
    rows = []
    for x in series:
        occurrences = counts(x, snippets)
        kinds = [occurrences / len(x)]
        if snippets.longest is not None:
            kinds.append(occurrences / snippets.longest)
        rows.append(np.stack(kinds, axis=-1))
    return np.array(rows)


def attribution(x, snippets, coef):
    """What every step and channel adds, one window at a time: (problems, steps, channels).

    A step is compared with a mean step of the training series. Every observed value that a window
    sees in a channel gets the same share.
    """
    half = snippets.n_steps // 2
    terms = np.zeros((len(coef), *x.shape))
    divisors = [len(x)] if snippets.longest is None else [len(x), snippets.longest]
    for k in range(len(snippets)):
        near, channels = distances(x, snippets, k), snippets.channels_of(k)
        for i in range(len(x)):
            more = (near[i] <= snippets.thresholds[k]) - snippets.shares[k]
            added = (coef[:, k] * more[:, None] / divisors).sum(axis=(1, 2))
            dilation = min(snippets.dilations[k], len(x))
            width = dilation if snippets.averaged[k] else 1
            seen = {
                i + dilation * (s - half) + neighbour - (width - 1) // 2
                for s in range(snippets.n_steps)
                for neighbour in range(width)
            }
            for c in channels:
                observed = [s for s in seen if 0 <= s < len(x) and not np.isnan(x[s, c])]
                for step in observed:
                    terms[:, step, c] += added / (len(observed) * len(channels))
    return terms
