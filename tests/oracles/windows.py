"""Snippets, written as plainly as possible: no lanes, no tiles, no padding.

Series are (time, channels) arrays in the units of the data. Everything is float64.
The kernel compares thresholds in float32; `rounding` bounds how far it is off.
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
    for channel, own in zip(snippets.channels_of(k), compared(snippets, k), strict=True):
        windows = (x[steps, channel].mean(axis=2) - scale.centre[channel]) / scale.spread[channel]
        if snippets.shape_only[k]:
            windows = bends(windows)
        total += np.sum((windows - own) ** 2, axis=1)
    return total


def compared(snippets, k):
    """What is compared of the values of snippet k, a row for each channel."""
    own = snippets.channels_of(k)[:, None]
    values = (snippets.values_of(k) - snippets.scale.centre[own]) / snippets.scale.spread[own]
    if snippets.shape_only[k]:
        values = bends(values)
    if snippets.by_strength[k]:
        moves = values - values.mean(axis=1, keepdims=True)
        values = moves / np.sqrt(np.sum(moves**2, axis=1, keepdims=True) + _FLAT)
        values = 100.0 * values
    return values


def rounding(snippets, k):
    """Largest error of the kernel at the thresholds of snippet k, by which it raises them."""
    n = snippets.values_of(k).size
    size = np.sum(compared(snippets, k) ** 2) + snippets.thresholds[k]
    return np.finfo(np.float32).eps * (3 * n + 16) * size


def squares(snippets, k):
    """Squares of the values of snippet k as they are compared, which sum to one."""
    edge = int(snippets.shape_only[k])
    shares = np.pad(compared(snippets, k), ((0, 0), (edge, edge))) ** 2 + 1e-9
    return shares / shares.sum()


def bends(windows):
    """Second differences of unit mean square along the last axis; nearly zero if they are small."""
    result = windows[..., :-2] - 2 * windows[..., 1:-1] + windows[..., 2:]
    return result / np.sqrt(np.mean(result**2, axis=-1, keepdims=True) + _FLAT)


def met(x, snippets, k, raised=1.0):
    """Whether each step meets each threshold of snippet k, raised by some times the rounding."""
    limits = snippets.thresholds[k] + raised * rounding(snippets, k)
    return distances(x, snippets, k)[:, None] <= limits


def counts(x, snippets, raised=1.0):
    """Number of steps that meet each threshold, shape (snippets, thresholds)."""
    return np.array([met(x, snippets, k, raised).sum(axis=0) for k in range(len(snippets))])


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

    A step is compared with a mean step of the training series. Shares are proportional to the
    squares of what is compared of the snippet; those of missing values are left out.
    """
    half = snippets.n_steps // 2
    terms = np.zeros((len(coef), *x.shape))
    divisors = [len(x)] if snippets.longest is None else [len(x), snippets.longest]
    for k in range(len(snippets)):
        near, channels = met(x, snippets, k), snippets.channels_of(k)
        for i in range(len(x)):
            more = near[i] - snippets.shares[k]
            added = (coef[:, k] * more[:, None] / divisors).sum(axis=(1, 2))
            dilation = min(snippets.dilations[k], len(x))
            width = dilation if snippets.averaged[k] else 1
            for c, shares in zip(channels, squares(snippets, k), strict=True):
                for s, share in enumerate(shares):
                    for neighbour in range(width):
                        step = i + dilation * (s - half) + neighbour - (width - 1) // 2
                        if 0 <= step < len(x) and not np.isnan(x[step, c]):
                            terms[:, step, c] += added * share / width
    return terms
