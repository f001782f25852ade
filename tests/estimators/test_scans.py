"""Estimators on scans: what fit, predict and score do with series that are read part by part."""

import logging
import pickle
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from threading import Barrier, BrokenBarrierError

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.model_selection import KFold, PredefinedSplit
from slts.models import comparisons

import slts
from slts import DataError
from slts.alignment import Aligner
from slts.estimators import base, prediction
from slts.files.parquet_parts import ParquetPart
from slts.training import landmark_fit, local_fit, memory_plan, source
from slts.training.sampling import SampleSize
from tests.estimators.kinds import KINDS, LANDMARKED, every, every_kind, quick
from tests.estimators.scan_data import CHANNELS, draw, long_table, write_lists, write_long

pytestmark = pytest.mark.usefixtures("tables_in_parts")

N = 120


def scan_of(path, **columns):
    return slts.scan_series(path, **{"label": "label"} | columns)


@pytest.fixture(scope="module")
def data():
    return draw(np.random.default_rng(7), N, noise=0.7)


@pytest.fixture(scope="module")
def folder(data, tmp_path_factory):
    """The same in three Parquet files; a series lies in two of them."""
    where = tmp_path_factory.mktemp("long")
    table = long_table(*data)
    cuts = [0, table.num_rows // 3, table.num_rows // 3 + 2, table.num_rows]
    for k in range(3):
        part = table.slice(cuts[k], cuts[k + 1] - cuts[k])
        pq.write_table(part, where / f"{k}.parquet", row_group_size=97)
    return where


@pytest.fixture(scope="module")
def scan(folder):
    return scan_of(folder)


@pytest.fixture(scope="module")
def batch(data):
    plain = slts.as_series(data[0])
    return slts.SeriesBatch(plain.values, plain.offsets, CHANNELS)


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: kind.__name__)
def fitted(request, data, batch):
    return quick(request.param).fit(batch[:60], data[1][:60])


# -- arguments


@pytest.mark.parametrize("as_given", [str, lambda p: p, lambda p: [str(p / "0.parquet")]])
def test_a_path_is_an_error_that_shows_the_call(as_given, folder, data):
    model = quick(slts.BBSClassifier).fit(*data)
    given = as_given(folder)
    for work in (slts.BBSClassifier().fit, slts.OneNNClassifier().fit, model.predict, model.score,
                 model.transform, model.decision_function):  # fmt: skip
        with pytest.raises(DataError, match=r"Got a path instead: use slts\.scan_series\(.*label="):
            work(given)
    with pytest.raises(DataError, match=re.escape(f"slts.scan_series({str(folder)!r}, label=")):
        model.predict(str(folder))


def test_a_dask_collection_is_an_error_that_shows_the_call(data):
    bag = pytest.importorskip("dask.bag", reason="needs the extra dask")
    given = bag.from_sequence(list(zip(*data, strict=True)), npartitions=2)
    for work in (slts.BBSClassifier().fit, quick(slts.OneNNClassifier).fit(*data).predict):
        with pytest.raises(
            DataError, match=r"Got a Dask collection instead: use slts\.scan_series"
        ):
            work(given)


@every_kind
def test_a_scan_has_its_own_labels(kind, scan, data):
    for y in ("label", data[1]):
        with pytest.raises(DataError, match="y must be None for a scan, which has labels of its"):
            kind().fit(scan, y)


def test_a_scan_can_be_scored_with_other_labels(scan, data):
    model = quick(slts.BBSClassifier).fit(*data)
    assert model.score(scan, data[1]) == model.score(scan)
    assert model.score(scan, model.predict(scan)) == 1.0


@every([*LANDMARKED, slts.SimilaritySVC, slts.LocalSLTSClassifier])
def test_a_scan_has_no_sample_weights(kind, scan):
    with pytest.raises(DataError, match=f"{kind.__name__} takes no sample_weight with a scan"):
        kind().fit(scan, sample_weight=np.ones(N))


def test_a_scan_needs_a_label_column_for_fit_and_score(scan, data, tmp_path):
    pq.write_table(long_table(*data).drop_columns("label"), tmp_path / "a.parquet")
    model = quick(slts.BBSClassifier).fit(scan)
    unlabelled = slts.scan_series(tmp_path / "a.parquet", channels=CHANNELS)
    for work in (slts.BBSClassifier().fit, model.score):
        with pytest.raises(DataError, match=r"has no labels: name their column, scan_series\("):
            work(unlabelled)
    np.testing.assert_array_equal(model.predict(unlabelled), model.predict(scan))


