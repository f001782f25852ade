"""Estimators on series that are read part by part: the same models, in bounded memory."""

import logging
import pickle
import re
import warnings
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold, PredefinedSplit

import slts
from slts import DataError
from slts.estimators import landmark_stream, local, memory_plan, streams
from slts.execution import Mapper, shelf
from slts.files.parquet_parts import ParquetPart
from tests.estimators.scan_data import CHANNELS, draw, write_lists, write_long

N = 400
LANDMARKED = [slts.SLTSClassifier, slts.BBSClassifier, slts.SLTSClassifierCV, slts.BBSClassifierCV]


@pytest.fixture(scope="module")
def data():
    """Training series, labels and the classes."""
    return draw(np.random.default_rng(7), N)


@pytest.fixture(scope="module")
def folder(data, tmp_path_factory):
    """The same in three Parquet files; a series lies in two of them."""
    where = tmp_path_factory.mktemp("long")
    series, labels = data
    for k, part in enumerate((slice(0, 150), slice(150, 151), slice(151, N))):
        write_long(where / f"{k}.parquet", series[part], labels[part], first=part.start)
    # Cut one series in two: its last steps stand at the beginning of the next file.
    first = pq.read_table(where / "0.parquet")
    pq.write_table(first.slice(0, first.num_rows - 2), where / "0.parquet", row_group_size=97)
    second = pa.concat_tables([first.slice(first.num_rows - 2), pq.read_table(where / "1.parquet")])
    pq.write_table(second, where / "1.parquet", row_group_size=2)
    return where


@pytest.fixture(scope="module")
def batch(data):
    named = slts.as_series(data[0])
    return slts.SeriesBatch(named.values, named.offsets, CHANNELS)


def assert_same_model(one, other, tol=1e-6):
    np.testing.assert_array_equal(one.classes_, other.classes_)
    np.testing.assert_array_equal(one.landmark_indices_, other.landmark_indices_)
    assert one.landmarks_ == other.landmarks_
    for a, b in zip(one.reports_, other.reports_, strict=True):
        assert (a.positive, a.stage, a.gamma) == (b.positive, b.stage, b.gamma)
        assert a.converged
        assert a.objective == pytest.approx(b.objective, rel=tol, abs=tol)


# -- The same model as in memory


@pytest.mark.parametrize("make", [slts.SLTSClassifier, slts.LocalSLTSClassifier])
@pytest.mark.parametrize("kind", ["list", "tuple", "pattern"])
def test_a_list_or_pattern_is_what_a_folder_is(make, kind, folder):
    paths = [str(folder / f"{k}.parquet") for k in range(3)]
    given = {"list": paths, "tuple": tuple(paths), "pattern": str(folder / "*.parquet")}[kind]
    one, other = (make(random_state=3).fit(source, "label") for source in (folder, given))
    np.testing.assert_array_equal(one.decision_function(folder), other.decision_function(given))
    np.testing.assert_array_equal(one.predict(folder), other.predict(given))
    np.testing.assert_array_equal(one.transform(folder), other.transform(given))
    assert one.score(folder, "label") == other.score(given, "label") == other.score(given)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_a_score_reads_every_part_once(n_jobs, folder, data, monkeypatch):
    model = slts.BBSClassifier(8, random_state=0, n_jobs=n_jobs).fit(*data)
    reads, batches = [], ParquetPart.batches

    def counted(part, **options):
        reads.append(part.name)
        return batches(part, **options)

    monkeypatch.setattr(ParquetPart, "batches", counted)
    weights = np.linspace(0.0, 1.0, N)
    assert model.score(folder, "label") == model.score(*data)
    assert sorted(reads) == sorted(part.name for part in slts.scan_series(folder).parts())
    assert model.score(folder, sample_weight=weights) == model.score(*data, weights)


def test_a_score_knows_the_label_by_the_classes(data, tmp_path):
    series, labels = data
    codes = np.unique(labels, return_inverse=True)[1]
    path = write_long(tmp_path / "a.parquet", series, codes)
    table = pq.read_table(path)
    names = ["speaker" if name == "label" else name for name in table.column_names]
    pq.write_table(table.rename_columns(names), path)
    model = slts.BBSClassifier(8, random_state=0)
    model.fit(slts.scan_series(path, label="speaker", channels=CHANNELS))
    assert model.score(path) == model.score(path, "speaker") == model.score(series, codes)


