"""The content of a report consists of the model's own numbers, and JSON can hold it."""

import copy
import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError

import slts
from slts.errors import DataError
from slts.guarantees.bounds import clopper_pearson, group_accuracy_interval
from slts.report import collect, packing, render
from slts.report.references import MOST_CHANNELS
from tests.report.conftest import DATA, KINDS, Data, fitted
from tests.report.unpacking import path_of, unpack


@pytest.mark.slow
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("kind", KINDS)
def test_every_model_has_content_that_json_can_hold(kind, data):
    X, y = DATA[data].X_test, DATA[data].y_test
    for arguments in ((X, y), (X, None), (None, None)):
        content = collect(fitted(kind, data), *arguments)
        assert json.loads(json.dumps(content, allow_nan=False)) == content


def test_summary_has_the_figures_of_the_model(content, model, three):
    summary, expected = content["summary"], slts.summarize(model)
    assert summary["n_numbers"] == expected.n_numbers
    assert summary["n_references"] == len(expected.landmark_indices)
    assert summary["n_snippets"] is content["snippets"] is None
    accuracy = summary["accuracy"]
    assert accuracy["value"] == model.score(three.X_test, three.y_test)
    n, correct = accuracy["n"], accuracy["correct"]
    assert 1 - accuracy["low"] == pytest.approx(clopper_pearson(n - correct, n, 0.025))
    assert accuracy["high"] == pytest.approx(clopper_pearson(correct, n, 0.025))


def test_confusion_counts_every_series_once(content, model, three):
    counts = np.array(content["confusion"]["counts"])
    predicted = model.predict(three.X_test)
    assert counts.sum(axis=1).tolist() == [10, 10, 10]
    assert counts.sum(axis=0).tolist() == [int((predicted == c).sum()) for c in model.classes_]
    assert content["predicted"] == counts.sum(axis=0).tolist()
    assert counts.trace() == content["summary"]["accuracy"]["correct"]
    pairs = Counter(zip(three.y_test, predicted, strict=True))
    confused = {(p["truth"], p["predicted"]): p["count"] for p in content["confusion"]["confused"]}
    assert confused == {pair: n for pair, n in pairs.items() if pair[0] != pair[1]} != {}


def test_scores_and_probabilities_are_those_of_the_model(content, model, three):
    labels, decisions, probabilities = model.outputs(three.X_test)
    for entry in content["explorer"]["entries"]:
        i = entry["index"]
        np.testing.assert_allclose(entry["scores"], decisions[i], rtol=1e-3)
        np.testing.assert_allclose(entry["p"], probabilities[i], atol=5e-5)
        assert model.classes_[entry["predicted"]] == labels[i]


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("kind", ["slts", "slts, constant channel", "bbs", "svc", "local"])
def test_parts_are_those_of_the_explanation(kind, data):
    model, X = fitted(kind, data), DATA[data].X_test[:4]
    content = collect(model, X, DATA[data].y_test[:4])
    items = content["references"]["items"]
    for entry in content["explorer"]["entries"]:
        explanation = slts.explain(model, X[entry["index"]])
        positions = {index: k for k, index in enumerate(explanation.landmark_indices.tolist())}
        assert [part["class"] for part in entry["parts"]] == list(range(len(model.classes_)))
        for part in entry["parts"]:
            row, sign = explanation.for_class(model.classes_[part["class"]])
            drawn = unpack(part["contributions"]).reshape(4, entry["bins"]).T
            exact = sign * explanation.contributions[row]
            unit = 1.01 * np.abs(exact).max() / 126
            np.testing.assert_allclose(drawn, exact, atol=unit)
            np.testing.assert_allclose(drawn.sum(axis=0), exact.sum(axis=0), atol=unit)
            assert part["offset"] == pytest.approx(sign * explanation.offset[row], rel=1e-3)
            stretches = explanation.stretches(model.classes_[part["class"]])
            assert len(part["stretches"]) == len(stretches)
            for shown, stretch in zip(part["stretches"], stretches, strict=True):
                assert shown == pytest.approx(list(stretch), rel=1e-3)
            values = sign * explanation.by_landmark[row]
            largest = np.sort(np.abs(values))[::-1][: len(part["strongest"])]
            sizes = [abs(value) for _, value in part["strongest"]]
            np.testing.assert_allclose(sizes, largest, rtol=1e-3)
            total = sum(value for _, value in part["strongest"]) + part["rest"]
            total += part["intercept"] + part.get("all_snippets", 0.0)
            assert total == pytest.approx(entry["scores"][part["class"]], rel=1e-2, abs=1e-3)
            by_step = unpack(part["by_step"]).reshape(-1, entry["bins"])
            for (j, value), terms in zip(part["strongest"], by_step, strict=True):
                k = positions[items[j]["index"]]
                assert value == pytest.approx(values[k], rel=1e-3)
                path = path_of(entry["paths"][str(j)])
                assert path.tolist() == explanation.alignment(k).path.tolist()
                # Lines show the contributions of the first feature map.
                exact = sign * explanation.of_landmark(k, feature_map=0)[row].sum(axis=1)
                np.testing.assert_allclose(terms, exact, atol=np.abs(by_step).max() / 60)


