"""The content of a report consists of the model's own numbers, and JSON can hold it."""

import copy
import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import slts
from slts.errors import DataError
from slts.guarantees.bounds import clopper_pearson, group_accuracy_interval
from slts.report import collect, packing, render
from slts.report.card import model_fingerprint
from slts.report.collect import MOST_CHANNELS
from slts.report.explorer import Explorer, Limits, choose_series, points_to_show
from slts.report.predictions import predict_series
from slts.report.references import drawing_of, references_of
from tests.report.conftest import DATA, KINDS, Data, fitted
from tests.report.unpacking import unpack, unpack_path


@pytest.mark.slow
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("kind", KINDS)
def test_every_model_has_content_that_json_can_hold(kind, data):
    X, y = DATA[data].X_test, DATA[data].y_test
    for given in ((X, y), (X, None), (None, None)):
        found = collect(fitted(kind, data), *given)
        assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_summary_has_the_figures_of_the_model(content, model, three):
    summary, own = content["summary"], slts.summarize(model)
    assert summary["n_numbers"] == own.n_numbers
    assert summary["n_references"] == len(own.landmark_indices)
    assert (summary["n_series"], summary["n_classes"]) == (len(three.X_test), 3)
    accuracy = summary["accuracy"]
    assert accuracy["value"] == model.score(three.X_test, three.y_test)
    # The exact interval of Clopper and Pearson has 2.5% on either side.
    errors = accuracy["n"] - accuracy["correct"]
    assert 1 - accuracy["low"] == pytest.approx(clopper_pearson(errors, accuracy["n"], 0.025))
    assert accuracy["high"] == pytest.approx(
        clopper_pearson(accuracy["correct"], accuracy["n"], 0.025)
    )


def test_confusion_counts_every_series_once(content, model, three):
    counts = np.array(content["confusion"]["counts"])
    predicted = model.predict(three.X_test)
    assert counts.sum(axis=1).tolist() == [10, 10, 10]
    assert counts.sum(axis=0).tolist() == [int((predicted == c).sum()) for c in model.classes_]
    assert counts.trace() == content["summary"]["accuracy"]["correct"]
    assert content["data"]["correct"] == counts.diagonal().tolist()
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


@pytest.mark.parametrize("kind", ["slts", "slts, constant channel", "bbs", "svc", "local"])
def test_maps_are_the_exact_contributions(kind, three):
    found = collect(fitted(kind), three.X_test[:4], three.y_test[:4])["explorer"]
    maps = unpack(found["contributions"])
    for entry in found["entries"]:
        explanation = slts.explain(fitted(kind), three.X_test[entry["index"]])
        for slot, c in enumerate(entry["classes"]):
            drawn = maps[entry["contributions"] + slot].reshape(4, entry["bins"]).T
            exact = explanation.contributions[c]
            unit = np.abs(exact).max() / 126
            np.testing.assert_allclose(drawn, exact, atol=1.01 * unit)
            # Sums over steps are preserved.
            np.testing.assert_allclose(drawn.sum(axis=0), exact.sum(axis=0), atol=1.01 * unit)
            assert entry["offset"][slot] == pytest.approx(explanation.offset[c], rel=1e-3)


@pytest.mark.parametrize("kind", ["slts", "local"])
def test_strongest_landmarks_are_those_of_the_explanation(kind, three):
    content = collect(fitted(kind), three.X_test[:4], three.y_test[:4])
    found, references = content["explorer"], content["references"]
    for entry, terms in zip(found["entries"], unpack(found["by_step"]), strict=True):
        explanation = slts.explain(fitted(kind), three.X_test[entry["index"]])
        by_step = iter(terms.reshape(-1, entry["bins"]))
        for slot, chosen in enumerate(entry["strongest"]):
            values = explanation.by_landmark[slot]
            largest = np.sort(np.abs(values))[::-1][: len(chosen)]
            np.testing.assert_allclose([abs(v) for _, v in chosen], largest, rtol=1e-3)
            short = entry["snippets"][slot] if kind == "local" else 0
            total = sum(v for _, v in chosen) + entry["rest"][slot] + short
            total += explanation.intercept[slot]
            assert total == pytest.approx(explanation.decision[slot], rel=1e-2, abs=1e-3)
            for j, value in chosen:
                position = explanation.landmark_indices.tolist().index(references["index"][j])
                assert value == pytest.approx(values[position], rel=1e-3)
                path = explanation.alignments[position].path
                assert unpack_path(entry["paths"][str(j)]).tolist() == path.tolist()
                # Lines show the contributions of the first feature map.
                exact = explanation.of_landmark(position, feature_map=0)[slot].sum(axis=1)
                np.testing.assert_allclose(next(by_step), exact, atol=np.abs(terms).max() / 60)