def test_lists_that_are_no_series_and_no_files(folder):
    paths = [folder / f"{k}.parquet" for k in range(3)]
    with pytest.raises(DataError, match="is in the list of files twice"):
        slts.SLTSClassifier().fit([*paths, paths[0]])
    with pytest.raises(FileNotFoundError, match="no Parquet file matches it as a pattern"):
        slts.SLTSClassifier().fit(folder / "x*.parquet")
    with pytest.raises(DataError, match=r"needs them in memory.*read_series"):
        slts.OneNNClassifier().fit(paths, "label")


@pytest.mark.parametrize("make", [slts.SLTSClassifier, slts.BBSClassifier])
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_a_fit_from_files_is_the_fit_from_memory(make, n_jobs, folder, data, batch):
    read = make(12, gamma=1e-2, random_state=3, n_jobs=n_jobs).fit(folder)
    held = make(12, gamma=1e-2, landmarks=read.landmark_indices_).fit(batch, data[1])
    assert_same_model(read, held)
    np.testing.assert_allclose(read.metrics_, held.metrics_, atol=1e-4)
    np.testing.assert_array_equal(read.predict(batch), held.predict(batch))
    assert read.n_features_in_ == held.n_features_in_ == 3
    assert (read.n_series_in_, read.n_steps_in_) == (N, batch.n_steps)


@pytest.mark.parametrize("make", [slts.SLTSClassifier, slts.BBSClassifier])
def test_sums_of_many_parts_and_files_on_disk_change_nothing(make, folder, monkeypatch):
    whole = make(10, random_state=0).fit(folder)
    kept = []
    keep = shelf.Shelf.keep
    monkeypatch.setattr(
        landmark_stream.MemoryPlan, "resident", property(lambda plan: 10_000.0), raising=True
    )
    monkeypatch.setattr(
        shelf.Shelf, "keep", lambda self, blocks: kept.append(self) or keep(self, blocks)
    )
    monkeypatch.setattr(memory_plan, "_MOST_CHUNK", 1 << 12)
    spilled = make(10, random_state=0).fit(folder)
    assert all(one.on_disk > 0 and one.in_memory <= 10_000 for one in kept)
    assert_same_model(spilled, whole)
    np.testing.assert_allclose(spilled.coef_, whole.coef_, atol=1e-8)


def test_problems_solved_one_by_one_are_the_same(folder, monkeypatch):
    together = slts.SLTSClassifier(10, random_state=0).fit(folder)
    monkeypatch.setattr(memory_plan, "_SOLVING_SHARE", 0.0)
    alone = slts.SLTSClassifier(10, random_state=0).fit(folder)
    assert_same_model(alone, together)
    np.testing.assert_array_equal(alone.coef_, together.coef_)


@pytest.mark.parametrize("make", LANDMARKED)
def test_two_classes(make, tmp_path):
    series, labels = draw(np.random.default_rng(0), 120, n_classes=2, noise=0.5)
    path = write_long(tmp_path / "two.parquet", series, labels)
    model = make(8, random_state=0).fit(path)
    decisions = model.decision_function(path)
    assert decisions.shape == (120,)
    np.testing.assert_allclose(decisions, model.decision_function(series), rtol=1e-12)
    assert model.score(path) == model.score(series, labels) > 0.8


def test_rows_that_are_lists_make_the_same_model(data, tmp_path, batch):
    path = write_lists(tmp_path / "lists.parquet", *data)
    model = slts.BBSClassifier(14, random_state=1).fit(path, "label")
    held = slts.BBSClassifier(14, landmarks=model.landmark_indices_).fit(batch, data[1])
    assert_same_model(model, held)


def test_the_landmarks_do_not_depend_on_how_the_files_are_cut(data, folder, tmp_path):
    one = write_long(tmp_path / "one.parquet", *data, rows=10**6)
    cut = slts.BBSClassifier(15, random_state=5).fit(folder)
    whole = slts.BBSClassifier(15, random_state=5).fit(one)
    other = slts.BBSClassifier(15, random_state=6).fit(one)
    np.testing.assert_array_equal(cut.landmark_indices_, whole.landmark_indices_)
    assert set(other.landmark_indices_) != set(whole.landmark_indices_)


def test_landmarks_can_be_given_by_their_numbers(folder, data, batch):
    wanted = np.array([399, 149, 150, 0, 151])
    model = slts.BBSClassifier(landmarks=wanted).fit(folder)
    assert model.landmarks_ == batch[wanted]
    with pytest.raises(ValueError, match="between 0 and 399"):
        slts.BBSClassifier(landmarks=[400]).fit(folder)


