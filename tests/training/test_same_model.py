"""Same series, same seed, same parameters: same model, wherever the series are stored."""

from dataclasses import fields

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import slts
from slts.features.snippets import Snippets
from tests.data import CHANNELS, NAMES, long_table, shuffled, waves, with_copies, write_lists
from tests.data import write_long as write
from tests.estimators.kinds import every, quick

pytestmark = pytest.mark.usefixtures("tables_in_parts")

LINEAR = [
    slts.SLTSClassifier,
    slts.SLTSClassifierCV,
    slts.BBSClassifier,
    slts.BBSClassifierCV,
    slts.LocalSLTSClassifier,
]
NEIGHBOURS = [slts.OneNNClassifier, slts.LDMLTClassifier]


def problem(n, noise=1.0):
    """Three classes; every fifteenth series occurs twice."""
    series, codes = waves(n, n_classes=3, noise=noise, seed=5)
    return with_copies(series, NAMES[codes])


@pytest.fixture(scope="module")
def data():
    return problem(60)


# ---- sources: functions of series, labels and an empty folder, which return arguments of fit


def one_file(rows):
    def store(data, folder):
        path = write(folder / "data.parquet", *data, rows=rows)
        return (slts.scan_series(path, label="label"),)

    return store


def several_files(data, folder):
    """Files, series and identifiers in random order."""
    series, labels = shuffled(*data, 2)
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
    "arrays shuffled": lambda data, folder: shuffled(*data),
    "small row groups": one_file(20),
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
    """Models of the arrays."""
    models = {}

    def get(kind, **parameters):
        name = (kind, *parameters.items())
        if name not in models:
            models[name] = quick(kind, **parameters).fit(*data)
        return models[name]

    return get


def assert_same_model(one, other, series, tolerance=0.0):
    """Compare all numbers but those of training series, which are those of the source."""
    np.testing.assert_array_equal(one.training_digests_, other.training_digests_)
    np.testing.assert_array_equal(one.classes_, other.classes_)
    assert (one.n_series_in_, one.n_steps_in_) == (other.n_series_in_, other.n_steps_in_)
    for a, b in zip(one.landmarks_, other.landmarks_, strict=True):
        np.testing.assert_array_equal(a, b)
    numbers = ([*m.model_.coefs, m.intercept_, m.probability_scale_] for m in (one, other))
    for a, b in zip(*numbers, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * np.abs(a).max())
    if one.model_.snippets is not None:
        for name in {field.name for field in fields(Snippets)} - {"series", "scale"}:
            a, b = (getattr(model.model_.snippets, name) for model in (one, other))
            np.testing.assert_array_equal(a, b, err_msg=name)
    if hasattr(one, "best_params_"):
        assert one.best_params_ == other.best_params_
        scores = [m.cv_results_["mean_test_score"] for m in (one, other)]
        np.testing.assert_array_equal(*scores)
    np.testing.assert_array_equal(one.predict(series), other.predict(series))


@pytest.mark.parametrize(
    ("kind", "name"),
    [(slts.LocalSLTSClassifier, name) for name in SOURCES]
    + [(kind, name) for kind in LINEAR[:-1] for name in ("files shuffled", "dask bag")],
)
def test_storage_and_order_do_not_matter(kind, name, sources, in_memory, data):
    assert_same_model(quick(kind).fit(*sources(name)), in_memory(kind), data[0])


@pytest.mark.slow
@every(LINEAR[:-1])
@pytest.mark.parametrize("landmarks", ["kmedoids", "dselect"])
def test_chosen_landmarks_do_not_depend_on_order_and_threads(
    kind, landmarks, sources, in_memory, data
):
    model = quick(kind, landmarks=landmarks, n_jobs=3).fit(*sources("files shuffled"))
    assert_same_model(model, in_memory(kind, landmarks=landmarks), data[0])