def test_two_classes_have_opposite_contributions(two):
    found = collect(fitted("slts", "two"), two.X_test, two.y_test)
    maps = unpack(found["explorer"]["contributions"])
    for entry in found["explorer"]["entries"]:
        first, second = maps[entry["contributions"]], maps[entry["contributions"] + 1]
        np.testing.assert_allclose(first, -second, atol=np.abs(second).max() / 60)
        assert entry["scores"][0] == -entry["scores"][1]
    assert found["model"]["decision_classes"] == [1]


def test_importance_is_that_of_summarize(content, model, three):
    importance = slts.summarize(model, three.X_test).channel_importance
    share = importance / importance.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(content["importance"]["channels"], share, rtol=1e-3)
    for found, metric in zip(content["importance"]["metrics"], model.metrics_, strict=True):
        np.testing.assert_allclose(found["values"], metric, rtol=5e-3)


def test_landmarks_are_drawn_largest_share_first(content, model):
    references = content["references"]
    rows = unpack(references["rows"])
    for decision, row in enumerate(references["gallery"]):
        weights = model.coef_[decision] / np.abs(model.coef_[decision]).sum()
        assert row["used"] == np.count_nonzero(weights)
        places = [
            model.landmark_indices_.tolist().index(references["index"][j]) for j in row["shown"]
        ]
        np.testing.assert_allclose(row["effect"], weights[places], rtol=5e-3)
        assert np.all(np.diff(np.abs(row["effect"])) <= 0)
        j = row["shown"][0]
        drawn = rows[j].reshape(references["length"][j], -1)
        mapped = model.model_.aligned[0].rows(model.landmarks_[[places[0]]]).values
        np.testing.assert_allclose(drawn, mapped, atol=1e-4)


def test_certificate_is_that_of_certify(content, model, three):
    own = slts.certify(model, three.X_test, three.y_test).headline
    found = content["certificate"]
    assert found["certified"]
    assert found["bounds"][0]["value"] == pytest.approx(own.value, rel=1e-5)
    assert found["bounds"][0]["sentence"] == own.sentence


def test_groups_are_the_independent_draws(model, three):
    groups = np.arange(len(three.X_test)) // 3
    found = collect(model, three.X_test, three.y_test, groups=groups)
    own = slts.certify(model, three.X_test, three.y_test, groups=groups)
    assert found["certificate"]["bounds"][0]["sentence"] == own.headline.sentence
    right = model.predict(three.X_test) == three.y_test
    low, high = group_accuracy_interval(right.reshape(-1, 3).mean(), 10)
    assert (found["summary"]["accuracy"]["low"], found["summary"]["accuracy"]["high"]) == (
        low,
        high,
    )
    assert "for the mean of a new group, from 10 groups" in render(found)


def test_nothing_is_certified_on_training_series(model, three):
    found = collect(model, three.X, three.y)["certificate"]
    assert not found["certified"]
    assert "copy of a training series" in found["reason"]


def test_labels_unknown_to_the_model_count_as_errors(model, three):
    y = three.y_test.astype(object)
    y[:2] = "south"
    found = collect(model, three.X_test, y)
    assert found["labels"] == ["east", "north", "west", "south"]
    assert sum(found["confusion"]["counts"][3]) == 2
    assert found["explorer"]["n_wrong"] >= 2
    assert "south" in found["certificate"]["reason"]


def test_without_data_the_report_describes_the_model(model):
    found = collect(model)
    for part in ("explorer", "space", "data", "confusion"):
        assert found[part] is None
    assert found["summary"]["accuracy"] is None
    assert found["references"]["gallery"]
    assert not found["certificate"]["certified"]
    own = slts.summarize(model).channel_importance
    shares = own / own.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found["importance"]["channels"], shares, rtol=1e-3)