@pytest.mark.parametrize("method", ["kmedoids", "dselect"])
def test_landmarks_are_chosen_among_the_sample(method, folder, batch):
    model = slts.BBSClassifier(12, gamma=1e-3, landmarks=method, random_state=0).fit(folder)
    assert len(set(model.landmark_indices_)) == 12
    assert model.landmarks_ == batch[model.landmark_indices_]


def test_parameters_are_chosen_and_their_number_of_landmarks(folder):
    model = slts.SLTSClassifierCV([4, 8], gammas=[1e-4, 1e-3], lams=[0.1], random_state=0)
    model.fit(folder)
    assert len(model.cv_results_["params"]) == 4
    assert len(model.landmarks_) == model.best_params_["n_landmarks"]
    assert model.coef_.shape == (3, len(model.landmarks_))


def test_weights_of_classes(folder, data, batch):
    how = {"low": 3.0, "high": 0.5}
    for class_weight in (how, "balanced"):
        read = slts.SLTSClassifier(8, class_weight=class_weight, random_state=0).fit(folder)
        held = slts.SLTSClassifier(
            8, class_weight=class_weight, landmarks=read.landmark_indices_
        ).fit(batch, data[1])
        assert_same_model(read, held)
    with pytest.raises(DataError, match="class low has no weight"):
        slts.SLTSClassifier(8, class_weight={"low": 0.0}).fit(folder)


def test_scaled_channels_and_a_constant_one(folder, data, batch):
    how = {"scale": "robust", "homogeneous": True}
    read = slts.SLTSClassifier(8, random_state=0, **how).fit(folder)
    held = slts.SLTSClassifier(8, landmarks=read.landmark_indices_, **how).fit(batch, data[1])
    # The sample is all series, in another order.
    assert read._rows.constant == pytest.approx(held._rows.constant)
    assert_same_model(read, held, tol=1e-5)


def test_single_precision(folder):
    double = slts.SLTSClassifier(8, random_state=0).fit(folder)
    single = slts.SLTSClassifier(8, random_state=0, dtype="float32").fit(folder)
    assert_same_model(single, double, tol=1e-4)


def test_a_model_from_files_is_saved_and_explained(folder, batch, tmp_path):
    model = slts.SLTSClassifier(8, random_state=0).fit(folder)
    slts.save(model, tmp_path / "m.slts")
    again = slts.load(tmp_path / "m.slts")
    np.testing.assert_array_equal(again.predict(folder), model.predict(batch))
    found = slts.explain(model, batch[0])
    np.testing.assert_allclose(found.offset + found.contributions.sum((1, 2)), found.decision)


def test_alignments_too_many_for_memory_are_found_in_parts(folder, data, batch, monkeypatch):
    table = np.random.default_rng(0).normal(size=(60, 9))
    flat = np.repeat(["a", "b"], 30)
    how = {"random_state": 3, "scale": "robust", "homogeneous": True}
    whole = slts.SLTSClassifier(12, **how).fit(batch, data[1])
    monkeypatch.setattr(slts.SLTSClassifier, "_alignments_bytes", lambda *_: float("inf"))
    monkeypatch.setattr(landmark_stream, "MOST_TUNING", 60)
    parts = slts.SLTSClassifier(12, **how).fit(batch, data[1])
    assert_same_model(parts, whole)
    assert parts._rows.constant == whole._rows.constant
    np.testing.assert_array_equal(parts.predict(batch), whole.predict(batch))
    model = slts.SLTSClassifier(12, gamma=1e-3, random_state=0).fit(table, flat)
    assert model.n_features_in_ == 9
    with pytest.raises(DataError, match="9 features"):
        model.predict(table[:, :5])


def test_alignments_are_measured_before_they_are_made(data, batch):
    model = slts.SLTSClassifier(12)
    assert model._alignments_bytes(12, batch, model._settings()) == N * 12 * 9 * 8
    single = slts.SLTSClassifier(dtype="float32")
    assert single._alignments_bytes(7, batch, single._settings()) == N * 7 * 9 * 4
    plain = slts.BBSClassifier()
    assert plain._alignments_bytes(12, batch, plain._settings()) == N * 12 * 8