def test_splits_of_a_scan_must_not_hold_indices(scan):
    cv = PredefinedSplit(np.arange(N) % 3)
    for model in (
        slts.SLTSClassifierCV(cv=cv),
        slts.SimilaritySVC(calibration_cv=list(cv.split())),
    ):
        with pytest.raises(ValueError, match="must not hold indices of series"):
            model.fit(scan)
    quick(slts.BBSClassifier, calibration_cv=KFold(3)).fit(scan)


def test_indices_of_landmarks_are_checked(scan):
    with pytest.raises(ValueError, match=f"between 0 and {N - 1}"):
        slts.BBSClassifier(landmarks=[N]).fit(scan)


def test_a_failed_fit_changes_nothing(scan, data):
    model = quick(slts.BBSClassifier).fit(scan)
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match="class_weight"):
        model.set_params(class_weight="foo").fit(scan)
    assert pickle.dumps(model.set_params(class_weight=None)) == before


# -- fitted models


@pytest.mark.slow
def test_a_scan_is_predicted_like_series_in_memory(fitted, scan, batch, data):
    np.testing.assert_array_equal(fitted.predict(scan), fitted.predict(batch))
    decisions = fitted.decision_function(scan)
    np.testing.assert_allclose(decisions, fitted.decision_function(batch), rtol=1e-9)
    np.testing.assert_allclose(fitted.predict_proba(scan), fitted.predict_proba(batch), rtol=1e-9)
    assert fitted.score(scan) == fitted.score(batch, data[1])
    if hasattr(fitted, "transform"):
        np.testing.assert_allclose(fitted.transform(scan), fitted.transform(batch), rtol=1e-9)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_a_score_reads_every_part_once(n_jobs, scan, data, monkeypatch):
    model = quick(slts.BBSClassifier, n_jobs=n_jobs).fit(*data)
    reads, batches = [], ParquetPart.batches

    def counted(part, **options):
        reads.append(part.name)
        return batches(part, **options)

    monkeypatch.setattr(ParquetPart, "batches", counted)
    weights = np.linspace(0.0, 1.0, N)
    assert model.score(scan) == model.score(*data)
    assert sorted(reads) == sorted(part.name for part in scan.parts())
    assert model.score(scan, sample_weight=weights) == model.score(*data, weights)


def test_channels_are_found_by_name(fitted, data, batch, tmp_path):
    table = long_table(*data)
    extra = pa.array(np.ones(table.num_rows))
    turned = table.select(["z", "id", "x", "t", "label", "y"]).append_column("w", extra)
    pq.write_table(turned, tmp_path / "turned.parquet")
    found = scan_of(tmp_path / "turned.parquet", channels=["z", "x", "y"])
    np.testing.assert_array_equal(fitted.predict(found), fitted.predict(batch))
    more = scan_of(tmp_path / "turned.parquet", channels=["x", "y", "z", "w"])
    message = r"was scanned with 4 channels, but the model has 3: name as many"
    for work in (fitted.predict, fitted.score):
        with pytest.raises(DataError, match=message):
            work(more)


def test_a_large_result_is_a_memory_map(data, scan, batch):
    model = quick(slts.SLTSClassifier).fit(batch, data[1])
    expected = model.transform(batch)
    model.memory_limit = expected.nbytes // 2
    found = model.transform(scan)
    assert isinstance(found, np.memmap)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_model_of_a_scan_is_saved_and_explained(scan, batch, tmp_path):
    model = quick(slts.SLTSClassifier).fit(scan)
    assert model.channel_names_in_ == CHANNELS
    slts.save(model, tmp_path / "m.slts")
    again = slts.load(tmp_path / "m.slts")
    np.testing.assert_array_equal(again.predict(scan), model.predict(batch))
    found = slts.explain(model, batch[0])
    np.testing.assert_allclose(found.offset + found.contributions.sum((1, 2)), found.decision)


def test_two_classes_have_one_decision(tmp_path):
    series, labels = draw(np.random.default_rng(0), 60, n_classes=2, noise=0.5)
    scan = scan_of(write_long(tmp_path / "two.parquet", series, labels))
    model = quick(slts.BBSClassifier).fit(scan)
    decisions = model.decision_function(scan)
    assert decisions.shape == (60,)
    np.testing.assert_allclose(decisions, model.decision_function(series), rtol=1e-12)