def test_neighbours_are_the_nearest_of_their_class(three):
    model = fitted("1nn")
    found = collect(model, three.X_test[:5], three.y_test[:5])
    nearness = slts.similarity(three.X_test[:5], three.X)
    for entry in found["explorer"]["entries"]:
        for c, chosen in enumerate(entry["strongest"]):
            own = nearness[entry["index"], three.y == model.classes_[c]]
            assert chosen[0][1] == pytest.approx(own.max(), rel=1e-3)
            assert all(found["references"]["class"][j] == c for j, _ in chosen)
    assert not found["explorer"]["has_contributions"]
    assert found["importance"]["channels"] is None


@pytest.mark.parametrize("kind", ["1nn", "ldmlt"])
def test_neighbours_have_their_positions_in_the_training_series(kind, three):
    model = fitted(kind)
    found = collect(model, three.X_test[:5], three.y_test[:5])["references"]
    drawn = unpack(found["rows"])
    for index, rows, length in zip(found["index"], drawn, found["length"], strict=True):
        expected = model.model_.row_map(three.X[index : index + 1]).values
        np.testing.assert_allclose(rows.reshape(length, -1), expected, atol=1e-4)


def test_a_metric_of_all_classes_is_drawn_once():
    (found,) = collect(fitted("ldmlt"))["importance"]["metrics"]
    assert found["decision"] is None
    np.testing.assert_allclose(found["values"], fitted("ldmlt").metric_, rtol=5e-3)


def test_local_metrics_are_drawn_by_part_of_the_landmarks(three):
    found = collect(fitted("local"))["importance"]
    assert [m["part"] for m in found["metrics"]] == 3 * ["phase 1 of 2", "phase 2 of 2"]
    assert found["metric_map"] == "values"
    assert found["metric_channels"] == [*three.X.channel_names, "constant"]
    metrics = fitted("local").model_.metrics()[0, 0]
    for drawn, metric in zip(found["metrics"][:2], metrics, strict=True):
        np.testing.assert_allclose(drawn["values"], metric, rtol=5e-3)
    assert [name for name, _ in found["feature_maps"]] == ["values", "changes", "snippets"]
    assert sum(share for _, share in found["feature_maps"]) == pytest.approx(1, abs=1e-3)


def test_landmarks_of_local_models_are_grouped_by_their_class_strongest_first(three):
    model = fitted("local")
    found = collect(model, three.X_test, three.y_test)["references"]
    assert not found["weighted"]
    terms = model.transform(three.X_test).reshape(len(three.X_test), 3, -1)
    terms = terms[:, :, : len(model.landmarks_)]
    effect = np.abs(terms - terms.mean(axis=0)).mean(axis=0)
    for c, row in enumerate(found["gallery"]):
        indices = [found["index"][j] for j in row["shown"]]
        assert len(indices) == min(4, row["used"])
        assert set(three.y[indices]) == {model.classes_[row["class"]]} == {model.classes_[c]}
        places = [model.landmark_indices_.tolist().index(index) for index in indices]
        np.testing.assert_allclose(row["effect"], effect[c, places], rtol=1e-2)
        assert np.all(np.diff(row["effect"]) <= 0)


def test_offset_cells_landmarks_and_snippets_add_up():
    for kind in ("slts", "svc", "local"):
        content = collect(fitted(kind), DATA["three"].X_test[:4], DATA["three"].y_test[:4])
        for entry in content["explorer"]["entries"]:
            for slot, c in enumerate(entry["classes"]):
                parts = [value for _, value in entry["strongest"][slot]]
                parts += [entry["rest"][slot], entry["intercept"][slot]]
                parts.append(entry["snippets"][slot] if kind == "local" else 0.0)
                assert sum(parts) == pytest.approx(entry["scores"][c], rel=1e-2, abs=1e-3)