@pytest.mark.parametrize("options", [{"regularizer": "l1"}])
def test_a_limit_that_cannot_be_kept_is_refused(options, data, batch):
    model = slts.SLTSClassifier(12, gamma=1e-3, **options)
    with pytest.raises(ValueError, match=r"'memory_limit'.*with re.*must be in memory, \d+ kB"):
        clone(model).set_params(memory_limit="10kB").fit(batch, data[1])
    # Half of the machine's memory is a guess, not a wish.
    assert not model._goes_in_parts(1e12, 10)


LABELS = {
    "objects": lambda y: y.astype(object),
    "strings": lambda y: y,
    "bools": lambda y: y == y[0],
    "numbers": lambda y: np.unique(y, return_inverse=True)[1] - 1.0,
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_any_type_are_learned_in_parts(kind, data, batch, monkeypatch):
    y = LABELS[kind](np.asarray(data[1]))
    whole = slts.SLTSClassifier(12, random_state=3).fit(batch, y)
    monkeypatch.setattr(slts.SLTSClassifier, "_alignments_bytes", lambda *_: float("inf"))
    parts = slts.SLTSClassifier(12, random_state=3).fit(batch, y)
    assert parts.classes_.dtype == whole.classes_.dtype
    np.testing.assert_array_equal(parts.predict(batch), whole.predict(batch))


@pytest.mark.parametrize("make", [slts.SLTSClassifier, slts.BBSClassifier])
def test_series_in_memory_keep_their_weights_in_parts(make, data, batch, monkeypatch):
    weights = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 4.0], size=N)
    how = {"class_weight": "balanced", "random_state": 3}
    whole = make(12, **how).fit(batch, data[1], weights)
    other = make(12, **how).fit(batch, data[1])
    monkeypatch.setattr(make, "_alignments_bytes", lambda *_: float("inf"))
    parts = make(12, **how).fit(batch, data[1], weights)
    assert_same_model(parts, whole)
    assert np.abs(other.coef_ - whole.coef_).max() > 1e-3


class Noting:
    """A splitter that holds indices: the last of three series is held out."""

    def __init__(self, indices):
        self.indices = indices

    def split(self, X, y=None, groups=None):
        yield np.setdiff1d(np.arange(len(X)), self.indices), self.indices

    def get_n_splits(self, X=None, y=None, groups=None):
        return 1


def test_splits_of_series_in_memory_are_those_of_all_series(data, batch, monkeypatch):
    held = np.arange(2, N, 3)
    make = slts.SLTSClassifierCV
    seen = []
    inner = make._held_out_decisions

    def noted(model, found, train, test, parameters):
        seen.append((found, train, test))
        return inner(model, found, train, test, parameters)

    monkeypatch.setattr(make, "_held_out_decisions", noted)
    cvs = [[(np.setdiff1d(np.arange(N), held), held)], Noting(held)]
    cvs.append(PredefinedSplit(np.where(np.isin(np.arange(N), held), 0, -1)))
    whole = [make(12, cv=cv, gammas=[1e-3], random_state=0).fit(batch, data[1]) for cv in cvs]
    monkeypatch.setattr(make, "_alignments_bytes", lambda *_: float("inf"))
    parts = [make(12, cv=cv, gammas=[1e-3], random_state=0).fit(batch, data[1]) for cv in cvs]
    for one, other in zip(whole, parts, strict=True):
        assert one.best_score_ == other.best_score_
    assert {len(test) for _, _, test in seen} == {len(held)}


def test_splits_without_a_series_of_the_sample_are_refused(data, batch, monkeypatch):
    make = slts.BBSClassifier
    monkeypatch.setattr(make, "_alignments_bytes", lambda *_: float("inf"))
    monkeypatch.setattr(landmark_stream, "MOST_TUNING", 20)
    monkeypatch.setattr(landmark_stream, "_PER_CLASS", 5)
    inner, sampled = landmark_stream._sample_splits, []

    def noted(model, codes, indices, *rest):
        sampled.extend(indices)
        return inner(model, codes, indices, *rest)

    monkeypatch.setattr(landmark_stream, "_sample_splits", noted)
    make(12, random_state=3).fit(batch, data[1])
    held = np.setdiff1d(np.arange(N), sampled)[:1]
    cv = [(np.delete(np.arange(N), held), held)]
    with pytest.raises(ValueError, match=r"None of the 1 splits .* among the \d+ that"):
        make(12, calibration_cv=cv, random_state=3).fit(batch, data[1])


