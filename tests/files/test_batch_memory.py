"""Batches and what is read for them are bounded in bytes, whatever the shape of the series."""

import numpy as np
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("narwhals")

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

from slts import SeriesBatch
from slts.files import iter_series, scan_series
from slts.files.chunks import BATCH_BYTES
from slts.files.dataset import join
from tests.files.forms import make_data, write_folder


def large_batch(lengths, n_channels):
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    steps = np.arange(offsets[-1])
    values = (steps[:, np.newaxis] % 251 + np.arange(n_channels)).astype(float)
    return SeriesBatch(values, offsets, [f"c{c}" for c in range(n_channels)])


def write_large(form, folder, batch):
    """Write series in one row group; their identifiers count from 0."""
    path = folder / f"data{'.feather' if 'feather' in form else '.parquet'}"
    ids = np.arange(len(batch))
    channels = {name: batch.values[:, c] for c, name in enumerate(batch.channel_names)}
    if form.startswith("lists"):
        offsets = pa.array(batch.offsets.astype(np.int32))
        lists = {n: pa.ListArray.from_arrays(offsets, pa.array(x)) for n, x in channels.items()}
        table = pa.table({"id": ids} | lists)
    else:
        table = pa.table({"id": np.repeat(ids, batch.lengths)} | channels)
    if path.suffix == ".feather":
        pyarrow.feather.write_feather(table, path, chunksize=table.num_rows)
    else:
        pq.write_table(table, path, row_group_size=table.num_rows)
    return path


LARGE = ["long", "long feather", "lists", "lists feather"]


@pytest.mark.parametrize("form", LARGE)
@pytest.mark.parametrize("n_channels", [4, 60])
def test_a_batch_ends_at_a_number_of_bytes(form, n_channels, tmp_path):
    steps = 5 * BATCH_BYTES // 2 // (8 * n_channels)
    batch = large_batch([steps // 50] * 50, n_channels)
    path = write_large(form, tmp_path, batch)
    for read in (iter_series(path, id="id"), scan_series(path, id="id").batches()):
        pieces = list(read)
        sizes = [piece.series.values.nbytes for piece in pieces]
        assert max(sizes) <= BATCH_BYTES
        # Few batches all the same: three or four, and one more for every cut of the row group.
        assert len(pieces) <= 12
        found = join(pieces)
        assert found.series == batch
        assert found.ids.tolist() == list(range(50))


@pytest.mark.parametrize("form", LARGE)
@pytest.mark.parametrize("position", [0, 20, 39])
def test_a_series_larger_than_a_batch_is_given_alone(form, position, tmp_path):
    lengths = np.full(40, 30)
    lengths[position] = BATCH_BYTES // 16 + 1000
    batch = large_batch(lengths, 2)
    pieces = list(iter_series(write_large(form, tmp_path, batch), id="id"))
    counts = {len(piece) for piece in pieces if piece.series.values.nbytes > BATCH_BYTES}
    assert counts == {1}
    assert join(pieces).series == batch


def test_batch_size_stays_a_limit(tmp_path):
    path = write_large("lists", tmp_path, large_batch([5] * 20, 2))
    assert [len(piece) for piece in iter_series(path, id="id", batch_size=8)] == [8, 8, 4]


def test_a_folder_of_large_files_is_read_few_at_a_time(tmp_path, monkeypatch):
    batch, labels, ids = make_data()
    folder = write_folder(tmp_path / "folder", batch, labels, ids)
    monkeypatch.setattr("slts.files.folders.BATCH_BYTES", 1)
    pieces = list(iter_series(folder, batch_size=5))
    assert [len(piece) for piece in pieces] == [1] * 12
    assert join(pieces).labels.tolist() == labels.tolist()
    assert [piece.share for piece in pieces] == [(i + 1) / 12 for i in range(12)]


@pytest.mark.parametrize("length", [100, 10_000])
@pytest.mark.parametrize("form", ["long", "lists"])
def test_a_large_row_group_is_not_held_in_memory(form, length, tmp_path):
    values = np.random.default_rng(0).normal(size=(1_500_000, 6))
    offsets = np.arange(0, len(values) + 1, length)
    path = write_large(form, tmp_path, SeriesBatch(values, offsets, [f"c{c}" for c in range(6)]))
    assert path.stat().st_size > 70e6
    before = pa.total_allocated_bytes()
    held = [pa.total_allocated_bytes() - before for _ in iter_series(path, id="id")]
    assert len(held) > 4
    assert max(held) < 40e6


def test_lists_are_not_read_to_tell_the_columns_apart(tmp_path):
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({"x": [[1.0, 2.0], [3.0]], "y": [[0.0, 1.0], [5.0]]}), path)
    # Nothing but lists: there is no column that could be looked at.
    scan = scan_series(path)
    assert scan.columns.channels == ("x", "y")
    assert scan.read().series.lengths.tolist() == [2, 1]
    large = write_large("lists", tmp_path, large_batch([200_000] * 20, 4))
    pool = pa.system_memory_pool()
    usual = pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        before = pool.max_memory()
        scan_series(large, id="id")
        assert pool.max_memory() - before < 20e6
    finally:
        pa.set_memory_pool(usual)
