"""Snippets are drawn in the units of the data, strongest first, with where they occur."""

import numpy as np
import pytest

import slts
from slts.plots import plot_snippets


def series(rng, label):
    """Noise, and a wave somewhere in channel 1 if the label says so."""
    x = 0.3 * rng.normal(size=(3, 60)) + np.array([[0.0], [50.0], [-4.0]])
    if label == "wave":
        place = rng.integers(0, 49)
        x[1, place : place + 11] += 5 * np.sin(np.arange(11) / 10 * 2 * np.pi)
    return x


@pytest.fixture(scope="module")
def waves():
    rng = np.random.default_rng(0)
    y = np.array(["flat", "wave"])[np.arange(40) % 2]
    rows = np.concatenate([series(rng, label).T for label in y])
    X = slts.series.SeriesBatch(rows, np.arange(41) * 60, ["x", "y", "z"])
    return slts.LocalSLTSClassifier(n_snippets=200, random_state=0).fit(X, y), X


def blocks(figure):
    """Text, and axes by channel and column, of every snippet."""
    return [(block.get_suptitle(), block.axes) for block in figure.subfigs]


def position(model, text):
    """The snippet that a text describes."""
    for k in range(len(model.snippets_)):
        if model.snippets_.describe(k, model.channel_names_in_) in " ".join(text.split()):
            return k
    raise AssertionError(text)


def test_snippets_are_drawn_strongest_first_in_the_units_of_the_data(waves):
    model, _ = waves
    found = slts.summarize(model)
    weights = found.snippet_effect[0]
    drawn = blocks(plot_snippets(model, "wave", count=4))
    order = [position(model, text) for text, _ in drawn]
    assert order[:4] == np.argsort(-weights)[:4].tolist()
    assert order[4:] == np.argsort(weights)[:4].tolist()
    snippets = model.snippets_
    for k, (text, axes) in zip(order, drawn, strict=True):
        side = "for" if weights[k] > 0 else "against"
        assert text.startswith(f"{side} wave, {weights[k]:+.2g}: ")
        assert ("level, slope and amplitude do not matter" in text) == snippets.shape_only[k]
        assert ("occurs where steps follow it strongly" in text) == snippets.by_strength[k]
        names = [model.channel_names_in_[u] for u in snippets.channels_of(k)]
        assert [ax.get_ylabel() for ax in axes] == names
        for ax, values in zip(axes, snippets.values_of(k), strict=True):
            np.testing.assert_array_equal(ax.lines[0].get_ydata(), values)
            steps = snippets.starts[k] + snippets.dilations[k] * np.arange(snippets.n_steps)
            np.testing.assert_array_equal(ax.lines[0].get_xdata(), steps)


def test_each_snippet_is_shown_in_the_series_where_it_adds_most(waves):
    model, X = waves
    added = np.array([slts.explain(model, x).by_snippet[0] for x in X])
    drawn, averaged = blocks(plot_snippets(model, "wave", X=X, count=6)), set()
    for text, axes in drawn:
        k = position(model, text)
        best = int(np.argmax(added[:, k] if text.startswith("for") else -added[:, k]))
        title = f"contributes {added[best, k]:+.2g} in series {best}"
        assert axes[1].get_title(loc="right") == title
        # Axes are in pairs: a channel of the snippet, and of the series.
        explanation = slts.explain(model, X[best])
        occurs = explanation.occurrences(k) > 0
        for ax, u in zip(axes[1::2], model.snippets_.channels_of(k), strict=True):
            np.testing.assert_array_equal(ax.lines[0].get_ydata(), X[best][u])
            window = ax.lines[1].get_xdata()
            np.testing.assert_array_equal(ax.lines[1].get_ydata(), X[best][u][window])
            assert occurs[window].any()
            # The steps of one that is averaged are next to each other, and named as means.
            gap = model.snippets_.dilations[k]
            has_means = bool(model.snippets_.averaged[k] and gap > 1)
            assert (np.diff(window) == (1 if has_means else gap)).all()
            assert ("means of" in text) == has_means
            averaged.add(has_means)
            shades = np.asarray(ax.images[0].get_array())[0]
            assert shades.sum() == pytest.approx(explanation.by_snippet[0, k])
            # Where it does not occur, every step misses the same.
            assert np.unique(shades[~occurs]).size <= 1
    assert averaged == {False, True}


def test_what_is_for_one_of_two_classes_is_against_the_other(waves):
    model, X = waves
    one, other = (blocks(plot_snippets(model, c, X=X, count=2)) for c in ("wave", "flat"))
    first, last = ([position(model, text) for text, _ in s] for s in (one[:2], other[2:]))
    assert first == last
    for (_, axes), (_, opposite) in zip(one[:2], other[2:], strict=True):
        shades, negative = (ax[1].images[0].get_array() for ax in (axes, opposite))
        np.testing.assert_allclose(shades, -negative)


def test_unknown_classes_and_models_without_snippets_raise_an_error(waves, fitted):
    with pytest.raises(ValueError, match="'label'"):
        plot_snippets(waves[0], "z")
    model, X, y = fitted
    for bare in (model, slts.LocalSLTSClassifier(n_snippets=0, random_state=0).fit(X, y)):
        with pytest.raises(ValueError, match="no snippets"):
            plot_snippets(bare, "a")
    with pytest.raises(TypeError, match="OneNNClassifier"):
        plot_snippets(slts.OneNNClassifier().fit(X, y), "a")