def test_series_without_weight_are_not_drawn(data, batch, monkeypatch):
    """Few have any: a sample of all would hold none of them."""
    make = slts.BBSClassifier
    weights = np.zeros(N)
    for label in np.unique(data[1]):
        weights[np.flatnonzero(data[1] == label)[-3:]] = 1.0
    whole = make(12, random_state=3).fit(batch, data[1], weights)
    monkeypatch.setattr(make, "_alignments_bytes", lambda *_: float("inf"))
    monkeypatch.setattr(landmark_stream, "MOST_TUNING", 20)
    monkeypatch.setattr(landmark_stream, "_PER_CLASS", 2)
    parts = make(12, random_state=3).fit(batch, data[1], weights)
    assert_same_model(parts, whole)
    assert (parts.n_series_in_, parts.n_steps_in_) == (N, batch.n_steps)


def test_splits_of_a_file_hold_no_indices(folder, data):
    cv = PredefinedSplit(np.arange(N) % 3)
    for model in (
        slts.SLTSClassifierCV(cv=cv),
        slts.SLTSClassifier(calibration_cv=list(cv.split())),
    ):
        with pytest.raises(ValueError, match="must not hold indices of series"):
            model.fit(folder)
    slts.SLTSClassifier(12, calibration_cv=KFold(3), random_state=0).fit(folder)