def test_importance_is_that_of_summarize(content, model, three):
    for report, X in ((content, three.X_test), (collect(model), None)):
        importance = slts.summarize(model, X).channel_importance
        share = importance / importance.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(report["importance"]["channels"], share, rtol=1e-3)
    for drawn, metric in zip(content["importance"]["metrics"], model.metrics_, strict=True):
        np.testing.assert_allclose(drawn["values"], metric, rtol=5e-3)


def test_accuracies_without_channels_are_listed_highest_first(content, three):
    model, X, y = fitted("local"), three.X_test, three.y_test
    found = model.accuracy_without_channels(X, y)
    report = collect(model, X, y)
    parts = report["without_channels"]
    assert (parts["accuracy"], parts["n_series"]) == (found.accuracy, found.n_series)
    assert dict(parts["channels"]) == dict(enumerate(found.without))
    assert [share for _, share in parts["channels"]] == sorted(found.without, reverse=True)
    page = render(report)
    assert page.count("Accuracy without a channel") == page.count("Channel left out") == 1
    # One class has nothing to tell apart; other methods and series without labels have no table.
    one = collect(model, X[:1], y[:1])
    assert "y holds one class only" in one["without_channels"]["reason"]
    assert "accuracy without each channel is unknown: y holds" in render(one)
    for other in (content, collect(model, X), collect(model)):
        assert other["without_channels"] is None


def test_landmarks_are_drawn_largest_share_first(content, model):
    items = content["references"]["items"]
    for decision, row in enumerate(content["references"]["gallery"]):
        weights = model.coef_[decision] / np.abs(model.coef_[decision]).sum()
        assert row["used"] == np.count_nonzero(weights)
        places = [model.landmark_indices_.tolist().index(items[j]["index"]) for j in row["shown"]]
        np.testing.assert_allclose(row["effect"], weights[places], rtol=5e-3)
        assert np.all(np.diff(np.abs(row["effect"])) <= 0)
        item = items[row["shown"][0]]
        drawn = unpack(item["rows"]).reshape(item["length"], -1)
        mapped = model.model_.aligned[0].rows(model.landmarks_[[places[0]]]).values
        np.testing.assert_allclose(drawn, mapped, atol=1e-4)


@pytest.mark.parametrize("n_empty", [1, 3])
def test_a_class_without_landmarks_has_an_offset_only(n_empty, model, three):
    landmarks, bare = model.model_.aligned[0], copy.copy(model)
    weights = landmarks.weights * (np.arange(3) >= n_empty)[:, np.newaxis]
    bare.model_ = replace(model.model_, maps=(replace(landmarks, weights=weights),))
    content = collect(bare, three.X_test[:4], three.y_test[:4])
    assert "h-landmarks" in render(content)
    assert [row["used"] > 0 for row in content["references"]["gallery"]].count(False) == n_empty
    for entry in content["explorer"]["entries"]:
        assert entry["parts"][0]["strongest"] == []
        assert entry["parts"][0]["offset"] == pytest.approx(entry["scores"][0], rel=1e-3)


