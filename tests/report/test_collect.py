"""What is collected are the model's own numbers, and JSON can hold them."""

import json

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import slts
from slts.errors import DataError
from slts.report import collect, explorer, thinning
from slts.report.packing import unpack
from slts.report.thinning import path_of_moves
from tests.report.conftest import Data

KINDS = {
    "slts": lambda: slts.SLTSClassifier(20, random_state=0),
    "slts, constant channel": lambda: slts.SLTSClassifier(20, homogeneous=True, random_state=0),
    "slts, no probabilities": lambda: slts.SLTSClassifier(20, calibration_cv=None, random_state=0),
    "slts, cv": lambda: slts.SLTSClassifierCV(20, gammas=(1e-3, 1e-2), random_state=0),
    "bbs": lambda: slts.BBSClassifier(20, random_state=0),
    "bbs, as they are": lambda: slts.BBSClassifier(20, normalize=False, random_state=0),
    "svc": lambda: slts.SimilaritySVC(fit_intercept=True),
    "local": lambda: slts.LocalSLTSClassifier(12, n_phases=2, random_state=0),
    "1nn": lambda: slts.OneNNClassifier(),
    "ldmlt": lambda: slts.LDMLTClassifier(n_cycles=1, random_state=0),
    "search": lambda: GridSearchCV(
        slts.BBSClassifier(20, random_state=0), {"gamma": [1e-3, 1e-2]}, cv=2
    ),
    "pipeline": lambda: make_pipeline(FunctionTransformer(), slts.OneNNClassifier()),
}


@pytest.fixture(scope="module")
def content(model, three):
    return collect(model, three.X_test, three.y_test)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", ["three", "two"])
def test_every_model_gives_content_that_json_holds(kind, classes, request):
    data = request.getfixturevalue(classes)
    fitted = KINDS[kind]().fit(data.X, data.y)
    for X, y in ((data.X_test, data.y_test), (data.X_test, None), (None, None)):
        found = collect(fitted, X, y)
        assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_summary_holds_the_models_own_figures(content, model, three):
    summary = content["summary"]
    assert summary["accuracy"]["value"] == model.score(three.X_test, three.y_test)
    assert summary["accuracy"]["low"] < summary["accuracy"]["value"] < summary["accuracy"]["high"]
    own = slts.summarize(model)
    assert summary["n_numbers"] == own.n_numbers
    assert summary["n_landmarks"] == len(own.landmark_indices)
    assert summary["n_series"], summary["n_classes"] == (len(three.X_test), 3)


def test_interval_of_the_accuracy_is_exact(content):
    accuracy = content["summary"]["accuracy"]
    # The upper end of Clopper and Pearson's interval with 2.5% on either side.
    errors = accuracy["n"] - accuracy["right"]
    from slts.guarantees.bounds import clopper_pearson

    assert 1 - accuracy["low"] == pytest.approx(clopper_pearson(errors, accuracy["n"], 0.025))


def test_confusion_counts_every_series_once(content, model, three):
    counts = np.array(content["confusion"]["counts"])
    assert counts.sum(axis=1).tolist() == [14, 14, 14]
    said = model.predict(three.X_test)
    assert counts.sum(axis=0).tolist() == [int((said == c).sum()) for c in model.classes_]
    assert counts.trace() == content["summary"]["accuracy"]["right"]


def test_scores_and_probabilities_are_those_of_the_model(content, model, three):
    decisions = model.decision_function(three.X_test)
    probabilities = model.predict_proba(three.X_test)
    for entry in content["explorer"]["entries"]:
        i = entry["index"]
        np.testing.assert_allclose(entry["scores"], decisions[i], rtol=1e-3)
        np.testing.assert_allclose(entry["p"], probabilities[i], atol=5e-5)
        assert model.classes_[entry["predicted"]] == model.predict(three.X_test[[i]])[0]


@pytest.mark.parametrize("kind", ["slts", "slts, constant channel", "bbs", "svc", "local"])
def test_maps_are_the_exact_contributions(kind, three):
    fitted = KINDS[kind]().fit(three.X, three.y)
    found = collect(fitted, three.X_test[:6], three.y_test[:6])["explorer"]
    maps = unpack(found["maps"])
    for entry in found["entries"]:
        explanation = slts.explain(fitted, three.X_test[entry["index"]])
        for slot, c in enumerate(entry["classes"]):
            drawn = maps[entry["map"] + slot].reshape(4, entry["bins"]).T
            exact = explanation.contributions[c]
            unit = np.abs(exact).max() / 126
            np.testing.assert_allclose(drawn, exact, atol=1.01 * unit)
            # Sums over steps are kept.
            np.testing.assert_allclose(drawn.sum(axis=0), exact.sum(axis=0), atol=1.01 * unit)
            assert entry["offset"][slot] == pytest.approx(explanation.offset[c], rel=1e-3)