def test_identifiers_of_lists_may_come_back(data, tmp_path):
    """They name people rather than series: the sample is one of series all the same."""
    path = write_lists(tmp_path / "lists.parquet", *data)
    table = pq.read_table(path)
    people = pa.array(np.arange(N) // 100)
    pq.write_table(table.append_column("id", people), path, row_group_size=17)
    model = slts.BBSClassifier(20, random_state=0).fit(path)
    assert len(set(model.landmark_indices_ // 100)) == 4


def test_rare_classes_do_not_weigh_more_than_they_are(tmp_path, monkeypatch):
    """The sample has all series of a class that is rare; calibration must know that."""
    rng = np.random.default_rng(0)
    series = [rng.normal(size=(3, 8)) for _ in range(2000)]
    labels = np.where(rng.random(2000) < 0.5, "a", "b").astype("U4")
    labels[::100] = "rare"
    path = write_long(tmp_path / "rare.parquet", series, labels)
    plain, choose = landmark_stream.survey, slts.BBSClassifier._choose
    seen = []

    def small(stream, mapper, size, **how):
        return plain(stream, mapper, replace(size, n_series=300), **how)

    def noted(model, data, parameters, splits, importance=None):
        seen.append((data.codes, importance))
        return choose(model, data, parameters, splits, importance)

    monkeypatch.setattr(landmark_stream, "survey", small)
    monkeypatch.setattr(slts.BBSClassifier, "_choose", noted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        slts.BBSClassifier(30, random_state=0).fit(path)
    codes, importance = seen[0]
    assert np.mean(codes == 2) > 0.05
    assert importance.mean() == pytest.approx(1.0)
    shares = np.bincount(codes, weights=importance) / len(codes)
    np.testing.assert_allclose(shares[2], 0.01)


def test_a_label_that_is_not_the_scanned_one(folder):
    scan = slts.scan_series(folder, label="label")
    with pytest.raises(DataError, match=r"names the column 't', and the labels .* are in 'label'"):
        slts.BBSClassifier(8).fit(scan, "t")


def test_numbers_that_are_no_classes(data, tmp_path):
    numbers = np.random.default_rng(0).normal(size=N)
    path = write_long(tmp_path / "regression.parquet", data[0], numbers)
    with pytest.raises(DataError, match="numbers with fractions are no classes"):
        slts.BBSClassifier(8).fit(path, "label")


@pytest.mark.parametrize("weight", ["foo", {"low": float("nan")}, {"nobody": 2.0, "low": 1.0}])
def test_bad_class_weights(weight, folder):
    with pytest.raises(ValueError, match="class"):
        slts.BBSClassifier(8, class_weight=weight).fit(folder)


# -- Methods of fitted models


@pytest.fixture(scope="module", params=["slts", "bbs", "local", "1nn", "svm", "ldmlt"])
def fitted(request, data, batch):
    make = {
        "slts": slts.SLTSClassifier,
        "bbs": slts.BBSClassifier,
        "local": slts.LocalSLTSClassifier,
        "1nn": slts.OneNNClassifier,
        "svm": slts.SimilaritySVC,
        "ldmlt": slts.LDMLTClassifier,
    }[request.param]
    return make().fit(batch[:60], data[1][:60])


def test_every_model_answers_for_files(fitted, folder, batch, data):
    np.testing.assert_array_equal(fitted.predict(folder), fitted.predict(batch))
    decisions = fitted.decision_function(folder)
    np.testing.assert_allclose(decisions, fitted.decision_function(batch), rtol=1e-9)
    np.testing.assert_allclose(fitted.predict_proba(folder), fitted.predict_proba(batch), rtol=1e-9)
    assert fitted.score(folder, "label") == fitted.score(batch, data[1])
    if hasattr(fitted, "transform"):
        np.testing.assert_allclose(fitted.transform(folder), fitted.transform(batch), rtol=1e-9)


def test_channels_are_found_by_name(fitted, data, batch, tmp_path):
    path = write_long(tmp_path / "turned.parquet", *data)
    table = pq.read_table(path)
    extra = pa.array(np.random.default_rng(0).normal(size=table.num_rows))
    turned = table.select(["z", "id", "x", "t", "label", "y"]).append_column("w", extra)
    pq.write_table(turned, path)
    np.testing.assert_array_equal(fitted.predict(path), fitted.predict(batch))


def test_channels_of_a_scan_that_are_not_those_of_the_model(fitted, data, tmp_path):
    path = write_long(tmp_path / "more.parquet", *data)
    table = pq.read_table(path)
    pq.write_table(table.append_column("w", pa.array(np.ones(table.num_rows))), path)
    message = r"with the channels x, y, z, w, and the model was fitted on x, y, z: say .*'z'\]"
    for work in (fitted.predict, fitted.score):
        with pytest.raises(DataError, match=message):
            work(slts.scan_series(path))
    assert len(fitted.predict(slts.scan_series(path, channels=["x", "y", "z"]))) == N


def test_a_large_result_is_mapped_from_a_file(data, folder, batch):
    model = slts.SLTSClassifier(8, random_state=0).fit(batch, data[1])
    expected = model.transform(batch)
    model.memory_limit = expected.nbytes // 2
    found = model.transform(folder)
    assert isinstance(found, np.memmap)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_certificates(fitted, data, folder, batch, tmp_path):
    rest = write_long(tmp_path / "rest.parquet", data[0][60:], data[1][60:])
    held = slts.certify(fitted, batch[60:], data[1][60:])
    assert slts.certify(fitted, rest).to_dict() == held.to_dict()
    assert slts.certify(fitted, rest, "label").to_dict() == held.to_dict()
    with pytest.raises(DataError, match=r"series \d+ of X equals"):
        slts.certify(fitted, folder)
    with pytest.raises(DataError, match="in memory"):
        slts.certify(fitted, rest, sample="training")


def test_certificates_name_the_same_series_as_in_memory(data, batch, folder):
    late = [200 + int(np.argmax(data[1][200:] == name)) for name in ("low", "middle", "high")]
    model = slts.BBSClassifier(landmarks=[max(late), 170, *sorted(late)[:2]]).fit(batch, data[1])
    with pytest.raises(DataError, match="series 170 of X equals landmark 1"):
        slts.certify(model, folder)


# -- The local classifier learns from a sample


def test_the_local_classifier_takes_all_series_if_they_fit(folder, data, batch):
    model = slts.LocalSLTSClassifier(random_state=0).fit(folder)
    assert model.landmarks_ == batch[model.landmark_indices_]
    assert model.score(batch, data[1]) > 0.8
    assert model.n_series_in_ == N


def test_the_local_classifier_takes_a_sample_if_not(folder, batch, monkeypatch, caplog):
    monkeypatch.setattr(local, "_FEWEST", 10)
    monkeypatch.setattr(local, "_PER_CLASS_DRAWN", 10)
    with caplog.at_level(logging.INFO, "slts"):
        model = slts.LocalSLTSClassifier(memory_limit="10MB", random_state=0).fit(folder)
    assert 50 < model.n_sampled_ < 250
    assert f"a sample of {model.n_sampled_} of 400 series (memory_limit: 10 MB)" in caplog.text
    assert model.landmarks_ == batch[model.landmark_indices_]
    drawn = model.landmark_indices_.max() + 1
    assert drawn > 150, "the sample is of all files"
    more = slts.LocalSLTSClassifier(memory_limit="15MB", random_state=0).fit(folder)
    assert model.n_sampled_ < more.n_sampled_ < 400


def test_a_limit_too_small_for_the_local_classifier(folder):
    model = slts.LocalSLTSClassifier(memory_limit="10MB")
    message = r"too small: 10 MB, and learning from a sample of 400 series takes \d\d MB"
    with pytest.raises(ValueError, match=message) as caught:
        model.fit(folder)
    enough = float(re.search(r"takes (\d+) MB", str(caught.value))[1]) + 1
    assert model.set_params(memory_limit=f"{enough}MB").fit(folder).n_sampled_ == N


def test_the_local_classifier_checks_its_limit_in_memory_too(data, batch):
    with pytest.raises(ValueError, match="'memory_limit' parameter of LocalSLTSClassifier must be"):
        slts.LocalSLTSClassifier(memory_limit="much").fit(batch, data[1])


# -- Memory


def test_the_memory_is_told(folder, caplog):
    with caplog.at_level(logging.INFO, "slts"):
        slts.SLTSClassifier(8, random_state=0).fit(folder)
    assert "memory: about" in caplog.text
    assert "columns: id=id, time=t, label=label, channels=x,y,z" in caplog.text


@pytest.mark.parametrize("limit", ["1MB", 200])
def test_too_small_a_limit_says_what_would_do(limit, folder):
    for make in (slts.SLTSClassifier, slts.LocalSLTSClassifier):
        with pytest.raises(
            ValueError, match=r"'memory_limit' parameter .* too small.*(would do|takes)"
        ):
            make(8, memory_limit=limit).fit(folder)


def test_the_limit_that_is_named_does(folder):
    with pytest.raises(ValueError, match="too small") as caught:
        slts.SLTSClassifier(8, memory_limit=1000).fit(folder)
    named = re.search(r"and (\d+ .B) would do", str(caught.value))[1]
    slts.SLTSClassifier(8, memory_limit=named, random_state=0).fit(folder)


@pytest.mark.parametrize("limit", ["much", -1, "12 parsec", True, float("nan"), [1]])
def test_what_is_no_size_is_refused(limit, folder):
    with pytest.raises(ValueError, match="'memory_limit' parameter of BBSClassifier must be"):
        slts.BBSClassifier(8, memory_limit=limit).fit(folder)


# -- What cannot be done


@pytest.mark.parametrize("make", [slts.OneNNClassifier, slts.SimilaritySVC, slts.LDMLTClassifier])
def test_models_of_all_series_need_them_in_memory(make, folder):
    with pytest.raises(DataError, match="needs them in memory"):
        make().fit(folder, "label")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"regularizer": "nuclear"}, "'regularizer' parameter .* must be left at its default"),
        ({"n_landmarks": 300, "landmarks": "kmedoids", "memory_limit": "1GB"}, None),
        ({"n_landmarks": 0.9}, None),
    ],
)
def test_options(options, message, folder):
    model = slts.SLTSClassifier(**options, random_state=0)
    if message is None:
        model.fit(folder)
    else:
        with pytest.raises(ValueError, match=message):
            model.fit(folder)


