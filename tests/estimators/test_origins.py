"""Fitted models name the training series that they keep as their user does."""

import numpy as np
import pytest

import slts
from slts.series import SeriesBatch


@pytest.fixture
def recordings(rng):
    y = np.tile(["run", "walk"], 12)
    X = [rng.normal(size=(2, 14)) + 2.0 * (c == "walk") * np.array([[1.0], [0.0]]) for c in y]
    return slts.as_series(X).named([f"recording {100 + i}" for i in range(24)]), y


MODELS = {
    "local": slts.LocalSLTSClassifier(6, n_snippets=30, random_state=0),
    "local, chosen": slts.LocalSLTSClassifier(landmarks=[0, 1, 4, 7], n_snippets=5, random_state=0),
    "slts": slts.SLTSClassifier(8, calibration_cv=None, random_state=0),
    "bbs": slts.BBSClassifier(8, calibration_cv=None, random_state=0),
    "1nn": slts.OneNNClassifier(calibration_size=None),
    "svc": slts.SimilaritySVC(1.0, calibration_cv=None),
}


@pytest.mark.parametrize("kind", MODELS)
def test_kept_series_have_the_names_and_classes_of_the_user(kind, recordings):
    X, y = recordings
    model = MODELS[kind].fit(X, y)
    kept = getattr(model, "landmark_indices_", getattr(model, "training_indices_", None))
    for index in kept:
        assert model.series_name(index) == f"{y[index]}, recording {100 + index}"
        assert model.classes_[model.series_class(index)] == y[index]
    if kind.startswith("local"):
        for k, index in enumerate(model.snippets_.series):
            assert f" of recording {100 + index}, channel" in model.describe_snippet(k)


def test_explanations_name_their_landmarks(recordings):
    X, y = recordings
    model = MODELS["slts"].fit(X, y)
    found = slts.explain(model, X[3:4])
    expected = tuple(f"{y[i]}, recording {100 + i}" for i in found.landmark_indices)
    assert found.landmark_names == expected
    assert found.series.series_names == ("recording 103",)


def test_without_identifiers_series_are_numbered(recordings):
    X, y = recordings
    model = MODELS["slts"].fit(X.anonymous(), y)
    index = model.landmark_indices_[0]
    assert model.series_name(index) == f"{y[index]}, training series {index}"


def test_reordered_channels_keep_names(recordings):
    X, y = recordings
    named = SeriesBatch(X.values, X.offsets, ["u", "v"], series_names=X.series_names)
    turned = SeriesBatch(X.values[:, ::-1], X.offsets, ["v", "u"], series_names=X.series_names)
    model = slts.OneNNClassifier(calibration_size=None).fit(named, y)
    assert model.check_series(turned).series_names == X.series_names
    assert slts.SeriesScaler().fit_transform(named).series_names == X.series_names
