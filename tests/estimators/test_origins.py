"""Fitted models name the training series that they keep as their user does."""

import pytest

import slts
from slts.series import SeriesBatch
from tests.data import clusters
from tests.estimators.kinds import every_kind, quick


@pytest.fixture(scope="module")
def recordings():
    X, codes = clusters(24, channels=2, lengths=(14, 15))
    return slts.as_series(X).named([f"recording {100 + i}" for i in range(24)]), codes


@every_kind
@pytest.mark.parametrize("landmarks", ["random", [0, 1, 4, 7]])
def test_kept_series_have_the_names_and_classes_of_the_user(kind, landmarks, recordings):
    X, codes = recordings
    y = ["run" if c else "walk" for c in codes]
    chooses = "landmarks" in kind().get_params()
    model = quick(kind, **{"landmarks": landmarks, "n_landmarks": 4} if chooses else {}).fit(X, y)
    indices = model.origins_.indices
    assert len(indices) >= 4
    for index in indices.tolist():
        assert model.series_name(index) == f"{y[index]}, recording {100 + index}"
        assert model.classes_[model.series_class(index)] == y[index]
    if hasattr(model, "landmarks_"):
        explanation = slts.explain(model, X[3:4])
        assert explanation.landmark_names == tuple(
            f"{y[i]}, recording {100 + i}" for i in explanation.landmark_indices
        )
        assert explanation.series.series_names == ("recording 103",)
    if kind is slts.LocalSLTSClassifier:
        for k, index in enumerate(model.snippets_.series):
            assert f" of recording {100 + index}, channel" in model.describe_snippet(k)
    # Without identifiers, series are numbered.
    anonymous = model.fit(X.anonymous(), y)
    index = anonymous.origins_.indices[0]
    assert anonymous.series_name(index) == f"{y[index]}, training series {index}"


def test_reordered_channels_keep_names(recordings):
    X, y = recordings
    named = SeriesBatch(X.values, X.offsets, ["u", "v"], series_names=X.series_names)
    turned = SeriesBatch(X.values[:, ::-1], X.offsets, ["v", "u"], series_names=X.series_names)
    model = slts.OneNNClassifier(calibration_size=None).fit(named, y)
    assert model.check_series(turned).series_names == X.series_names