def test_strongest_landmarks_are_those_of_the_explanation(content, model, three):
    found, companions = content["explorer"], content["companions"]
    terms = unpack(found["by_step"])
    for k, entry in enumerate(found["entries"][:5]):
        explanation = slts.explain(model, three.X_test[entry["index"]])
        place = 0
        for slot, chosen in enumerate(entry["strongest"]):
            values = explanation.by_landmark[slot]
            largest = np.sort(np.abs(values))[::-1][: len(chosen)]
            np.testing.assert_allclose([abs(v) for _, v in chosen], largest, rtol=1e-3)
            total = sum(v for _, v in chosen) + entry["rest"][slot] + 0.0
            assert total == pytest.approx(explanation.decision[slot], rel=1e-2, abs=1e-3)
            for j, value in chosen:
                position = explanation.landmark_indices.tolist().index(companions["index"][j])
                path = explanation.alignments[position].path
                assert path_of_moves(entry["paths"][str(j)]).tolist() == path.tolist()
                steps = terms[k][place * entry["bins"] : (place + 1) * entry["bins"]]
                exact = explanation.of_landmark(position)[slot].sum(axis=1)
                np.testing.assert_allclose(steps, exact, atol=np.abs(terms[k]).max() / 60)
                assert value == pytest.approx(explanation.by_landmark[slot, position], rel=1e-3)
                place += 1


def test_lines_of_local_models_show_the_part_of_the_first_view(three):
    fitted = KINDS["local"]().fit(three.X, three.y)
    content = collect(fitted, three.X_test[:4], three.y_test[:4])
    found, companions = content["explorer"], content["companions"]
    for entry, terms in zip(found["entries"], unpack(found["by_step"]), strict=True):
        explanation = slts.explain(fitted, three.X_test[entry["index"]])
        parts = terms.reshape(-1, entry["bins"])
        chosen = [(slot, j) for slot, row in enumerate(entry["strongest"]) for j, _ in row]
        assert len(parts) == len(chosen)
        for part, (slot, j) in zip(parts, chosen, strict=True):
            position = explanation.landmark_indices.tolist().index(companions["index"][j])
            exact = explanation.of_landmark(position, comparison=0)[slot].sum(axis=1)
            np.testing.assert_allclose(part, exact, atol=np.abs(terms).max() / 60)
            assert not np.allclose(exact, explanation.of_landmark(position)[slot].sum(axis=1))


def test_two_classes_mirror_each_other(two):
    fitted = slts.SLTSClassifier(20, random_state=0).fit(two.X, two.y)
    found = collect(fitted, two.X_test, two.y_test)
    maps = unpack(found["explorer"]["maps"])
    for entry in found["explorer"]["entries"]:
        first, second = maps[entry["map"]], maps[entry["map"] + 1]
        np.testing.assert_allclose(first, -second, atol=np.abs(second).max() / 60)
        assert entry["scores"][0] == -entry["scores"][1]
    assert found["model"]["problems"] == [1]


def test_what_it_looks_at_is_what_summarize_says(content, model, three):
    importance = slts.summarize(model, three.X_test).channel_importance
    share = importance / importance.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(content["looks"]["importance"], share, rtol=1e-3)
    for map, metric in zip(content["looks"]["maps"], model.metrics_, strict=True):
        np.testing.assert_allclose(map["values"], metric, rtol=5e-3)


def test_landmarks_are_drawn_heaviest_first(content, model):
    companions = content["companions"]
    rows = unpack(companions["rows"])
    for problem, row in enumerate(content["companions"]["gallery"]):
        weights = model.coef_[problem] / np.abs(model.coef_[problem]).sum()
        assert row["used"] == np.count_nonzero(weights)
        places = [
            model.landmark_indices_.tolist().index(companions["index"][j]) for j in row["shown"]
        ]
        shares = [companions["share"][j][problem] for j in row["shown"]]
        np.testing.assert_allclose(shares, weights[places], rtol=5e-3)
        assert np.all(np.diff(np.abs(shares)) <= 0)
        j = row["shown"][0]
        drawn = rows[j].reshape(companions["length"][j], -1)
        seen = model.row_map_(model.landmarks_[[places[0]]]).values
        np.testing.assert_allclose(drawn, seen, atol=1e-4)


