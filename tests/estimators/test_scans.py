"""Estimators on scans: what fit, predict and score do with series that are read part by part."""

import re
from contextlib import suppress
from importlib import import_module

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.model_selection import KFold, PredefinedSplit

import slts
from slts import DataError
from slts.tables.arrow import ParquetPart
from tests.data import CHANNELS, NAMES, long_table, scan_of, waves, write_lists, write_long
from tests.estimators.kinds import KINDS, LANDMARKED, every, every_kind, quick

pytestmark = pytest.mark.usefixtures("tables_in_parts")

N = 120


def read_by_label(path, **columns):
    return slts.scan_series(path, **{"label": "label"} | columns)


@pytest.fixture(scope="module")
def data():
    series, codes = waves(N, n_classes=3, noise=0.7)
    return series, NAMES[codes]


@pytest.fixture(scope="module")
def scan(data, tmp_path_factory):
    """The same in three Parquet files; a series lies in two of them."""
    folder = tmp_path_factory.mktemp("long")
    table = long_table(*data)
    cuts = [0, table.num_rows // 3, table.num_rows // 3 + 2, table.num_rows]
    for k in range(3):
        part = table.slice(cuts[k], cuts[k + 1] - cuts[k])
        pq.write_table(part, folder / f"{k}.parquet", row_group_size=97)
    return read_by_label(folder)


@pytest.fixture(scope="module")
def batch(data):
    plain = slts.as_series(data[0])
    return slts.SeriesBatch(plain.values, plain.offsets, CHANNELS)


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: kind.__name__)
def fitted(request, data, batch):
    return quick(request.param).fit(batch[:60], data[1][:60])


# -- arguments


def test_what_must_be_scanned_is_an_error_that_shows_the_call(data, tmp_path):
    model = quick(slts.BBSClassifier).fit(*data)
    unread = [str(tmp_path), tmp_path / "a.parquet"]
    with suppress(ImportError):
        unread.append(import_module("dask.bag").from_sequence([1, 2]))
    for given in unread:
        for work in (slts.BBSClassifier().fit, model.predict, model.transform):
            with pytest.raises(DataError, match=r"slts\.scan_series"):
                work(given)


@every_kind
def test_a_scan_has_its_own_labels_and_no_weights(kind, scan, data):
    for y in ("label", data[1]):
        with pytest.raises(DataError, match="y must be None for a scan"):
            kind().fit(scan, y)
    if kind in (*LANDMARKED, slts.SimilaritySVC, slts.LocalSLTSClassifier):
        with pytest.raises(DataError, match=f"{kind.__name__} takes no sample_weight with a scan"):
            kind().fit(scan, sample_weight=np.ones(N))


def test_a_scan_needs_labels_for_fit_and_score(scan, data, tmp_path):
    model = quick(slts.BBSClassifier).fit(scan)
    pq.write_table(long_table(*data).drop_columns("label"), tmp_path / "a.parquet")
    unlabelled = slts.scan_series(tmp_path / "a.parquet", channels=CHANNELS)
    for work in (slts.BBSClassifier().fit, model.score):
        with pytest.raises(DataError, match=r"has no labels.*scan_series\(.*label="):
            work(unlabelled)
    np.testing.assert_array_equal(model.predict(unlabelled), model.predict(scan))


def test_series_of_a_scan_have_no_indices(scan):
    cv = PredefinedSplit(np.arange(N) % 3)
    for model, name in (
        (slts.SLTSClassifierCV(cv=cv), "cv"),
        (slts.SimilaritySVC(calibration_cv=list(cv.split())), "calibration_cv"),
        (slts.BBSClassifier(landmarks=[0]), "landmarks"),
    ):
        with pytest.raises(ValueError, match=f"'{name}' parameter .*indices"):
            model.fit(scan)
    quick(slts.BBSClassifier, calibration_cv=KFold(3)).fit(scan)


# -- prediction


@pytest.mark.slow
def test_a_scan_is_predicted_like_series_in_memory(fitted, scan, batch, data):
    np.testing.assert_array_equal(fitted.predict(scan), fitted.predict(batch))
    for name in ("decision_function", "predict_proba", "transform"):
        if hasattr(fitted, name):
            of_scan, of_batch = (getattr(fitted, name)(X) for X in (scan, batch))
            np.testing.assert_allclose(of_scan, of_batch, rtol=1e-9)
    assert fitted.score(scan) == fitted.score(batch, data[1])


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_a_score_reads_every_part_once(n_jobs, scan, data, monkeypatch):
    model = quick(slts.BBSClassifier, n_jobs=n_jobs).fit(*data)
    reads, batches = [], ParquetPart.batches

    def counted(part, **options):
        reads.append(part.name)
        return batches(part, **options)

    monkeypatch.setattr(ParquetPart, "batches", counted)
    assert model.score(scan) == model.score(*data)
    assert sorted(reads) == sorted(part.name for part in scan.parts())
    weights = np.linspace(0.0, 1.0, N)
    assert model.score(scan, sample_weight=weights) == model.score(*data, weights)
    assert model.score(scan, model.predict(scan)) == 1.0


