"""Plots of series show alignments and principal components."""

import numpy as np
import pytest

import slts
from slts.plots import plot_alignment, plot_similarity_space


@pytest.fixture
def pair(rng):
    return rng.normal(size=(3, 12)), rng.normal(size=(3, 17))


def test_the_path_is_drawn_on_the_matrix(pair):
    found = slts.align(*pair, objective="cost", band=6)
    ax = plot_alignment(*pair, alignment=found)
    assert ax.images[0].get_array().shape == (12, 17)
    np.testing.assert_array_equal(ax.lines[-1].get_xydata(), found.path[:, ::-1])
    assert f"{found.similarity:.3f}" in ax.figure.axes[2].get_title(loc="left")


def test_without_an_alignment_the_series_are_aligned_on_the_given_axes(pair):
    from matplotlib import pyplot

    _, axes = pyplot.subplots(1, 2)
    assert plot_alignment(*pair, objective="cost", ax=axes[1]) is axes[1]
    assert not axes[0].images
    path = slts.align(*pair, objective="cost").path
    np.testing.assert_array_equal(axes[1].lines[-1].get_xydata(), path[:, ::-1])


def test_the_similarity_space_shows_all_series_and_the_explained_variance(fitted):
    model, X, y = fitted
    ax = plot_similarity_space(model.transform(X), y, highlight="c")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["others", "class c"]
    assert "% of the variance" in ax.get_title()
    assert sum(len(points.get_offsets()) for points in ax.collections) == len(X)