def test_misclassified_series_come_first(content):
    wrong = [e["truth"] != e["predicted"] for e in content["explorer"]["entries"]]
    assert 0 < sum(wrong) == content["explorer"]["n_wrong"]
    assert wrong == sorted(wrong, reverse=True)


def test_certificate_is_that_of_certify(content, model, three):
    own = slts.certify(model, three.X_test, three.y_test)
    found = content["certificate"]
    assert found["given"]
    assert found["bounds"][0]["value"] == pytest.approx(own.headline.value, rel=1e-5)
    assert found["bounds"][0]["sentence"] == own.headline.sentence


def test_nothing_is_certified_on_series_of_the_training(model, three):
    found = collect(model, three.X, three.y)["certificate"]
    assert not found["given"]
    assert "equals landmark" in found["reason"]


def test_labels_the_model_has_never_seen_count_as_mistakes(model, three):
    y = three.y_test.astype(object)
    y[:2] = "south"
    found = collect(model, three.X_test, y)
    assert found["confusion"]["rows"] == ["east", "north", "west", "south"]
    assert sum(found["confusion"]["counts"][3]) == 2
    assert found["explorer"]["n_wrong"] >= 2
    assert "south" in found["certificate"]["reason"]


def test_without_data_the_report_is_about_the_model(model):
    found = collect(model)
    for part in ("explorer", "space", "data", "confusion"):
        assert found[part] is None
    assert found["summary"]["accuracy"] is None
    assert found["looks"]["on"] == "landmarks"
    assert found["companions"]["gallery"]
    assert not found["certificate"]["given"]


def test_neighbours_are_the_nearest_of_their_class(three):
    fitted = slts.OneNNClassifier().fit(three.X, three.y)
    found = collect(fitted, three.X_test[:5], three.y_test[:5])
    nearness = slts.similarity(three.X_test[:5], three.X)
    for entry in found["explorer"]["entries"]:
        for c, chosen in enumerate(entry["strongest"]):
            own = nearness[entry["index"], three.y == fitted.classes_[c]]
            assert chosen[0][1] == pytest.approx(own.max(), rel=1e-3)
            assert all(found["companions"]["classes"][j] == c for j, _ in chosen)
    assert not found["explorer"]["has_maps"]
    assert found["looks"]["importance"] is None


def test_one_metric_for_all_is_drawn_once(three):
    fitted = slts.LDMLTClassifier(n_cycles=1, random_state=0).fit(three.X, three.y)
    (map,) = collect(fitted)["looks"]["maps"]
    assert map["problem"] is None
    np.testing.assert_allclose(map["values"], fitted.metric_, rtol=5e-3)


def test_local_metrics_are_drawn_by_part_of_the_landmarks(three):
    fitted = KINDS["local"]().fit(three.X, three.y)
    looks = collect(fitted)["looks"]
    assert [m["part"] for m in looks["maps"]] == 3 * ["part 1 of 2", "part 2 of 2"]
    plain = fitted.linear_forms()[0]
    assert looks["comparison"] == plain.name
    assert looks["names"] == [*three.X.channel_names, "constant"]
    for m, part in zip(looks["maps"][:2], plain.local_metrics[0, 0], strict=True):
        np.testing.assert_allclose(m["values"], part, rtol=5e-3)
    assert sum(share for _, share in looks["comparisons"]) == pytest.approx(1, abs=1e-3)


def test_local_landmarks_have_shares_of_the_scores(three):
    fitted = KINDS["local"]().fit(three.X, three.y)
    found = collect(fitted, three.X_test, three.y_test)
    assert not found["companions"]["weighted"]
    terms = np.abs(fitted.transform(three.X_test)).reshape(len(three.X_test), 3, -1).mean(axis=0)
    share = terms / terms.sum(axis=1, keepdims=True)
    places = [fitted.landmark_indices_.tolist().index(j) for j in found["companions"]["index"]]
    np.testing.assert_allclose(found["companions"]["share"], share[:, places].T, rtol=1e-2)