def test_landmarks_of_local_models_are_grouped_by_their_class_strongest_first(three):
    model = fitted("local")
    references = collect(model, three.X_test, three.y_test)["references"]
    assert not references["weighted"]
    terms = model.transform(three.X_test).reshape(len(three.X_test), 3, -1)
    terms = terms[:, :, : len(model.landmarks_)]
    effect = np.abs(terms - terms.mean(axis=0)).mean(axis=0)
    for c, row in enumerate(references["gallery"]):
        indices = [references["items"][j]["index"] for j in row["shown"]]
        assert len(indices) == min(4, row["used"])
        assert set(three.y[indices]) == {model.classes_[row["class"]]} == {model.classes_[c]}
        places = [model.landmark_indices_.tolist().index(index) for index in indices]
        np.testing.assert_allclose(row["effect"], effect[c, places], rtol=1e-2)
        assert np.all(np.diff(row["effect"]) <= 0)


def test_certificate_and_interval_are_those_of_certify(content, model, three):
    groups = np.arange(len(three.X_test)) // 3
    grouped = collect(model, three.X_test, three.y_test, groups=groups)
    for report, of_series in ((content, None), (grouped, groups)):
        bound = slts.certify(model, three.X_test, three.y_test, groups=of_series).headline
        assert report["certificate"]["value"] == pytest.approx(bound.value, rel=1e-5)
        assert report["certificate"]["sentence"] == bound.sentence
        assert report["certificate"]["unchecked"] == list(bound.unchecked)
    right = model.predict(three.X_test) == three.y_test
    accuracy = grouped["summary"]["accuracy"]
    interval = group_accuracy_interval(right.reshape(-1, 3).mean(), 10)
    assert (accuracy["low"], accuracy["high"]) == interval
    assert "for the mean of a new group, from 10 groups" in render(grouped)


def test_sets_are_those_of_prediction_sets(content, model, three):
    predictor = slts.prediction_sets(model)
    sets, parts = predictor.predict(three.X_test, 0.05), content["sets"]
    sizes = [int(np.sum(which)) for which in (sets.sizes == 1, sets.sizes > 1)]
    assert (parts["alpha"], parts["sizes"]) == (0.05, sizes)
    assert parts["covered"] == pytest.approx(sets.contains(three.y_test).mean())
    assert parts["guarantee"] == predictor.guarantee
    for entry in content["explorer"]["entries"]:
        assert entry["set"] == np.flatnonzero(sets.members[entry["index"]]).tolist()
    unknown = np.full(len(three.y_test), "zebra")
    assert collect(model, three.X_test)["sets"]["covered"] is None
    assert collect(model, three.X_test, unknown)["sets"]["covered"] == 0.0
    bare = collect(fitted("slts, no probabilities"), three.X_test)
    assert bare["sets"] is None
    assert "set" not in bare["explorer"]["entries"][0]


@pytest.mark.parametrize("kind", ["slts", "local", "1nn", "pipeline"])
def test_copies_of_training_series_are_counted_and_not_certified(kind, three):
    content = collect(fitted(kind), three.X, three.y)
    assert content["summary"]["n_seen"] == len(three.X)
    assert "copies of training series" in content["certificate"]["reason"]
    assert collect(fitted(kind), three.X_test[:5])["summary"]["n_seen"] == 0


def test_labels_unknown_to_the_model_count_as_errors(model, three):
    y = three.y_test.astype(object)
    y[:2] = "south"
    content = collect(model, three.X_test, y)
    assert content["labels"] == ["east", "north", "west", "south"]
    assert sum(content["confusion"]["counts"][3]) == 2
    assert content["explorer"]["n_wrong"] >= 2
    assert "south" in content["certificate"]["reason"]
    assert "no series" not in render(content)


def test_without_data_the_report_describes_the_model(model):
    content = collect(model)
    for part in ("explorer", "space", "predicted", "confusion", "sets"):
        assert content[part] is None
    assert content["summary"]["accuracy"] is None
    assert content["references"]["gallery"]
    assert content["certificate"] == {"certified": False, "reason": "This report has no series."}


@pytest.mark.parametrize("kind", ["1nn", "ldmlt"])
def test_neighbours_are_the_nearest_of_their_class(kind, three):
    model = fitted(kind)
    content = collect(model, three.X_test[:5], three.y_test[:5])
    items, nearness = content["references"]["items"], model.features(three.X_test[:5])
    for entry in content["explorer"]["entries"]:
        for part in entry["parts"]:
            of_class = nearness[entry["index"], model.training_codes_ == part["class"]]
            assert part["strongest"][0][1] == pytest.approx(of_class.max(), rel=1e-3)
            assert all(items[j]["class"] == part["class"] for j, _ in part["strongest"])
            for j, _ in part["strongest"]:
                end = [entry["bins"] - 1, items[j]["length"] - 1]
                assert path_of(entry["paths"][str(j)])[-1].tolist() == end
    for item in items:
        expected = model.model_.row_map(three.X[item["index"] : item["index"] + 1]).values
        drawn = unpack(item["rows"]).reshape(item["length"], -1)
        np.testing.assert_allclose(drawn, expected, atol=1e-4)
    assert content["importance"] is None


