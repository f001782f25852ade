"""Plots of series show alignments and principal components."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import slts
from slts.plots import plot_alignment, plot_contributions, plot_similarity_space
from slts.plots.axes import CHANNELS, channel_style, time_axis
from slts.series import SeriesBatch


@pytest.fixture
def pair(rng):
    return rng.normal(size=(3, 12)), rng.normal(size=(3, 17))


def test_the_path_is_drawn_on_the_matrix(pair):
    from matplotlib import pyplot

    found, given = slts.align(*pair, objective="cost", band=6), pyplot.figure().add_subplot()
    ax = plot_alignment(*pair, alignment=found, ax=given)
    assert ax is given
    assert ax.images[0].get_array().shape == (12, 17)
    np.testing.assert_array_equal(ax.lines[-1].get_xydata(), found.path[:, ::-1])
    assert f"{found.similarity:.3f}" in ax.figure.axes[2].get_title(loc="left")


def test_channels_of_an_alignment_are_scaled_and_named(pair):
    # One channel is a million times larger.
    scale = np.array([[1.0], [1e6], [1.0]])
    a, b = (SeriesBatch((x * scale).T, [0, x.shape[1]], ["x", "y", "z"]) for x in pair)
    ax = plot_alignment(a.named(["left hand"]), b.named([17]))
    left, top = ax.figure.axes[1:3]
    for panel in (left, top):
        reach = [np.ptp(line.get_data()[panel is top]) for line in panel.lines]
        assert max(reach) < 3 * min(reach)
    assert sorted(text.get_text() for text in top.get_legend().get_texts()) == ["x", "y", "z"]
    assert [line.get_color() for line in left.lines] == [line.get_color() for line in top.lines]
    assert (ax.get_ylabel(), ax.get_xlabel()) == ("step of left hand", "step of series 17")


def test_contributions_of_a_model_need_an_explanation(fitted):
    with pytest.raises(TypeError, match=r"result of slts.explain\(model, x\). Got SLTSClassifier"):
        plot_contributions(fitted[0])


def test_stretches_are_shaded_with_their_share(fitted):
    model, X, _ = fitted
    explanation = slts.explain(model, X[0])
    below = plot_contributions(explanation).figure.axes[1]
    stretches = explanation.stretches()
    assert [text.get_text() for text in below.texts] == [f"{s.share:.0%}" for s in stretches]
    ends = [(shade.get_x(), shade.get_x() + shade.get_width()) for shade in below.patches]
    assert ends == [(s.first - 0.5, s.last + 0.5) for s in stretches] != []


def test_the_similarity_space_shows_all_series_and_landmarks(fitted):
    model, X, y = fitted
    ax = plot_similarity_space(model, X, y, highlight="c")
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["others", "class c", "landmark"]
    assert "% of the variance" in ax.get_title()
    shown = sum(len(points.get_offsets()) for points in ax.collections)
    assert shown == len(X) + len(model.landmarks_)
    with pytest.raises(slts.DataError, match="inconsistent lengths: 45 series and 2 labels"):
        plot_similarity_space(model, X, y[:2])


@pytest.mark.parametrize("kind", ["pipeline", "search"])
def test_searches_and_pipelines_have_a_similarity_space_too(kind, fitted):
    _, X, y = fitted
    bbs = slts.BBSClassifier(10, random_state=0)
    model = make_pipeline(FunctionTransformer(np.negative), bbs)
    if kind == "search":
        model = GridSearchCV(bbs, {"gamma": [0.01, 0.1]}, cv=2)
    # The first step takes arrays only.
    X = np.stack(X)
    ax = plot_similarity_space(model.fit(X, y), X, y)
    assert sum(len(points.get_offsets()) for points in ax.collections) == len(X) + 10


@pytest.mark.parametrize(("times", "labels", "first"), [
    (np.timedelta64(20, "ms"), ["12:00:00.000", "12:00:00.020", "12:00:00.040"], 0.0),
    (np.timedelta64(20, "s"), ["12:00:00", "12:00:20", "12:00:40"], 0.0),
    (np.timedelta64(7, "s"), ["12:00:00", "12:00:05", "12:00:10"], 0.0),
    (np.timedelta64(1, "D"), ["2024-03-02", "2024-03-03", "2024-03-04"], 0.5),
    (7.3 + np.arange(70) / 50, ["7.5", "8.0", "8.5"], 10.0),
])  # fmt: skip
def test_ticks_are_round_times_at_their_steps(times, labels, first):
    from matplotlib import pyplot

    _, ax = pyplot.subplots()
    if isinstance(times, np.timedelta64):
        times = np.datetime64("2024-03-01T12:00", "ns") + np.arange(5) * times
    time_axis(ax, times)
    assert [label.get_text() for label in ax.get_xticklabels()][:3] == labels
    assert ax.get_xticks()[0] == pytest.approx(first, abs=1e-3)


def test_channels_have_the_same_colour_in_all_plots():
    a, b = np.random.default_rng(0).normal(size=(2, 8, 20)) * np.arange(8)[:, np.newaxis]
    lines = plot_alignment(a, b).figure.axes[2].lines
    drawn = {(line.get_color(), line.get_linestyle()) for line in lines}
    assert drawn == {(s["color"], s["linestyle"]) for s in map(channel_style, range(8))}
    # Channel 7 varies most.
    assert (lines[0].get_color(), lines[0].get_linestyle()) == (CHANNELS[2], "--")