def test_series_landmarks_and_snippets_have_the_names_and_times_of_the_user(recorded):
    found = collect(**recorded)
    model, X = recorded["model"], recorded["X"]
    references = found["references"]
    for entry in found["explorer"]["entries"]:
        assert entry["id"] == f"recording {500 + entry['index']}"
        assert entry["clock"] == {"start": 10.0, "span": pytest.approx((entry["length"] - 1) / 50)}
    assert len(found["explorer"]["times"]["sizes"]) == len(X)
    for index, name, c in zip(
        references["index"], references["name"], references["class"], strict=True
    ):
        assert name == f"recording {index}"
        assert f"{model.classes_[c]}, {name}" == model.series_name(index)
    assert all(clock["start"] == 10.0 for clock in references["clock"])
    assert all(" of recording " in text for text in found["snippets"]["text"])
    assert found["space"]["landmark_labels"] == [
        model.series_class(index) for index in model.landmark_indices_
    ]


def test_training_series_are_counted(three):
    for kind in ("slts", "local", "1nn", "pipeline"):
        model = fitted(kind)
        assert collect(model, three.X, three.y)["summary"]["n_seen"] == len(three.X)
        assert collect(model, three.X_test)["summary"]["n_seen"] == 0


def test_the_strongest_snippets_are_those_of_summarize(three):
    # Pressure in pascals, about 100 bar, beside small and large values.
    scales, levels = np.array([1e-3, 1e6, 5.0, 1.0]), np.array([0.0, 0.0, 1e7, 0.0])
    X, X_test = (
        batch.with_values(batch.values * scales + levels, batch.channel_names)
        for batch in (three.X, three.X_test)
    )
    model = slts.LocalSLTSClassifier(6, n_snippets=100, random_state=0).fit(X, three.y)
    found = collect(model, X_test, three.y_test)["snippets"]
    weights = slts.summarize(model).snippet_effect
    values = by_picture(found["values"], found["channels"])
    for sides, row in zip(found["gallery"], weights, strict=True):
        for name, sign in (("for", 1), ("against", -1)):
            order = np.argsort(-sign * row, kind="stable")[:3].tolist()
            assert len(sides[name]) == 3
            for item, k in zip(sides[name], order, strict=True):
                j = item["snippet"]
                assert item["weight"] == pytest.approx(row[k], rel=1e-3)
                assert found["position"][j] == k
                assert found["text"][j] == model.snippets_.describe(k, three.X.channel_names)
                kind = model.snippets_.shape_only[k], model.snippets_.by_strength[k]
                words = {(False, False): "values", (True, False): "shape only"}
                assert found["compared"][j] == words.get(kind, "by strength")
                drawn = model.snippets_.prominent_rows(k, 3)
                assert found["channels"][j] == model.snippets_.channels_of(k)[drawn].tolist()
                exact = model.snippets_.values_of(k)[drawn]
                for own, low, expected in zip(values[j], found["lowest"][j], exact, strict=True):
                    unit = np.ptp(expected) / 3e4 + 1e-6 * abs(low)
                    np.testing.assert_allclose(low + own, expected, atol=unit)


def by_picture(packed, channels):
    """Rows of every picture, which are packed one by one."""
    rows = iter(unpack(packed))
    return [[next(rows) for _ in own] for own in channels]


def test_examples_are_the_series_in_which_a_snippet_adds_most(three):
    model = fitted("local")
    ids = [f"test {i}" for i in range(len(three.X_test))]
    given = collect(model, three.X_test, three.y_test, ids=ids)["snippets"]
    alone = collect(model)["snippets"]
    for found, batch, names in (
        (given, three.X_test, ids),
        (alone, model.landmarks_, [f"training series {k}" for k in model.landmark_indices_]),
    ):
        added = unpack(found["example_added"])
        parts = np.array([slts.explain(model, x).by_snippet for x in batch])
        items = [
            (decision, sign, item)
            for decision, sides in enumerate(found["gallery"])
            for name, sign in (("for", 1), ("against", -1))
            for item in sides[name]
        ]
        channels = [found["channels"][item["snippet"]] for _, _, item in items]
        rows = by_picture(found["example_rows"], channels)
        for place, (decision, sign, item) in enumerate(items):
            k, example = found["position"][item["snippet"]], item["example"]
            best = int(np.argmax(sign * parts[:, decision, k]))
            assert example["id"] == names[best]
            assert example["adds"] == pytest.approx(parts[best, decision, k], rel=1e-3)
            assert added[place].sum() == pytest.approx(parts[best, decision, k], rel=0.1)
            exact = batch[best][channels[place]]
            lowest = exact.min(axis=1)
            if found["compared"][item["snippet"]] == "values":
                lowest = found["lowest"][item["snippet"]]
            for own, low, expected in zip(rows[place], lowest, exact, strict=True):
                unit = np.abs(expected - low).max() / 3e4 + 1e-6 * abs(low)
                np.testing.assert_allclose(low + own, expected, atol=unit)
            # The closest occurrence meets as many thresholds as any.
            met = slts.explain(model, batch[best]).occurrences(k)
            assert met[example["centre"]] == met.max()
    assert (given["of_training"], alone["of_training"]) == (False, True)