def test_the_last_step_of_a_pipeline_is_described(three):
    pipeline, last = (collect(fitted(kind), three.X_test[:5]) for kind in ("pipeline", "1nn"))
    assert pipeline["model"]["name"] == "Pipeline"
    assert pipeline["explorer"] == last["explorer"]


def test_local_metrics_are_drawn_by_phase_of_the_landmarks(three):
    importance = collect(fitted("local"))["importance"]
    assert [m["part"] for m in importance["metrics"]] == 3 * ["phase 1 of 2", "phase 2 of 2"]
    assert importance["metric_map"] == "landmarks"
    assert importance["metric_channels"] == [*three.X.channel_names, "constant"]
    metrics = fitted("local").model_.metrics()[0, 0]
    for drawn, metric in zip(importance["metrics"][:2], metrics, strict=True):
        np.testing.assert_allclose(drawn["values"], metric, rtol=5e-3)
    assert [name for name, _ in importance["feature_maps"]] == ["landmarks", "snippets"]
    assert sum(share for _, share in importance["feature_maps"]) == pytest.approx(1, abs=1e-3)


def test_series_landmarks_and_snippets_have_the_names_and_times_of_the_user(recorded):
    content, model = collect(**recorded), recorded["model"]
    for entry in content["explorer"]["entries"]:
        assert entry["id"] == f"recording {500 + entry['index']}"
        span = (entry["length"] - 1) / 50
        assert (entry["clock"]["start"], entry["clock"]["span"]) == (10.0, pytest.approx(span))
        assert len(unpack(entry["clock"]["passed"])) == entry["bins"] + 1
    for item in content["references"]["items"]:
        assert item["name"] == f"recording {item['index']}"
        name = f"{model.classes_[item['class']]}, {item['name']}"
        assert name == model.series_name(item["index"])
        assert item["clock"]["start"] == 10.0
    assert all(" of recording " in item["text"] for item in content["snippets"]["items"])
    classes = list(map(model.series_class, model.landmark_indices_.tolist()))
    assert content["space"]["landmark_labels"] == classes


def test_the_strongest_snippets_are_those_of_summarize(three):
    # Pressure in pascals, about 100 bar, beside small and large values.
    scales, levels = np.array([1e-3, 1e6, 5.0, 1.0]), np.array([0.0, 0.0, 1e7, 0.0])
    X, X_test = (
        batch.with_values(batch.values * scales + levels, batch.channel_names)
        for batch in (three.X, three.X_test)
    )
    model = slts.LocalSLTSClassifier(6, n_snippets=100, random_state=0).fit(X, three.y)
    content = collect(model, X_test, three.y_test)["snippets"]
    for sides, weights in zip(
        content["gallery"], slts.summarize(model).snippet_effect, strict=True
    ):
        for name, sign in (("for", 1), ("against", -1)):
            order = np.argsort(-sign * weights, kind="stable")[:3].tolist()
            for shown, k in zip(sides[name], order, strict=True):
                item = content["items"][shown["snippet"]]
                assert item["position"] == k
                assert shown["weight"] == pytest.approx(weights[k], rel=1e-3)
                assert item["text"] == model.describe_snippet(k)
                assert item["compared"] == model.snippets_.compared(k)
                assert item["reach"] == model.snippets_.reach(k)[[0, -1]].tolist()
                rows = model.snippets_.prominent_rows(k, 3)
                assert item["channels"] == model.snippets_.channels_of(k)[rows].tolist()
                assert_rows(item["rows"], item["lowest"], model.snippets_.values_of(k)[rows])


def assert_rows(packed, lowest, expected):
    """Assert that packed rows above their lowest value are those that are expected."""
    for row, low, values in zip(packed, lowest, expected, strict=True):
        unit = np.abs(values - low).max() / 3e4 + 1e-6 * abs(low)
        np.testing.assert_allclose(low + unpack(row), values, atol=unit)