def test_labels_and_weights_come_with_the_series(folder, data):
    for make in (slts.SLTSClassifier, slts.LocalSLTSClassifier):
        with pytest.raises(DataError, match="read together"):
            make().fit(folder, data[1])
        with pytest.raises(DataError, match="no sample_weight"):
            make().fit(folder, sample_weight=np.ones(N))


def test_a_failed_fit_changes_nothing(folder, tmp_path):
    model = slts.BBSClassifier(8, random_state=0).fit(folder)
    before = pickle.dumps(model.coef_)
    with pytest.raises(FileNotFoundError):
        model.fit(tmp_path / "absent.parquet")
    assert pickle.dumps(model.coef_) == before


# -- Bad data


def broken(where, change):
    """Rewrite the last of several files."""
    table = pq.read_table(where / "2.parquet")
    pq.write_table(change(table), where / "2.parquet", row_group_size=97)


@pytest.fixture
def copied(folder, tmp_path):
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def test_a_series_that_comes_back_in_another_part(copied):
    def change(table):
        ids = table["id"].to_numpy().copy()
        ids[ids == 399] = 3
        return table.set_column(0, "id", pa.array(ids))

    model = slts.BBSClassifier(8, random_state=0).fit(copied)
    broken(copied, change)
    for work in (slts.BBSClassifier(8).fit, model.predict, model.score):
        with pytest.raises(DataError, match=r"series 3 comes back in .*2\.parquet"):
            work(copied)
    with pytest.raises(DataError, match=r"series 3 comes back|equals landmark"):
        slts.certify(model, copied)


