import numpy as np
import pytest

import slts

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")


@pytest.fixture
def pair(rng):
    return rng.normal(size=(3, 12)), rng.normal(size=(3, 17))


def test_the_path_is_drawn_on_the_matrix(pair):
    from matplotlib import pyplot

    from slts.plots import plot_alignment

    found = slts.align(*pair, objective="cost", band=6)
    ax = plot_alignment(*pair, alignment=found)
    assert ax.images[0].get_array().shape == (12, 17)
    np.testing.assert_array_equal(ax.lines[-1].get_xydata(), found.path[:, ::-1])
    assert f"{found.similarity:.3f}" in ax.figure.axes[2].get_title(loc="left")
    pyplot.close(ax.figure)


def test_given_axes_are_used_and_returned(pair):
    from matplotlib import pyplot

    from slts.plots import plot_alignment

    figure, axes = pyplot.subplots(1, 2)
    assert plot_alignment(*pair, objective="cost", ax=axes[1]) is axes[1]
    assert not axes[0].images
    pyplot.close(figure)