@pytest.mark.parametrize("with_series", [True, False])
def test_examples_are_the_series_in_which_a_snippet_adds_most(with_series, three):
    model = fitted("local")
    batch, names = three.X_test, [f"test {i}" for i in range(len(three.X_test))]
    content = collect(model, batch, three.y_test, ids=names)["snippets"]
    if not with_series:
        content, batch = collect(model)["snippets"], model.landmarks_
        names = [f"training series {k}" for k in model.landmark_indices_]
    parts = np.array([slts.explain(model, x).by_snippet for x in batch])
    for decision, sides in enumerate(content["gallery"]):
        for name, sign in (("for", 1), ("against", -1)):
            for shown in sides[name]:
                item, example = content["items"][shown["snippet"]], shown["example"]
                k = item["position"]
                best = int(np.argmax(sign * parts[:, decision, k]))
                assert example["id"] == names[best]
                assert example["adds"] == pytest.approx(parts[best, decision, k], rel=1e-3)
                assert unpack(example["added"]).sum() == pytest.approx(example["adds"], rel=0.1)
                exact = batch[best][item["channels"]]
                by_value = item["compared"] == "values"
                assert_rows(example["rows"], item["lowest"] if by_value else exact.min(1), exact)
                # The closest occurrence meets as many thresholds as any.
                met = slts.explain(model, batch[best]).occurrences(k)
                assert met[example["centre"]] == met.max()


@pytest.mark.parametrize("data", DATA)
def test_snippets_of_a_series_are_those_with_the_largest_contributions(data):
    model, X = fitted("local", data), DATA[data].X_test[:4]
    content = collect(model, X, DATA[data].y_test[:4])
    for entry in content["explorer"]["entries"]:
        explanation = slts.explain(model, X[entry["index"]])
        for part in entry["parts"]:
            label = model.classes_[part["class"]]
            row, sign = explanation.for_class(label)
            added = sign * explanation.by_snippet[row]
            assert part["all_snippets"] == pytest.approx(added.sum(), rel=1e-3, abs=1e-9)
            positions = [
                content["snippets"]["items"][j]["position"] for j, _, _ in part["snippets"]
            ]
            assert positions == explanation.strongest_snippets(3, label).tolist()
            for k, (_, value, step) in zip(positions, part["snippets"], strict=True):
                assert value == pytest.approx(added[k], rel=1e-3)
                met = explanation.occurrences(k)
                assert met[step] == met.max()


def test_the_fingerprint_is_that_of_all_numbers(three, tmp_path):
    def fingerprint(model):
        return dict(collect(model)["card"]["provenance"])["Fingerprint of the model"]

    model = fitted("local")
    *aligned, snippets = model.model_.maps
    row_map = replace(aligned[0].row_map, constant=2.0 * aligned[0].row_map.constant)
    for maps in (
        (*aligned, replace(snippets, thresholds=2 * snippets.thresholds)),
        (replace(aligned[0], row_map=row_map), *aligned[1:], snippets),
    ):
        other = copy.copy(model)
        other.model_ = replace(model.model_, maps=maps)
        assert fingerprint(model) != fingerprint(other)
    again = slts.LocalSLTSClassifier(12, n_phases=2, random_state=0).fit(three.X, three.y)
    slts.save(model, tmp_path / "m.slts")
    for equal in (copy.deepcopy(model), again, slts.load(tmp_path / "m.slts")):
        assert fingerprint(equal) == fingerprint(model)


def test_long_series_and_many_channels_are_downsampled_and_sums_are_preserved():
    data = Data(["a", "b"], channels=30, steps=(260, 300))
    model = slts.BBSClassifier(6, random_state=0).fit(data.X[:24], data.y[:24])
    content = collect(model, data.X_test[:3], data.y_test[:3])
    mean = np.mean(content["importance"]["channels"], axis=0)
    largest = np.sort(np.argsort(-mean)[:MOST_CHANNELS])
    assert content["drawing"]["channels"] == largest.tolist()
    for entry in content["explorer"]["entries"]:
        assert entry["bins"] == packing.MOST_STEPS < entry["length"]
        drawn = unpack(entry["parts"][1]["contributions"])
        assert len(drawn) == (MOST_CHANNELS + 1) * entry["bins"]
        exact = slts.explain(model, data.X_test[entry["index"]]).contributions[0].sum()
        assert drawn.sum() == pytest.approx(exact, abs=2 * np.abs(drawn).max() / 126)