@every(LINEAR)
def test_threads_do_not_matter_and_seeds_do(kind, in_memory, data):
    assert_same_model(quick(kind, n_jobs=3).fit(*data), in_memory(kind), data[0])
    other = quick(kind, random_state=1).fit(*data)
    assert set(other.landmark_indices_) != set(in_memory(kind).landmark_indices_)


@every([*LINEAR, *NEIGHBOURS, slts.SimilaritySVC])
def test_repeated_series_are_series_of_weight_two(kind, data):
    series, labels = data
    count = np.random.default_rng(0).integers(0, 3, size=60)
    repeated = np.repeat(np.arange(60), count)
    twice = quick(kind).fit([series[i] for i in repeated], labels[repeated])
    if kind in NEIGHBOURS:
        # Neighbours have no weights.
        other = quick(kind).fit([series[i] for i in np.unique(repeated)], labels[count > 0])
    else:
        other = quick(kind).fit(series, labels, sample_weight=count)
    np.testing.assert_array_equal(twice.decision_function(series), other.decision_function(series))
    np.testing.assert_array_equal(twice.predict_proba(series), other.predict_proba(series))


@every([*NEIGHBOURS, slts.SimilaritySVC])
def test_classifiers_of_all_series_read_a_scan_into_memory(kind, sources, data):
    read, held = (quick(kind).fit(*source) for source in (sources("files shuffled"), data))
    np.testing.assert_array_equal(read.decision_function(data[0]), held.decision_function(data[0]))
    np.testing.assert_array_equal(read.predict_proba(data[0]), held.predict_proba(data[0]))


def test_landmarks_and_snippets_are_numbered_as_in_the_source(sources, in_memory, data):
    (scan,) = sources("files shuffled")
    read = quick(slts.LocalSLTSClassifier).fit(scan)
    for model, series in (
        (in_memory(slts.LocalSLTSClassifier), slts.as_series(data[0])),
        (read, scan.read().series),
    ):
        for landmark, index in zip(model.landmarks_, model.landmark_indices_, strict=True):
            np.testing.assert_array_equal(landmark, series[index])
        snippets = model.snippets_
        for k in range(0, len(snippets), 10):
            x = series[snippets.series[k]]
            steps = snippets.starts[k] + snippets.dilations[k] * np.arange(snippets.n_steps)
            values = x[np.ix_(snippets.channels_of(k), steps.clip(0, x.shape[1] - 1))]
            np.testing.assert_array_equal(values, snippets.values_of(k))


@pytest.mark.slow
@pytest.mark.parametrize("weight", [None, "balanced"])
def test_a_scan_that_exceeds_the_memory_gives_nearly_the_same_model(weight, tmp_path):
    """A sample chooses landmarks and snippets; the coefficients are learned from all series."""
    series, labels = problem(2400, 0.7)
    new, truth = problem(2700, 0.7)
    new, truth = new[2400:], truth[2400:]
    how = {"class_weight": weight, "n_snippets": 8, "n_phases": 1}
    stores = [one_file(50), dask_bag]
    stores += [one_file(700), several_files] if weight is None else []
    models = []
    for k, store in enumerate(stores):
        (tmp_path / str(k)).mkdir()
        scan = store((series, labels), tmp_path / str(k))
        model = quick(slts.LocalSLTSClassifier, memory_limit="2MB", n_jobs=k + 1, **how)
        models.append(model.fit(*scan))
    for model in models[1:]:
        assert_same_model(model, models[0], new, tolerance=1e-8)
    whole = quick(slts.LocalSLTSClassifier, **how).fit(series, labels)
    assert 100 <= models[0].validation_.n_series < 0.5 * whole.validation_.n_series
    assert models[0].n_series_in_ == 2400
    assert models[0].score(new, truth) == pytest.approx(whole.score(new, truth), abs=0.05)
    assert np.mean(models[0].predict(new) == whole.predict(new)) > 0.85