def test_many_series_are_sampled_misclassified_first(model, three, monkeypatch):
    all_wrong = collect(model, three.X_test, three.y_test)["explorer"]["n_wrong"]
    monkeypatch.setattr(explorer, "MOST_SERIES", 12)
    found = collect(model, three.X_test, three.y_test)
    entries = found["explorer"]["entries"]
    assert len(entries) == 12
    assert found["explorer"]["n_given"] == len(three.X_test)
    assert sum(e["truth"] != e["predicted"] for e in entries) == min(12, all_wrong)
    # All of them are points, those of the explorer first.
    assert len(found["space"]["points"]) == len(three.X_test)
    assert found["space"]["index"][:12] == [e["index"] for e in entries]
    assert collect(model, three.X_test, three.y_test)["explorer"] == found["explorer"]


def test_models_that_take_long_to_explain_explain_fewer(model, three, monkeypatch):
    monkeypatch.setattr(
        explorer, "MOST_ALIGNMENTS", 20 * len(slts.summarize(model).landmark_indices)
    )
    monkeypatch.setattr(explorer, "FEWEST_SERIES", 5)
    assert len(collect(model, three.X_test, three.y_test)["explorer"]["entries"]) == 20
    monkeypatch.setattr(explorer, "MOST_ALIGNMENTS", 1)
    assert len(collect(model, three.X_test, three.y_test)["explorer"]["entries"]) == 5


def test_long_series_and_many_channels_are_thinned_and_sums_kept():
    data = Data(["a", "b"], channels=30, steps=(260, 300))
    fitted = slts.BBSClassifier(6, random_state=0).fit(data.X[:24], data.y[:24])
    found = collect(fitted, data.X_test[:3], data.y_test[:3])
    assert len(found["model"]["drawn"]) == thinning.MOST_CHANNELS
    maps = unpack(found["explorer"]["maps"])
    for entry in found["explorer"]["entries"]:
        assert entry["bins"] == thinning.MOST_STEPS < entry["length"]
        drawn = maps[entry["map"] + 1].reshape(thinning.MOST_CHANNELS + 1, entry["bins"])
        explanation = slts.explain(fitted, data.X_test[entry["index"]])
        exact = explanation.contributions[0].sum()
        assert drawn.sum() == pytest.approx(exact, abs=2 * np.abs(drawn).max() / 126)


def test_many_classes_keep_maps_of_the_best(monkeypatch, model, three):
    monkeypatch.setattr(explorer, "MOST_CLASSES", 2)
    found = collect(model, three.X_test, three.y_test)["explorer"]
    for entry in found["entries"]:
        assert len(entry["classes"]) == 2
        assert {entry["predicted"], entry["truth"]} <= set(entry["classes"])


def test_points_are_principal_components_of_transform(content, model, three):
    features = model.transform(three.X_test[content["space"]["index"]])
    features = features - features.mean(axis=0)
    points = np.array(content["space"]["points"])
    exact = np.linalg.svd(features, full_matrices=False)
    np.testing.assert_allclose(
        np.abs(points), np.abs(exact[0][:, :2] * exact[1][:2]), rtol=1e-2, atol=1e-3 * exact[1][0]
    )


def test_card_lists_parameters_and_fingerprints(content, model, three):
    card = content["card"]
    rows = {row["name"]: row for row in card["parameters"]}
    assert rows["n_landmarks"] == {"name": "n_landmarks", "value": "24", "default": False}
    assert rows["gamma"]["default"]
    assert card["provenance"]["library"] == f"slts {slts.__version__}"
    again = slts.SLTSClassifier(24, random_state=0).fit(three.X, three.y)
    other = slts.SLTSClassifier(24, random_state=1).fit(three.X, three.y)
    assert collect(again)["card"]["provenance"]["model"] == card["provenance"]["model"]
    assert collect(other)["card"]["provenance"]["model"] != card["provenance"]["model"]


def test_ids_name_the_series(model, three):
    ids = [f"recording {i}" for i in range(len(three.X_test))]
    found = collect(model, three.X_test, three.y_test, ids=ids)
    assert {e["id"] for e in found["explorer"]["entries"]} == set(ids)


def test_what_does_not_fit_together_is_refused(model, three):
    with pytest.raises(ValueError, match="'X' parameter is None"):
        collect(model, None, three.y_test)
    with pytest.raises(DataError, match="42 series and 2 ids"):
        collect(model, three.X_test, ids=["a", "b"])
    with pytest.raises(DataError, match="42 series and 3 labels"):
        collect(model, three.X_test, three.y_test[:3])
    with pytest.raises(DataError, match="X is empty"):
        collect(model, three.X_test[:0])
    with pytest.raises(NotFittedError):
        collect(slts.SLTSClassifier())
