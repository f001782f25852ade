"""Same series, same seed, same parameters: same model, wherever the series are stored."""

from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from slts.models.snippets import Snippets
from slts.training.first_pass import class_weights, count_and_sample
from slts.training.local_metrics import learn_local_metrics
from slts.training.partitioned_ridge import one_vs_rest

import slts
from slts.execution import ThreadRunner
from slts.training import landmark_fit, local_fit, local_metrics, memory_plan
from slts.training.sampling import SampleSize
from slts.training.scans import ArraySource
from tests.estimators.kinds import every, quick
from tests.estimators.scan_data import CHANNELS, draw, long_table, write_lists, write_long

pytestmark = pytest.mark.usefixtures("tables_in_parts")

N = 60
KINDS = [
    slts.SLTSClassifier,
    slts.SLTSClassifierCV,
    slts.BBSClassifier,
    slts.BBSClassifierCV,
    slts.LocalSLTSClassifier,
]
SELECTION_METHODS = ["random", "kmedoids", "dselect"]


def small_data(n=N):
    """Three classes; every fifteenth series occurs twice."""
    series, labels = draw(np.random.default_rng(5), n)
    for k in range(0, n, 15):
        series[k + 1], labels[k + 1] = series[k], labels[k]
    return series, labels


@pytest.fixture(scope="module")
def data():
    return small_data()


def shuffled(data, seed=1):
    order = np.random.default_rng(seed).permutation(len(data[1]))
    return [data[0][i] for i in order], data[1][order]


# -- sources: functions of series, labels and an empty folder, which return arguments of fit


def arrays(data, folder):
    return data


def arrays_shuffled(data, folder):
    return shuffled(data)


def one_file(rows):
    def store(data, folder):
        path = write_long(folder / "data.parquet", *data, rows=rows)
        return (slts.scan_series(path, label="label"),)

    return store


def several_files(data, folder):
    """Files, series and identifiers in random order."""
    series, labels = shuffled(data, 2)
    ids = np.random.default_rng(0).permutation(10 * len(series))[: len(series)]
    for name, share in zip("dbac", np.array_split(np.arange(len(series)), 4), strict=True):
        table = long_table([series[i] for i in share], labels[share], ids[share])
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=61)
    return (slts.scan_series(folder, label="label"),)


def rows_of_lists(data, folder):
    return (slts.scan_series(write_lists(folder / "lists.parquet", *data), label="label"),)


def dask_bag(data, folder):
    bag = pytest.importorskip("dask.bag", reason="needs the extra dask")
    pairs = list(zip(data[0], data[1].tolist(), strict=True))
    return (slts.scan_series(bag.from_sequence(pairs, npartitions=4)),)


def dask_frame(data, folder):
    frame = pytest.importorskip("dask.dataframe", reason="needs the extra dask")
    table: pd.DataFrame = long_table(*data).to_pandas().set_index("id")
    collection = frame.from_pandas(table, npartitions=3, sort=True)
    return (slts.scan_series(collection, time="t", label="label", channels=list(CHANNELS)),)


SOURCES = {
    "arrays shuffled": arrays_shuffled,
    "small row groups": one_file(20),
    "row groups": one_file(97),
    "one row group": one_file(10**6),
    "files shuffled": several_files,
    "lists": rows_of_lists,
    "dask bag": dask_bag,
    "dask frame": dask_frame,
}


@pytest.fixture(scope="module")
def sources(data, tmp_path_factory):
    """Stored data by the name of the source."""
    stored = {}

    def get(name):
        if name not in stored:
            stored[name] = SOURCES[name](data, tmp_path_factory.mktemp("source"))
        return stored[name]

    return get


@pytest.fixture(scope="module")
def in_memory(data):
    """Models of the arrays, by class and landmarks."""
    models = {}

    def get(kind, **parameters):
        name = (kind, *parameters.items())
        if name not in models:
            models[name] = quick(kind, **parameters).fit(*data)
        return models[name]

    return get


