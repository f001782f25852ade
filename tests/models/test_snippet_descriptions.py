"""A snippet is described by its steps, series and channels."""

from dataclasses import replace

import numpy as np
import pytest
from slts.models.snippets import Snippets

from slts.series import as_series


def drawn(n_channels, length, count=60):
    rng = np.random.default_rng(0)
    batch = as_series([rng.normal(size=(n_channels, length)) for _ in range(6)])
    return Snippets.draw(batch, np.arange(6) % 2, count, 0)


def one(snippets, condition):
    return int(np.flatnonzero(condition)[0])


@pytest.mark.parametrize("gap", [1, 2])
def test_steps_and_series_are_named(gap):
    snippets = drawn(1, 80)
    k = one(snippets, snippets.dilations == gap)
    start, last = snippets.starts[k], snippets.starts[k] + 10 * gap
    steps = f"{start} to {last}" if gap == 1 else f"{start}, {start + 2}, ..., {last}"
    assert snippets.describe(k) == f"steps {steps} of training series {snippets.series[k]}"


def test_a_snippet_that_is_longer_than_its_series_has_all_steps():
    snippets = drawn(1, 5)
    assert snippets.describe(0) == f"all steps of training series {snippets.series[0]}"
    # If other series are longer, its steps may be apart.
    snippets = replace(drawn(1, 38), starts=np.full(60, -2))
    k = one(snippets, snippets.dilations == 3)
    assert snippets.describe(k) == f"every 3 steps of training series {snippets.series[k]}"


def test_channels_are_numbered_or_named():
    snippets, names = drawn(3, 40), ["a", "b", "c"]
    for width, numbered, named in (
        (1, "channel {0}", "channel {0}"),
        (2, "channels {0} and {1}", "channels {0} and {1}"),
        (3, "channels 0, 1 and 2", "channels a, b and c"),
    ):
        k = one(snippets, np.diff(snippets.first) == width)
        own = snippets.channels_of(k)
        assert snippets.describe(k).endswith(", " + numbered.format(*own))
        assert snippets.describe(k, names).endswith(", " + named.format(*(names[u] for u in own)))


def test_of_many_channels_the_prominent_ones_are_named():
    snippets = drawn(12, 40)
    k = one(snippets, np.diff(snippets.first) == 8)
    rows = snippets.prominent_rows(k, 4)
    own = snippets.channels_of(k)[rows]
    assert snippets.describe(k).endswith(", channels {}, {}, {}, {} and 4 more".format(*own))
    values = snippets.values_of(k) - snippets.scale.centre[snippets.channels_of(k), np.newaxis]
    if snippets.shape_only[k]:
        values = np.diff(values, 2, axis=1)
    if snippets.by_strength[k]:
        values = values - values.mean(axis=1, keepdims=True)
    scaled = values / snippets.scale.spread[snippets.channels_of(k), np.newaxis]
    sizes = np.linalg.norm(scaled, axis=1)
    assert sizes[rows].min() >= np.delete(sizes, rows).max()