@pytest.mark.parametrize("data", DATA)
def test_snippets_at_a_step_are_those_that_occur_there(data):
    model, X = fitted("local", data), DATA[data].X_test[:4]
    content = collect(model, X, DATA[data].y_test[:4])
    found, snippets = content["explorer"], content["snippets"]
    packed, snippet_map = found["occurring"], model.snippets_
    for place, entry in enumerate(found["entries"]):
        explanation = slts.explain(model, X[entry["index"]])
        n, shape = entry["bins"], (len(entry["classes"]), entry["bins"])
        met = np.array([explanation.occurrences(k) for k in range(len(model.snippets_))])
        counts, strongest = (unpack(packed[key])[place] for key in ("counts", "strongest"))
        values, totals = (unpack(packed[key])[place] for key in ("values", "totals"))
        assert counts.tolist() == (met > 0).sum(axis=0).tolist()
        for slot, c in enumerate(entry["classes"]):
            position, sign = explanation.for_class(model.classes_[c])
            weights = sign * snippet_map.step_weights(n, model.snippet_coef_)[:, :, position]
            added = np.take_along_axis(weights, met, axis=1)
            unit = np.abs(totals).max() / 126
            np.testing.assert_allclose(totals.reshape(shape)[slot], added.sum(axis=0), atol=unit)
            exact = sign * explanation.by_snippet[position].sum()
            assert entry["snippets"][slot] == pytest.approx(exact, rel=1e-3, abs=1e-9)
            largest = np.sort(np.abs(np.where(met > 0, added, 0.0)), axis=0)[::-1][:3].T
            drawn = values.reshape(*shape, 3)[slot]
            np.testing.assert_allclose(np.abs(drawn), largest, atol=np.abs(values).max() / 100)
            for i, named in enumerate(strongest.reshape(*shape, 3)[slot]):
                for j, value in zip(named, drawn[i], strict=True):
                    k = snippets["position"][j]
                    assert value == pytest.approx(added[k, i], abs=np.abs(values).max() / 100)


def test_models_without_snippets_have_no_part_about_them(content):
    assert content["snippets"] is content["explorer"]["occurring"] is None
    assert content["summary"]["n_snippets"] is None


def test_the_fingerprint_is_that_of_all_numbers(three):
    model = fitted("local")
    *aligned, snippets = model.model_.maps
    row_map = replace(aligned[0].row_map, constant=2.0 * aligned[0].row_map.constant)
    for maps in (
        (*aligned, replace(snippets, thresholds=2 * snippets.thresholds)),
        (replace(aligned[0], row_map=row_map), *aligned[1:], snippets),
    ):
        other = copy.copy(model)
        other.model_ = replace(model.model_, maps=maps)
        assert model_fingerprint(model) != model_fingerprint(other)
    assert model_fingerprint(model) == model_fingerprint(copy.deepcopy(model))


@pytest.mark.parametrize(("kind", "method"), [("local", "transform"), ("1nn", "nearness")])
def test_predictions_and_similarities_are_computed_once(kind, method, three, monkeypatch):
    """The certificate uses the predictions of the report."""
    model, sizes = fitted(kind), {method: [], "decision_function": []}

    def count(name):
        original = getattr(type(model), name)

        def counted(self, X):
            sizes[name].append(len(X))
            return original(self, X)

        monkeypatch.setattr(type(model), name, counted)

    for name in sizes:
        count(name)
    assert collect(model, three.X_test, three.y_test)["certificate"]["certified"]
    assert sizes["decision_function"] == [30]
    # Local models also draw their landmarks.
    assert sorted(sizes[method]) == sorted([30, 12] if kind == "local" else [30])


