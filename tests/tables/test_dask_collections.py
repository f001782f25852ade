"""Dask bags and data frames as scans: one part per partition."""

import pickle
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("dask.bag")
pytest.importorskip("dask.dataframe")

import dask
import dask.bag as bags
import dask.dataframe as frames
import pyarrow as pa

from slts import DataError
from slts.series.dataset import join
from slts.tables import scan_series
from slts.tables.dask_collections import is_collection
from tests.data import run_python
from tests.tables.forms import assert_holds, csv_text, long_table, make_data, replaced

DATA = make_data()
BATCH, LABELS, IDS = DATA
PAIRS = list(zip(BATCH, LABELS, strict=True))


def bag_of(elements, n_partitions):
    return bags.from_sequence(elements, npartitions=n_partitions)


def frame_of(tables):
    """A data frame with one partition per table."""
    parts = [dask.delayed(table.to_pandas()) for table in tables]
    return frames.from_delayed(parts, meta=tables[0].slice(0, 0).to_pandas())


def partitions():
    """Whole series, and an empty partition at the beginning and in the middle."""
    table = long_table(*DATA)
    cuts = [0, 0, int(BATCH.offsets[5]), int(BATCH.offsets[5]), table.num_rows]
    return [table.slice(a, b - a) for a, b in pairwise(cuts)]


def counts(scan):
    parts = scan.parts()
    return [sum(map(len, part.batches(labels=True, batch_size=3))) for part in parts]


def test_a_bag_of_pairs():
    bag = bag_of(PAIRS, 5)
    assert is_collection(bag)
    scan = scan_series(bag)
    parts = scan.parts()
    assert len(parts) == bag.npartitions
    batches = [b for part in parts for b in part.batches(labels=True, batch_size=2)]
    assert max(map(len, batches)) == 2
    for found in (join(batches), scan.read()):
        assert np.array_equal(found.series.values, BATCH.values)
        assert found.labels.tolist() == LABELS.tolist()
        assert found.ids is None
    assert next(parts[0].batches(labels=False, batch_size=2)).labels is None
    assert (scan.columns, scan.channel_names, scan.n_bytes) == (None, None, None)


def test_a_bag_of_series_with_empty_partitions_and_without_columns():
    bag = bag_of(range(len(BATCH)), 6).filter(lambda i: i > 4).map(lambda i: np.array(BATCH[i]))
    scan = scan_series(bag)
    assert counts(scan)[0] == 0
    found = scan.read()
    assert found.labels is None
    assert np.array_equal(found.series.values, BATCH[5:].values)
    with pytest.raises(DataError, match="Dask bag has no series"):
        scan_series(bag.filter(lambda x: False)).read()
    with pytest.raises(DataError, match=r"Dask bag has no named columns, so id \(--id\) cannot"):
        scan_series(bag, id="id")


X = np.ones((2, 3))


@pytest.mark.parametrize(("elements", "message"), [
    ([X, (X, "a")], r"partition 0: element 1 is a pair.*unlike element 0"),
    ([(X, "a"), X], r"partition 0: element 1 is not a pair.*unlike element 0"),
    ([X, np.full((2, 3), np.nan)], r"Dask bag, partition 0, from element 0: .*NaN"),
    ([(X, "a"), (X, 1)],
     "partition 0: the label of element 1 is 1, but labels must be all text, or all numbers"),
])  # fmt: skip
def test_bad_bags(elements, message):
    with pytest.raises(DataError, match=message):
        scan_series(bag_of(elements, 1)).read()


@pytest.mark.parametrize("label", [None, np.nan, np.float32("nan"), "", np.array("")])
def test_missing_labels_of_a_bag(label):
    scan = scan_series(bag_of([(X, "a"), (X, "b"), (X, label)], 2))
    with pytest.raises(DataError, match=r"partition 1: the label of element 0 is .* not missing"):
        scan.read()
    assert len(scan.read(labels=False)) == 3


