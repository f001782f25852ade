"""Plots of models show the numbers of the model."""

import re
from importlib.resources import files

import numpy as np
import pytest
from sklearn.base import clone

import slts
from slts import plots


def test_a_metric_is_drawn_with_zero_in_the_middle(fitted):
    model, _, _ = fitted
    image = plots.plot_metric(model, "b").images[0]
    np.testing.assert_array_equal(image.get_array(), model.metrics_[1])
    low, high = image.get_clim()
    assert low == -high


def test_landmark_weights_are_sorted_and_named_by_training_series(fitted):
    model, _, y = fitted
    ax = plots.plot_landmark_weights(model, "a", count=3)
    widths = [abs(bar.get_width()) for bar in ax.patches]
    assert widths == sorted(widths)
    top = model.landmark_indices_[np.argmax(np.abs(model.coef_[0]))]
    assert ax.get_yticklabels()[-1].get_text() == f"class {y[top]}, training series {top}"


def test_landmarks_of_the_default_classifier_are_drawn_by_their_effect(local):
    model, _, y = local
    ax = plots.plot_landmark_weights(model, "a", count=5)
    terms = model.transform(model.landmarks_).reshape(len(model.landmarks_), 3, -1)[:, 0]
    effect = np.abs(terms - terms.mean(axis=0)).mean(axis=0)[: len(model.landmarks_)]
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], np.sort(effect)[-5:])
    assert ax.get_xlabel() == "effect on the decision value"
    top = model.landmark_indices_[np.argmax(effect)]
    assert ax.get_yticklabels()[-1].get_text() == f"class {y[top]}, recording {top}"


def test_the_metric_of_the_default_classifier_is_that_for_its_own_landmarks(local):
    model, _, _ = local
    ax = plots.plot_metric(model, "b")
    metrics = model.model_.metrics()[1, model.bank_names_.index("b")]
    np.testing.assert_allclose(ax.images[0].get_array(), metrics.mean(axis=0))
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names == [text.get_text() for text in ax.get_xticklabels()]
    assert names == ["u", "v", "w", "x", "constant"]
    assert ax.get_title() == "metric of class b (landmarks, mean of 2 phases)"


def test_contributions_are_drawn_for_the_predicted_class(fitted):
    model, X, _ = fitted
    found = slts.explain(model, X[1])
    ax = plots.plot_contributions(found)
    position = np.argmax(found.decision)
    np.testing.assert_array_equal(ax.images[0].get_array(), found.contributions[position].T)
    assert f"class {found.classes[position]}" in ax.get_title()


def test_the_series_is_drawn_below_the_map_in_the_colours_of_the_page(local):
    from matplotlib.colors import to_hex

    model, X, _ = local
    found = slts.explain(model, X[1:2])
    ax = plots.plot_contributions(found)
    style = files("slts.report").joinpath("page.css").read_text(encoding="utf-8")
    page = dict(re.findall(r"--([\w-]+): light-dark\((#\w{6})", style))
    colours = ax.images[0].get_cmap()
    assert (to_hex(colours(0.0)), to_hex(colours(1.0))) == (page["against"], page["for"])
    below = ax.figure.axes[1]
    order = np.argsort(-np.abs(found.by_channel[found.for_class()[0]]))[:3]
    colour = {u: page[f"channel-{u}"] for u in order.tolist()}
    # Lines and legend have the order of the rows of the map.
    for line, u in zip(below.lines, sorted(colour), strict=True):
        assert line.get_color() == colour[u]
        values = X.values[X.offsets[1] : X.offsets[2], u]
        np.testing.assert_allclose(line.get_ydata(), (values - values.mean()) / values.std())
        assert line.get_label() == X.channel_names[u]
    # The axis has the times of the user.
    assert below.get_xlabel() == "time"
    ticks = dict(zip(below.get_xticks(), below.get_xticklabels(), strict=True))
    assert ticks[4.0].get_text() == "2"


def test_two_classes_have_opposite_maps(fitted):
    _, X, y = fitted
    chosen = np.flatnonzero(y != "c")
    model = clone(fitted[0]).fit([X[i] for i in chosen], y[chosen])
    found = slts.explain(model, X[0])
    assert found.predicted == "a"
    for label, sign in ((None, -1), ("a", -1), ("b", 1)):
        ax = plots.plot_contributions(found, label)
        np.testing.assert_array_equal(ax.images[0].get_array(), sign * found.contributions[0].T)
        title = f"class {label or 'a'}: decision value {sign * found.decision[0]:.3f}"
        assert title in ax.get_title()
    with pytest.raises(ValueError, match="'label'"):
        plots.plot_contributions(found, "c")


def test_models_of_two_classes_are_drawn_for_both(fitted):
    _, X, y = fitted
    chosen = np.flatnonzero(y != "c")
    X, y = [X[i] for i in chosen], y[chosen]
    model, swapped = (clone(fitted[0]).fit(X, labels) for labels in (y, y[::-1]))
    assert y[::-1].tolist() == ["b" if label == "a" else "a" for label in y]
    # If the labels are swapped, the metric stays.
    np.testing.assert_allclose(swapped.metrics_, model.metrics_, rtol=1e-6)
    for label, sign in (("a", -1), ("b", 1)):
        image = plots.plot_metric(model, label).images[0]
        np.testing.assert_array_equal(image.get_array(), model.metrics_[0])
        ax = plots.plot_landmark_weights(model, label, count=1)
        assert ax.patches[0].get_width() == sign * max(model.coef_[0], key=abs)


@pytest.mark.parametrize("plot", [plots.plot_metric, plots.plot_landmark_weights])
def test_unknown_classes_and_other_models_raise_an_error(fitted, plot):
    model, X, y = fitted
    with pytest.raises(ValueError, match="'label'"):
        plot(model, "z")
    with pytest.raises(TypeError, match="OneNNClassifier"):
        plot(slts.OneNNClassifier().fit(X, y), "a")


def test_accuracy_has_a_line_per_method_and_shaded_intervals():
    curves = {"BBS": ([1, 2], [0.5, 0.6], [0.01, 0.01]), "SLTS": ([1, 2], [0.55, 0.7], None)}
    ax = plots.plot_accuracy_by_landmarks(curves)
    assert [line.get_label() for line in ax.lines] == ["BBS", "SLTS"]
    assert len(ax.collections) == 1
    # Fractions in, percent on the axis.
    assert ax.yaxis.get_major_formatter()(0.5).startswith("50")
    assert ax.yaxis.get_major_formatter()(0.5).endswith("%")