def test_identifiers_of_rows_of_lists_may_be_repeated(data, tmp_path):
    """They may name persons rather than series."""
    path = write_lists(tmp_path / "lists.parquet", *data)
    table = pq.read_table(path).append_column("id", pa.array(np.arange(N) // 40))
    pq.write_table(table, path, row_group_size=17)
    assert quick(slts.BBSClassifier).fit(scan_of(path, id="id")).n_series_in_ == N


def test_a_series_in_two_places_is_an_error(data, tmp_path):
    model = quick(slts.BBSClassifier).fit(*data)
    write_long(tmp_path / "a.parquet", data[0][:60], data[1][:60])
    write_long(tmp_path / "b.parquet", data[0][60:], data[1][60:], first=50)
    for work in (quick(slts.BBSClassifier).fit, model.predict, model.score):
        with pytest.raises(
            DataError, match=r"Series \d+ appears in both .*a\.p.* and .*b\.parquet"
        ):
            work(scan_of(tmp_path))


# -- memory


@pytest.fixture
def in_parts(monkeypatch):
    """A sample of 40 series: alignments lie in parts."""
    monkeypatch.setattr(landmark_fit, "_sample_size", lambda *_: SampleSize(40, np.inf, 1, 20))
    monkeypatch.setattr(landmark_fit, "_SAMPLED_PER_CLASS", 5)


LABELS = {
    "objects": lambda y: y.astype(object),
    "bools": lambda y: y == y[0],
    "numbers": lambda y: np.unique(y, return_inverse=True)[1] - 1.0,
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_any_type_are_learned_in_parts(kind, data, batch, in_parts):
    y = LABELS[kind](np.asarray(data[1]))
    model = quick(slts.BBSClassifier, n_landmarks=24).fit(batch, y)
    assert model.classes_.dtype == y.dtype
    assert model.score(batch, y) > 0.6


def test_a_table_is_learned_in_parts(in_parts):
    table = np.random.default_rng(0).normal(size=(60, 9))
    model = quick(slts.BBSClassifier, gamma=1e-3).fit(table, np.repeat(["a", "b"], 30))
    assert model.n_features_in_ == 9
    with pytest.raises(DataError, match="9 features"):
        model.predict(table[:, :5])


@every([slts.SLTSClassifier, slts.BBSClassifier])
def test_series_without_weight_are_not_drawn(kind, data, batch, in_parts, monkeypatch):
    """Few series have weight: a uniform sample of all would hold none of them."""
    weights = np.zeros(N)
    for label in np.unique(data[1]):
        weights[np.flatnonzero(data[1] == label)[-9:]] = [0.5, 1.0, 4.0] * 3
    monkeypatch.setattr(landmark_fit, "_sample_size", lambda *_: SampleSize(20, np.inf, 1, 20))
    parts = quick(kind).fit(batch, data[1], weights)
    assert (parts.n_series_in_, parts.n_steps_in_) == (N, batch.n_steps)
    assert (weights[parts.landmark_indices_] > 0).all()
    monkeypatch.undo()
    whole = quick(kind).fit(batch, data[1], weights)
    for a, b in zip(parts.reports_, whole.reports_, strict=True):
        assert a.objective == pytest.approx(b.objective, rel=1e-3, abs=1e-6)


def test_index_splits_are_those_of_the_sampled_series(data, batch, in_parts):
    cv = PredefinedSplit(np.arange(N) % 3)
    model = quick(slts.BBSClassifierCV, cv=cv).fit(batch, data[1])
    assert model.n_splits_ == 3
    pairs = [(np.delete(np.arange(N), i), [i]) for i in range(0, N, 10)]
    model = quick(slts.BBSClassifierCV, cv=pairs).fit(batch, data[1])
    assert 1 <= model.n_splits_ < 12
    assert set(np.unique(model.cv_results_["split0_test_score"])) <= {0.0, 1.0}


def test_problems_may_be_solved_one_by_one(scan, in_parts, monkeypatch):
    together = quick(slts.SLTSClassifier).fit(scan)
    monkeypatch.setattr(memory_plan, "_SOLVING_SHARE", 0.0)
    alone = quick(slts.SLTSClassifier).fit(scan)
    np.testing.assert_array_equal(alone.coef_, together.coef_)


def test_single_precision_in_parts(scan, in_parts):
    double, single = (
        quick(slts.SLTSClassifier, dtype=dtype).fit(scan) for dtype in ("float64", "float32")
    )
    for a, b in zip(single.reports_, double.reports_, strict=True):
        assert a.objective == pytest.approx(b.objective, rel=1e-3, abs=1e-4)


def test_the_plan_of_the_memory_is_logged(data, caplog, in_parts):
    with caplog.at_level(logging.INFO, "slts"):
        quick(slts.BBSClassifier).fit(*data)
    assert "memory: about" in caplog.text


@every([slts.SLTSClassifier, slts.LocalSLTSClassifier])
@pytest.mark.parametrize("source", ["scan", "batch"])
def test_the_suggested_limit_is_sufficient(kind, source, scan, data, batch):
    given = (scan,) if source == "scan" else (batch, data[1])
    with pytest.raises(ValueError, match=r"'memory_limit' parameter of .* is too small") as caught:
        quick(kind, memory_limit=1000).fit(*given)
    named = re.search(r"(?:A limit of|series needs) (\d+ .B)", str(caught.value))[1]
    number, unit = named.split()
    quick(kind, memory_limit=f"{int(number) + 1}{unit}").fit(*given)


def test_other_regularizers_need_all_alignments_in_memory(scan, data, batch):
    for given in ((scan,), (batch, data[1])):
        model = quick(slts.SLTSClassifier, regularizer="l1", memory_limit="100kB")
        with pytest.raises(ValueError, match=r"too small: 100 kB. With regularizer='l1' all align"):
            model.fit(*given)
        model.set_params(memory_limit="2MB").fit(*given)


def test_the_local_classifier_samples_what_fits(scan, batch, monkeypatch, caplog):
    monkeypatch.setattr(local_fit, "_FEWEST", 10)
    monkeypatch.setattr(local_fit, "_PER_CLASS_DRAWN", 5)
    for limit in ("3MB", "4MB", "1GB"):
        with caplog.at_level(logging.INFO, "slts"):
            model = quick(slts.LocalSLTSClassifier, memory_limit=limit).fit(scan)
        assert model.landmarks_ == batch[model.landmark_indices_]
    # Twice: the last limit is enough for all series.
    counts = [int(n) for n in re.findall(rf"a sample of (\d+) of {N} series", caplog.text)]
    assert 10 <= counts[0] < counts[1] < N
    assert len(counts) == 2


def test_identifiers_of_series_in_lists_are_not_hashed(data, batch, tmp_path, monkeypatch):
    model = quick(slts.OneNNClassifier).fit(batch[:60], data[1][:60])
    scan = scan_of(write_lists(tmp_path / "lists.parquet", *data))
    monkeypatch.setattr(prediction, "digests_in", None)
    assert model.predict(scan).tolist() == model.predict(batch).tolist()


@every([slts.SLTSClassifier, slts.OneNNClassifier, slts.LocalSLTSClassifier])
def test_threads_share_one_aligner(kind, data, batch, monkeypatch):
    model = quick(kind).fit(batch[:60], data[1][:60])
    # A model from a pickle has no aligners yet.
    model, made, both = pickle.loads(pickle.dumps(model)), [], Barrier(2)

    def make(*arguments, **options):
        made.append(arguments)
        with suppress(BrokenBarrierError):
            # Wait for the other thread, which must not come here.
            both.wait(0.5)
        return Aligner(*arguments, **options)

    for part in (base, comparisons):
        monkeypatch.setattr(part, "Aligner", make)
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(model.decision_function, [batch, batch])
    assert len(made) == 1
    np.testing.assert_array_equal(one, other)


# -- errors


def test_an_error_about_one_series_names_it_and_its_file(data, batch, tmp_path, monkeypatch):
    model = quick(slts.BBSClassifier, band=slts.Itakura(2.0))
    usual = np.flatnonzero(batch.lengths >= 8)
    model.fit(batch[usual], data[1][usual])
    n, series = len(usual), [*batch[usual], np.ones((3, 400))]
    labels = np.append(data[1][usual], "low")
    path = write_long(tmp_path / "data.parquet", series, labels, first=500)
    message = rf"between series {500 + n} \(length 400\) and series \d+ of Y"
    with pytest.raises(DataError, match=message):
        model.predict(scan_of(path))
    # Without identifiers, the number is that in the part, whatever is read at a time.
    monkeypatch.setattr(prediction, "pieces", partial(source.pieces, batch_size=50))
    path = write_lists(tmp_path / "lists.parquet", series, labels, rows=200)
    with pytest.raises(DataError, match=rf"between series {n} of \S*lists.parquet, from row 0"):
        model.predict(scan_of(path))