def test_channels_are_matched_by_name(fitted, data, batch, tmp_path):
    table = long_table(*data)
    extra = pa.array(np.ones(table.num_rows))
    turned = table.select(["z", "id", "x", "t", "label", "y"]).append_column("w", extra)
    pq.write_table(turned, tmp_path / "turned.parquet")
    scan = read_by_label(tmp_path / "turned.parquet", channels=["z", "x", "y"])
    np.testing.assert_array_equal(fitted.predict(scan), fitted.predict(batch))
    more = read_by_label(tmp_path / "turned.parquet", channels=["x", "y", "z", "w"])
    for work in (fitted.predict, fitted.score):
        with pytest.raises(DataError, match="4 channels, but the model has 3"):
            work(more)


# -- learning


def test_a_repeated_row_of_lists_is_an_error(data, tmp_path):
    path = write_lists(tmp_path / "lists.parquet", *data)
    table = pq.read_table(path).append_column("id", pa.array(np.arange(N) % 70))
    pq.write_table(table, path, row_group_size=17)
    with pytest.raises(DataError, match="appears in both"):
        quick(slts.BBSClassifier).fit(read_by_label(path))


def test_a_series_in_two_places_is_an_error(data, tmp_path):
    model = quick(slts.BBSClassifier).fit(*data)
    write_long(tmp_path / "a.parquet", data[0][:60], data[1][:60])
    write_long(tmp_path / "b.parquet", data[0][60:], data[1][60:], first=50)
    for work in (quick(slts.BBSClassifier).fit, model.predict, model.score):
        with pytest.raises(DataError, match=r"Series \d+ appears in both .*a\.p.* and .*b\.p"):
            work(read_by_label(tmp_path))


def test_a_model_of_a_scan_is_saved_and_explained(scan, batch, tmp_path):
    model = quick(slts.SLTSClassifier).fit(scan)
    assert model.channel_names_in_ == CHANNELS
    assert model.label_column_ == "label"
    slts.save(model, tmp_path / "m.slts")
    np.testing.assert_array_equal(
        slts.load(tmp_path / "m.slts").predict(scan), model.predict(batch)
    )
    explanation = slts.explain(model, batch[0])
    total = explanation.offset + explanation.contributions.sum((1, 2))
    np.testing.assert_allclose(total, explanation.decision)


# -- memory


@every(LANDMARKED)
def test_as_many_series_are_learned_from_as_fit_in_memory(kind, data):
    """Alignments have half of the memory, the sample of a scan an eighth."""
    series, codes = waves(900, n_classes=3, lengths=(2, 5))
    scan = scan_of((series[:300], codes[:300]), (series[300:], codes[300:]))
    # 12 numbers for each series, or 12 products of three channels and their sums by class.
    per_series = 8 * (9 * (12 + 3 * 3) if "SLTS" in kind.__name__ else 12)
    limit = 2 * 200 * per_series
    held = quick(kind, memory_limit=limit).fit(series, codes)
    assert (held.n_sampled_, held.n_series_in_) == (200, 900)
    assert quick(kind).fit(series, codes).n_sampled_ == 900
    read = quick(kind, memory_limit=limit).fit(scan)
    in_sample = limit / 8 / (8 * 3 * slts.as_series(series).lengths.mean())
    assert read.n_sampled_ == pytest.approx(min(200, in_sample), rel=0.25)
    assert read.n_series_in_ == 900
    assert read.score(scan) > 0.4


@every([slts.BBSClassifier, slts.BBSClassifierCV, slts.LocalSLTSClassifier])
def test_more_landmarks_than_a_sample_has_are_an_error(kind):
    series, codes = waves(3000, n_classes=2, channels=2, lengths=(20, 21))
    # The sample has an eighth of the limit; landmarks are chosen from it.
    model = quick(kind, n_landmarks=2900, memory_limit="1.5MB")
    with pytest.raises(ValueError, match=r"'n_landmarks' parameter.*asks for 2900 landmarks"):
        model.fit(scan_of((series, codes)))


@every([slts.SLTSClassifier, slts.BBSClassifier, slts.LocalSLTSClassifier])
def test_the_suggested_limit_is_sufficient(kind, data, batch):
    with pytest.raises(ValueError, match=r"'memory_limit' parameter of .* is too small") as caught:
        quick(kind, memory_limit=1000).fit(batch, data[1])
    number, unit = re.search(r"needs ([\d.]+) (.B)", str(caught.value)).groups()
    quick(kind, memory_limit=f"{1.1 * float(number)}{unit}").fit(batch, data[1])


# -- errors


def test_an_error_about_one_series_names_it_and_its_file(data, batch, tmp_path):
    usual = np.flatnonzero(batch.lengths >= 8)
    model = quick(slts.BBSClassifier, band=slts.Itakura(2.0)).fit(batch[usual], data[1][usual])
    n, series = len(usual), [*batch[usual], np.ones((3, 400))]
    labels = np.append(data[1][usual], "low")
    path = write_long(tmp_path / "data.parquet", series, labels, first=500)
    with pytest.raises(DataError, match=rf"series {500 + n} \(length 400\)"):
        model.predict(read_by_label(path))
    # Without identifiers, the number is that in the part.
    path = write_lists(tmp_path / "lists.parquet", series, labels, rows=200)
    with pytest.raises(DataError, match=rf"series {n} of \S*lists.parquet"):
        model.predict(read_by_label(path))
