"""The pictures show the numbers they are about."""

import numpy as np
import pytest

import slts
from slts.explanation import explain

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    y = np.array(["a", "b", "c"])[np.arange(45) % 3]
    X = [rng.normal(size=(4, 9)) + 2 * np.eye(4)[:, ["abc".index(c)]] for c in y]
    return slts.SLTSClassifier(random_state=0, calibration_cv=None).fit(X, y), X, y


@pytest.fixture(autouse=True)
def closed_figures():
    from matplotlib import pyplot

    yield
    pyplot.close("all")


def test_a_metric_is_drawn_with_zero_in_the_middle(fitted):
    from slts.plots import plot_metric

    model, _, _ = fitted
    image = plot_metric(model, "b").images[0]
    np.testing.assert_array_equal(image.get_array(), model.metrics_[1])
    low, high = image.get_clim()
    assert low == -high


def test_local_metrics_are_drawn_by_group_and_phase_on_one_scale(fitted):
    from slts.plots import plot_local_metrics

    _, X, y = fitted
    model = slts.LocalSLTSClassifier(random_state=0, n_phases=2).fit(X, y)
    figure = plot_local_metrics(model, "c", comparison=1)
    form = model.linear_forms()[1]
    maps = [ax for ax in figure.axes if ax.images]
    assert len(maps) == 3 * 2
    limits = {ax.images[0].get_clim() for ax in maps}
    assert limits == {(-abs(form.local_metrics[2]).max(), abs(form.local_metrics[2]).max())}
    np.testing.assert_array_equal(maps[3].images[0].get_array(), form.local_metrics[2, 1, 1])
    assert form.name in figure.get_suptitle()


def test_landmark_weights_are_sorted_and_named_by_training_series(fitted):
    from slts.plots import plot_landmark_weights

    model, _, _ = fitted
    ax = plot_landmark_weights(model, "a", count=3)
    widths = [abs(bar.get_width()) for bar in ax.patches]
    assert widths == sorted(widths)
    top = int(ax.get_yticklabels()[-1].get_text())
    assert top == model.landmark_indices_[np.argmax(np.abs(model.coef_[0]))]


def test_contributions_are_drawn_for_the_predicted_class(fitted):
    from slts.plots import plot_contributions

    model, X, _ = fitted
    found = explain(model, X[1])
    ax = plot_contributions(found)
    position = np.argmax(found.decision)
    np.testing.assert_array_equal(ax.images[0].get_array(), found.contributions[position].T)
    assert f"class {found.classes[position]}" in ax.get_title()


def test_of_two_classes_the_predicted_one_is_drawn(fitted):
    from slts.plots import plot_contributions

    _, X, y = fitted
    chosen = np.flatnonzero(y != "c")
    model = slts.SLTSClassifier(random_state=0, calibration_cv=None).fit(
        [X[i] for i in chosen], y[chosen]
    )
    found = explain(model, X[0])
    assert found.predicted == "a"
    for label, sign in ((None, -1), ("a", -1), ("b", 1)):
        ax = plot_contributions(found, label)
        np.testing.assert_array_equal(ax.images[0].get_array(), sign * found.contributions[0].T)
        assert f"class {label or 'a'}: decision {sign * found.decision[0]:.3f}" in ax.get_title()
    with pytest.raises(ValueError, match=r"one of 'a', 'b'\. Got 'c'"):
        plot_contributions(found, "c")


def test_the_similarity_space_says_how_much_it_shows(fitted):
    from slts.plots import plot_similarity_space

    model, X, y = fitted
    ax = plot_similarity_space(model.transform(X), y, highlight="c")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["others", "class c"]
    assert "% of the variance" in ax.get_title()
    assert sum(len(points.get_offsets()) for points in ax.collections) == len(X)


def test_accuracy_curves_have_a_line_each(fitted):
    from slts.plots import plot_accuracy_by_landmarks

    ax = plot_accuracy_by_landmarks(
        {"BBS": ([1, 2], [50, 60], [1, 1]), "SLTS": ([1, 2], [55, 70], None)}
    )
    assert [line.get_label() for line in ax.lines] == ["BBS", "SLTS"]
    assert len(ax.collections) == 1


@pytest.mark.parametrize("name", ["plot_metric", "plot_landmark_weights"])
def test_unknown_classes_are_refused(fitted, name):
    import slts.plots

    with pytest.raises(ValueError, match=r"one of 'a', 'b', 'c'\. Got 'z'"):
        getattr(slts.plots, name)(fitted[0], "z")


def test_given_axes_are_used(fitted):
    from matplotlib import pyplot

    from slts.plots import plot_metric

    _, axes = pyplot.subplots(1, 2)
    assert plot_metric(fitted[0], "a", ax=axes[1]) is axes[1]


def test_goodness_has_a_line_for_every_share_of_landmarks(rng):
    from slts.guarantees import goodness_profile
    from slts.plots import plot_goodness

    labels = np.where(np.arange(30) % 2, 1, -1)
    K = np.outer(labels, labels[:8]) * 0.5 + 0.2 * rng.normal(size=(30, 8))
    profile = goodness_profile(K, labels, labels[:8], gammas=[0.1, 1.0], taus=[0.5, 1.0])
    ax = plot_goodness(profile)
    lines = [
        line for line in ax.lines if len(line.get_xdata()) == 2 and line.get_marker() != "None"
    ]
    np.testing.assert_array_equal([line.get_ydata() for line in lines], profile.epsilon.T)