def test_of_many_classes_the_best_are_explained():
    data = Data([f"class {k}" for k in range(14)], channels=14)
    model = slts.OneNNClassifier().fit(data.X, data.y)
    for entry in collect(model, data.X_test[:20], data.y_test[:20])["explorer"]["entries"]:
        classes, scores = {part["class"] for part in entry["parts"]}, np.array(entry["scores"])
        assert len(classes) == 12
        assert {entry["predicted"], entry["truth"]} <= classes
        left_out = scores[sorted(set(range(14)) - classes)]
        assert left_out.max() <= scores[sorted(classes - {entry["truth"]})].min()


def test_points_are_principal_components_of_the_features(content, model, three):
    index = [entry["index"] for entry in content["explorer"]["entries"]]
    features = model.transform(three.X_test[index])
    left, values, _ = np.linalg.svd(features - features.mean(axis=0), full_matrices=False)
    exact, points = left[:, :2] * values[:2], np.array(content["space"]["points"])
    np.testing.assert_allclose(np.abs(points), np.abs(exact), rtol=1e-2, atol=1e-3 * values[0])


def test_card_lists_parameters_and_facts(content):
    card = content["card"]
    assert ["n_landmarks", "16", "set"] in card["parameters"]
    assert "default" in next(row for row in card["parameters"] if row[0] == "gamma")
    assert card["library"] == f"slts {slts.__version__}"
    assert "convex problems, solved" in dict(card["facts"])["Solver"]
    facts = dict(collect(fitted("search"))["card"]["facts"])
    assert facts["Classifier"] == "slts.BBSClassifier"
    assert facts["Chosen by the search"].startswith("gamma = ")


def test_inconsistent_arguments_raise_an_error(model, three):
    with pytest.raises(ValueError, match="'X' parameter is None"):
        collect(model, None, three.y_test)
    with pytest.raises(DataError, match="30 series and 2 ids"):
        collect(model, three.X_test, ids=["a", "b"])
    with pytest.raises(DataError, match="30 series and 3 labels"):
        collect(model, three.X_test, three.y_test[:3])
    with pytest.raises(DataError, match="X is empty"):
        collect(model, three.X_test[:0])
    with pytest.raises(NotFittedError):
        collect(slts.SLTSClassifier())
    with pytest.raises(TypeError, match=r"'model' parameter.*DummyClassifier"):
        collect(DummyClassifier().fit([[0], [1]], [0, 1]))


def test_what_is_missing_is_said_and_not_drawn(with_gaps):
    content = collect(**with_gaps)
    missing, batch = content["explorer"]["missing"], slts.as_series(with_gaps["X"])
    assert missing == {"n_series": 20, "channels": [["sensor 1", 200 / batch.n_steps]]}
    share = f"{100 * 200 / batch.n_steps:.1f}"
    assert f"missing in 20 of 20 series (share of the values: sensor 1 {share}%)" in render(content)

    def gap(rows, length):
        lines = unpack(rows).reshape(length, 4)
        return np.isnan(lines).any(axis=0).tolist(), np.flatnonzero(np.isnan(lines[:, 1])).tolist()

    for item in [*content["explorer"]["entries"], *content["references"]["items"]]:
        steps = list(range(10, 20))
        assert gap(item["rows"], item["length"]) == ([False, True, False, False], steps)
    items, shown = content["snippets"]["items"], 0
    for sides in content["snippets"]["gallery"]:
        for one in [*sides["for"], *sides["against"]]:
            channels = items[one["snippet"]]["channels"]
            for channel, row in zip(channels, one["example"]["rows"], strict=True):
                assert np.isnan(unpack(row)).any() == (channel == 1)
                shown += channel == 1
    assert shown > 0


def test_copies_are_no_evidence_about_new_series_or_new_groups(three, model):
    for groups, population in ((None, "new series"), (np.arange(48) // 3, "series of new groups")):
        page = " ".join(render(collect(model, three.X, three.y, groups=groups)).split())
        lede = page[page.index('class="lede"') :]
        assert f"the model classifies {population}." in lede[: lede.index("</span>")]