@pytest.mark.parametrize(("labels", "expected"), [
    ([np.array(2), np.int8(1)], [2, 1]), ([np.array("b"), np.str_("a")], ["b", "a"]),
    ([True, False], [True, False]), ([1, 2.5], [1, 2.5]),
])  # fmt: skip
def test_labels_of_a_bag_are_one_array(labels, expected):
    found = scan_series(bag_of([(X, label) for label in labels], 1)).read().labels
    assert (found.shape, found.tolist()) == ((2,), expected)


@pytest.mark.parametrize("second", [np.ones(3), np.array([1]), [1], (1, 2)])
def test_a_pair_of_channels_is_not_read_as_a_label(second):
    with pytest.raises(DataError, match=r"label of element 0 .*A tuple of two.*stack"):
        scan_series(bag_of([(np.ones(3), second)], 1)).read()


def test_a_data_frame():
    frame = frame_of(partitions())
    assert is_collection(frame)
    scan = scan_series(frame)
    assert (scan.columns.id, scan.columns.label) == ("recording", "label")
    assert counts(scan) == [0, 5, 0, 7]
    assert_holds(scan.read(), DATA)
    assert_holds(join(scan.batches(batch_size=4)), DATA)
    assert "Dask DataFrame; id=recording" in repr(scan)
    # Identifiers may be in the index.
    frame = frame.set_index("recording", sorted=True)
    assert_holds(scan_series(frame, id="recording").read(), DATA)


def test_bad_data_frames():
    table = long_table(*DATA)
    cut = int(BATCH.offsets[5])
    with pytest.raises(DataError, match="Dask DataFrame has no rows"):
        scan_series(frame_of([table.slice(0, 0)]))
    with pytest.raises(DataError, match=r"no column 'absent' .id."):
        scan_series(frame_of([table]), id="absent")
    values = table["c1"].to_pylist()
    values[cut + 2] = np.inf
    broken = replaced(table, "c1", pa.array(values))
    with pytest.raises(DataError, match=r"partition 1, row 2 \(series 'r005'\): 'c1' is infinite"):
        scan_series(frame_of([broken.slice(0, cut), broken.slice(cut)])).read()
    # A series is repeated in a later partition.
    again = frame_of([table.slice(0, cut), table.slice(cut), table.slice(0, 2)])
    with pytest.raises(DataError, match=r"partition 2: series 'r000' is repeated"):
        list(scan_series(again).batches())


def test_parts_read_what_was_computed_elsewhere():
    for scan in (scan_series(frame_of(partitions())), scan_series(bag_of(PAIRS, 4))):
        parts = scan.parts()
        computed = dask.compute(*[part.payload for part in parts], scheduler="synchronous")
        held = [part.holding(found) for part, found in zip(parts, computed, strict=True)]
        assert [part.name for part in held] == [part.name for part in parts]
        assert all(part.payload is None for part in held)
        sent = pickle.loads(pickle.dumps(held))
        found = join(b for part in sent for b in part.batches(labels=True, batch_size=4))
        assert np.array_equal(found.series.values, BATCH.values)
        assert found.labels.tolist() == LABELS.tolist()


def test_data_that_a_cluster_holds_are_read_by_its_client():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster),
    ):
        frame, bag = frame_of(partitions()), bag_of(PAIRS, 3)
        for collection in (frame, frame.persist(), bag, bag.persist()):
            found = scan_series(collection).read()
            assert np.array_equal(found.series.values, BATCH.values)
            assert found.labels.tolist() == LABELS.tolist()
    # Without the cluster, this process computes again.
    assert len(scan_series(bag_of(list(BATCH), 3)).read()) == len(BATCH)


def test_scanning_a_file_does_not_import_dask(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(csv_text(long_table(*DATA)))
    program = (
        "import sys; from slts.tables import scan_series; "
        f"scan_series({str(path)!r}).read(); "
        "assert 'dask' not in sys.modules"
    )
    run_python(program)