def test_a_label_that_is_missing(copied):
    def change(table):
        labels = table["label"].to_pylist()
        labels[-1] = None
        return table.set_column(2, "label", pa.array(labels))

    broken(copied, change)
    with pytest.raises(DataError, match=r"2\.parquet, row \d+ .*'label' \(label\) is missing"):
        slts.BBSClassifier(8).fit(copied)


def test_labels_of_another_type(copied):
    broken(copied, lambda t: t.set_column(2, "label", pa.array(np.ones(t.num_rows))))
    with pytest.raises(DataError, match="one schema"):
        slts.BBSClassifier(8).fit(copied)


def test_labels_of_a_type_that_is_not_compared(copied):
    for file in copied.glob("*.parquet"):
        table = pq.read_table(file)
        long = pa.array([Decimal(len(text)) for text in table["label"].to_pylist()])
        pq.write_table(table.set_column(2, "label", long.cast(pa.decimal128(38, 0))), file)
    with pytest.raises(DataError, match="labels of type Decimal: store them as text, integers"):
        slts.BBSClassifier(8).fit(copied, "label")


def test_a_class_that_some_parts_lack(copied, data, batch):
    """All series of one class stand in the last file; models know it all the same."""
    order = np.argsort(data[1] == "low", kind="stable")
    series, labels = [data[0][i] for i in order], data[1][order]
    for file in copied.glob("*.parquet"):
        file.unlink()
    write_long(copied / "a.parquet", series[:200], labels[:200])
    write_long(copied / "b.parquet", series[200:], labels[200:], first=200)
    model = slts.SLTSClassifier(12, random_state=0).fit(copied)
    held = slts.SLTSClassifier(12, landmarks=model.landmark_indices_).fit(series, labels)
    np.testing.assert_array_equal(model.classes_, ["high", "low", "middle"])
    np.testing.assert_array_equal(model.predict(series), held.predict(series))


def test_files_without_rows_among_others(copied, folder):
    empty = pq.read_table(copied / "0.parquet").slice(0, 0)
    for name in ("00", "05", "3"):
        pq.write_table(empty, copied / f"{name}.parquet")
    model = slts.BBSClassifier(8, random_state=0).fit(copied)
    assert_same_model(model, slts.BBSClassifier(8, random_state=0).fit(folder))


def test_nothing_but_empty_files(copied):
    empty = pq.read_table(copied / "0.parquet").slice(0, 0)
    for file in copied.glob("*.parquet"):
        pq.write_table(empty, file)
    with pytest.raises(DataError, match=r"no (series|rows)"):
        slts.BBSClassifier(8).fit(copied)


def test_one_class_only(copied):
    for file in copied.glob("*.parquet"):
        table = pq.read_table(file)
        pq.write_table(table.set_column(2, "label", pa.array(["a"] * table.num_rows)), file)
    with pytest.raises(DataError, match="one class only, 'a'"):
        slts.BBSClassifier(8).fit(copied)


def test_no_column_of_labels(copied):
    for file in copied.glob("*.parquet"):
        pq.write_table(pq.read_table(file).drop_columns("label"), file)
    with pytest.raises(DataError, match="has no labels: name their column"):
        slts.BBSClassifier(8).fit(copied)
    with pytest.raises(DataError, match="'speaker'"):
        slts.BBSClassifier(8).fit(copied, "speaker")


def test_other_channels(copied, fitted):
    for file in copied.glob("*.parquet"):
        pq.write_table(pq.read_table(file).drop_columns("z"), file)
    with pytest.raises(DataError, match="z"):
        fitted.predict(copied)


def test_a_damaged_row_group(copied):
    path = copied / "2.parquet"
    table = pq.read_table(path)
    pq.write_table(table, path, row_group_size=97, compression="none", write_page_checksum=True)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"2\.parquet, row group \d+ cannot be read"):
        slts.BBSClassifier(8).fit(copied)


def test_streams_are_told_from_other_things(folder, batch, data):
    scan = slts.scan_series(folder)
    assert streams.as_stream(scan) is scan
    held = streams.BatchStream(batch, data[1])
    assert streams.as_stream(held) is held
    for other in (batch, data[0], batch.values, None):
        assert streams.as_stream(other) is None


def test_every_mapper_is_a_mapper():
    mapper: Mapper = streams.mapper_for(2)
    assert mapper.n_workers == 2