def parts_of(model, data):
    """Predictions, drawn series and references of a model, as `collect` makes them."""
    predictions = predict_series(model, data.X_test, data.y_test)
    draw, _ = drawing_of(model, predictions.batch)
    return predictions, draw(predictions.batch), references_of(model, draw)


def test_many_series_are_sampled_misclassified_first(content, model, three):
    predictions, _, references = parts_of(model, three)
    kept, _ = choose_series(predictions, 4, references, None, Limits(series=12))
    assert len(kept) == len(set(kept.tolist())) == 12
    wrong = np.isin(kept, predictions.wrong)
    assert wrong.sum() == min(12, content["explorer"]["n_wrong"])
    assert wrong.tolist() == sorted(wrong, reverse=True)
    # All of them are points, those of the explorer first.
    shown = points_to_show(len(three.X_test), kept)
    assert shown[:12].tolist() == kept.tolist()
    assert sorted(shown) == list(range(len(three.X_test)))


def test_fewer_series_are_explained_if_it_takes_long(model, three):
    predictions, _, references = parts_of(model, three)
    n_landmarks = len(slts.summarize(model).landmark_indices)
    for most, expected in ((20 * n_landmarks, 20), (1, 5)):
        limits = Limits(alignments=most, fewest_series=5)
        kept, _ = choose_series(predictions, 4, references, None, limits)
        assert len(kept) == expected


def test_long_series_and_many_channels_are_downsampled_and_sums_are_preserved():
    data = Data(["a", "b"], channels=30, steps=(260, 300))
    model = slts.BBSClassifier(6, random_state=0).fit(data.X[:24], data.y[:24])
    found = collect(model, data.X_test[:3], data.y_test[:3])
    mean = np.mean(found["importance"]["channels"], axis=0)
    largest = np.sort(np.argsort(-mean)[:MOST_CHANNELS])
    assert found["drawing"]["channels"] == largest.tolist()
    maps = unpack(found["explorer"]["contributions"])
    for entry in found["explorer"]["entries"]:
        assert entry["bins"] == packing.MOST_STEPS < entry["length"]
        drawn = maps[entry["contributions"] + 1].reshape(MOST_CHANNELS + 1, entry["bins"])
        exact = slts.explain(model, data.X_test[entry["index"]]).contributions[0].sum()
        assert drawn.sum() == pytest.approx(exact, abs=2 * np.abs(drawn).max() / 126)


def test_of_many_classes_the_best_are_explained(model, three):
    predictions, rows, references = parts_of(model, three)
    kept, n_classes = choose_series(predictions, 4, references, None, Limits(classes=2))
    assert n_classes == 2
    explorer = Explorer(predictions, rows, np.arange(4), references, None, n_classes)
    similarities = references.similarities(predictions.batch[kept])
    for index, row in zip(kept.tolist(), similarities, strict=True):
        explorer.add(index, row)
    for entry in explorer.entries:
        assert len(entry["classes"]) == 2
        assert {entry["predicted"], entry["truth"]} <= set(entry["classes"])


def test_points_are_principal_components_of_transform(content, model, three):
    features = model.transform(three.X_test[content["space"]["index"]])
    left, values, _ = np.linalg.svd(features - features.mean(axis=0), full_matrices=False)
    exact, points = left[:, :2] * values[:2], np.array(content["space"]["points"])
    np.testing.assert_allclose(np.abs(points), np.abs(exact), rtol=1e-2, atol=1e-3 * values[0])


def test_card_lists_parameters_and_fingerprints(content, three):
    def fingerprint(card):
        return dict(card["provenance"])["Fingerprint of the model"]

    card = content["card"]
    assert ["n_landmarks", "16", "set"] in card["parameters"]
    assert "default" in next(row for row in card["parameters"] if row[0] == "gamma")
    assert card["library"] == f"slts {slts.__version__}"
    for seed, same in ((0, True), (1, False)):
        again = slts.SLTSClassifier(16, random_state=seed).fit(three.X, three.y)
        assert (fingerprint(collect(again)["card"]) == fingerprint(card)) is same
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
