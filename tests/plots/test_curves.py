"""Plots of curves have one line per method or share."""

import numpy as np

from slts.guarantees import goodness_profile
from slts.plots import plot_accuracy_by_landmarks, plot_goodness


def test_accuracy_has_a_line_per_method_and_shaded_intervals():
    ax = plot_accuracy_by_landmarks(
        {"BBS": ([1, 2], [0.5, 0.6], [0.01, 0.01]), "SLTS": ([1, 2], [0.55, 0.7], None)}
    )
    assert [line.get_label() for line in ax.lines] == ["BBS", "SLTS"]
    assert len(ax.collections) == 1
    # Fractions in, percent on the axis.
    assert ax.yaxis.get_major_formatter()(0.5).startswith("50")
    assert ax.yaxis.get_major_formatter()(0.5).endswith("%")


def test_goodness_has_a_line_per_share_of_landmarks(rng):
    labels = np.where(np.arange(30) % 2, 1, -1)
    K = np.outer(labels, labels[:8]) * 0.5 + 0.2 * rng.normal(size=(30, 8))
    profile = goodness_profile(K, labels, labels[:8], gammas=[0.1, 1.0], taus=[0.5, 1.0])
    # The last line marks epsilon 1.
    lines = plot_goodness(profile).lines[:-1]
    np.testing.assert_array_equal([line.get_ydata() for line in lines], profile.epsilon.T)
    assert [line.get_label() for line in lines] == ["50%", "100%"]