def assert_same_model(one, other, series, tol=1e-9):
    assert np.array_equal(one.training_digests_, other.training_digests_)
    assert len(one.landmarks_) == len(other.landmarks_)
    for a, b in zip(one.landmarks_, other.landmarks_, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(one.classes_, other.classes_)
    if isinstance(one, slts.LocalSLTSClassifier):
        names = ["intercept_", "snippet_coef_"]
        pairs = zip(one.local_metrics_, other.local_metrics_, strict=True)
        rounded = [
            [replace(choice, error=round(choice.error, 9)) for choice in model.selection_]
            for model in (one, other)
        ]
        assert rounded[0] == rounded[1]
        assert_same_snippets(one.snippets_, other.snippets_)
    else:
        names, pairs = ["metrics_", "coef_"], []
    for a, b in [*pairs, *((getattr(one, name), getattr(other, name)) for name in names)]:
        np.testing.assert_allclose(a, b, rtol=0, atol=tol * np.abs(a).max())
    assert one.probability_scale_ == pytest.approx(other.probability_scale_, rel=tol)
    if hasattr(one, "best_params_"):
        assert one.best_params_ == other.best_params_
        scores = [m.cv_results_["mean_test_score"] for m in (one, other)]
        np.testing.assert_allclose(*scores)
    np.testing.assert_array_equal(one.predict(series), other.predict(series))


def assert_same_snippets(one, other):
    """All but the numbers of their series, which are those of the source."""
    for field in fields(Snippets):
        if field.name not in ("series", "scale"):
            a, b = getattr(one, field.name), getattr(other, field.name)
            np.testing.assert_array_equal(a, b, err_msg=field.name)


# One family of landmark classifiers stands for the others in the fast tests.
EVERY_SOURCE = [
    pytest.param(kind, name, marks=pytest.mark.slow)
    if kind in KINDS[:2] and name != "files shuffled"
    else (kind, name)
    for kind in KINDS
    for name in SOURCES
]


@pytest.mark.parametrize(("kind", "name"), EVERY_SOURCE)
def test_storage_and_order_do_not_matter(kind, name, sources, in_memory, data):
    model = quick(kind).fit(*sources(name))
    assert_same_model(model, in_memory(kind), data[0])
    assert model.n_series_in_ == N
    assert model.n_steps_in_ == sum(x.shape[1] for x in data[0])


@pytest.mark.slow
@every(KINDS)
@pytest.mark.parametrize("landmarks", SELECTION_METHODS[1:])
def test_chosen_landmarks_do_not_depend_on_order(kind, landmarks, sources, in_memory, data):
    model = quick(kind, landmarks=landmarks).fit(*sources("files shuffled"))
    assert_same_model(model, in_memory(kind, landmarks=landmarks), data[0])


@every([*KINDS, slts.OneNNClassifier, slts.SimilaritySVC, slts.LDMLTClassifier])
def test_repeated_series_are_series_of_weight_two(kind, data):
    series, labels = data
    count = np.random.default_rng(0).integers(0, 3, size=N)
    repeated = np.repeat(np.arange(N), count)
    twice = quick(kind).fit([series[i] for i in repeated], labels[repeated])
    if kind in (slts.OneNNClassifier, slts.LDMLTClassifier):
        # Neighbours have no weights.
        other = quick(kind).fit([series[i] for i in np.unique(repeated)], labels[count > 0])
    else:
        other = quick(kind).fit(series, labels, sample_weight=count)
    np.testing.assert_array_equal(twice.decision_function(series), other.decision_function(series))
    np.testing.assert_array_equal(twice.predict_proba(series), other.predict_proba(series))


@every([slts.OneNNClassifier, slts.SimilaritySVC, slts.LDMLTClassifier])
def test_classifiers_of_all_series_read_a_scan_into_memory(kind, sources, data):
    read, held = (quick(kind).fit(*source) for source in (sources("files shuffled"), data))
    np.testing.assert_array_equal(read.decision_function(data[0]), held.decision_function(data[0]))
    np.testing.assert_array_equal(read.predict_proba(data[0]), held.predict_proba(data[0]))


def test_indices_of_landmarks_are_those_of_the_source(sources, in_memory, data):
    model = in_memory(slts.BBSClassifier)
    for index, landmark in zip(model.landmark_indices_, model.landmarks_, strict=True):
        np.testing.assert_array_equal(landmark, data[0][index])
    (scan,) = sources("files shuffled")
    model, found = quick(slts.BBSClassifier).fit(scan), scan.read()
    assert model.landmarks_ == found.series[model.landmark_indices_]
    again = quick(slts.BBSClassifier, landmarks=model.landmark_indices_).fit(scan)
    assert_same_model(again, model, data[0])


def test_series_of_snippets_are_those_of_the_source(sources, in_memory, data):
    (scan,) = sources("files shuffled")
    read = quick(slts.LocalSLTSClassifier).fit(scan)
    for model, series in (
        (in_memory(slts.LocalSLTSClassifier), data[0]),
        (read, scan.read().series),
    ):
        found = model.snippets_
        for k in range(0, len(found), 10):
            x = series[found.series[k]]
            steps = found.starts[k] + found.dilations[k] * np.arange(found.n_steps)
            own = x[np.ix_(found.channels_of(k), steps.clip(0, x.shape[1] - 1))]
            np.testing.assert_array_equal(own, found.values_of(k))


@every(KINDS)
def test_another_seed_is_another_model(kind, in_memory, data):
    other = quick(kind, random_state=1).fit(*data)
    assert set(other.landmark_indices_) != set(in_memory(kind).landmark_indices_)


# -- alignments in parts


@pytest.fixture(scope="module")
def more():
    return small_data(300)


@pytest.fixture
def in_parts(monkeypatch):
    """A sample of 60 series, small blocks, most of them in temporary files."""
    monkeypatch.setattr(landmark_fit, "_sample_size", lambda *_: SampleSize(60, np.inf, 1, 20))
    monkeypatch.setattr(landmark_fit, "_SAMPLED_PER_CLASS", 5)
    monkeypatch.setattr(memory_plan, "_MOST_CHUNK", 1 << 12)
    monkeypatch.setattr(memory_plan.MemoryPlan, "resident", 10_000.0)


STORES = {"arrays": arrays, "shuffled": arrays_shuffled, "50": one_file(50), "700": one_file(700)}


def assert_same_objectives(one, other, stages=("metric", "separator")):
    for a, b in zip(one.landmarks_, other.landmarks_, strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(one.reports_, other.reports_, strict=True):
        assert (a.positive, a.stage, a.converged) == (b.positive, b.stage, True)
        if a.stage in stages:
            assert a.objective == pytest.approx(b.objective, rel=1e-6)


@pytest.mark.slow
@every([slts.SLTSClassifier, slts.BBSClassifier])
@pytest.mark.parametrize("weight", [None, "balanced"])
def test_parts_do_not_matter(kind, weight, more, tmp_path, in_parts, monkeypatch, caplog):
    how = {"gamma": 1e-2, "class_weight": weight}
    with caplog.at_level("INFO", "slts"):
        parts = [quick(kind, **how).fit(*store(more, tmp_path)) for store in STORES.values()]
    assert caplog.text.count("in temporary files") == len(STORES)
    for model in parts[1:]:
        assert_same_objectives(model, parts[0])
        np.testing.assert_array_equal(model.predict(more[0]), parts[0].predict(more[0]))
    monkeypatch.undo()
    whole = quick(kind, **how).fit(*more)
    # A separator depends on a metric, which is known to the tolerance of its objective.
    stage = "metric" if kind is slts.SLTSClassifier else "separator"
    assert_same_objectives(parts[0], whole, [stage])
    assert np.mean(parts[0].predict(more[0]) == whole.predict(more[0])) > 0.99


@pytest.fixture
def local_in_parts(monkeypatch):
    """A sample of some of the series; what it decides and what is learned from all of them."""
    monkeypatch.setattr(local_fit, "_FEWEST", 10)
    monkeypatch.setattr(local_fit, "_PER_CLASS_DRAWN", 10)
    # Chosen snippets could choose another weight than the candidates.
    monkeypatch.setattr(local_metrics, "_SNIPPET_SHARES", (2.0,))
    calls = []

    def learn(*arguments):
        calls.append((arguments, learn_local_metrics(*arguments)))
        return calls[-1][1]

    monkeypatch.setattr(local_fit, "learn_local_metrics", learn)
    return calls


def test_the_local_classifier_learns_from_all_parts(more, tmp_path, local_in_parts):
    how = {"memory_limit": "4MB", "class_weight": "balanced", "n_phases": 1, "penalties": [0.1]}
    stores = [*STORES.values(), dask_bag]
    models = [
        quick(slts.LocalSLTSClassifier, **how).fit(*store(more, tmp_path)) for store in stores
    ]
    for model in models[1:]:
        assert_same_model(model, models[0], more[0])
        np.testing.assert_allclose(
            model.held_out_margins_.margins, models[0].held_out_margins_.margins, atol=1e-9
        )
    (training, representations, options, _), found = local_in_parts[0]
    source = ArraySource(slts.as_series(more[0]), more[1])
    every = count_and_sample(source, ThreadRunner(1), SampleSize(), seed=options.seed)
    known = {x.tobytes(): k for k, x in enumerate(every.sample.series)}
    sampled = np.array([known[x.tobytes()] for x in training.batch])
    assert len(sampled) < 0.8 * len(known)
    assert models[0].validation_.n_series == len(sampled) - len(training.tuning)
    # Landmarks, scales, anchors and snippets of the sample, and all series in memory.
    weights = class_weights("balanced", every.classes, every.totals)[every.codes]
    weights = weights * every.sample.weights
    whole = learn_local_metrics(
        replace(
            training,
            batch=every.sample.series,
            codes=every.codes,
            weights=weights / weights.mean(),
            targets=one_vs_rest(every.codes, 3),
            anchors=sampled[training.anchors],
            tuning=sampled[training.tuning],
            snippets=found.snippets,
            everything=None,
        ),
        representations,
        options,
    )
    assert found.ridge.objective == pytest.approx(whole.ridge.objective, rel=1e-9)
    # Tuning series are left out before they choose snippets, here from other candidates.
    others = np.setdiff1d(np.arange(len(sampled)), training.tuning)
    in_memory = learn_local_metrics(
        replace(training, everything=None), representations, options
    ).ridge.left_out
    np.testing.assert_allclose(
        found.ridge.left_out[training.tuning], in_memory[training.tuning], atol=1e-8
    )
    np.testing.assert_allclose(
        found.ridge.left_out[others], whole.ridge.left_out[sampled[others]], atol=1e-8
    )
    for a, b in zip(found.metrics, whole.metrics, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-8)
    np.testing.assert_allclose(found.snippet_coef, whole.snippet_coef, atol=1e-8)
    np.testing.assert_allclose(found.intercept, whole.intercept, atol=1e-8)
