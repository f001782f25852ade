"""The memory of batches is bounded, whatever the shape of the series."""

import numpy as np
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow")

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

from slts import SeriesBatch
from slts.tables import iter_series, scan_series
from slts.series.dataset import join
from tests.tables.forms import make_data, write_folder

pytestmark = pytest.mark.usefixtures("tables_in_parts")


def large_batch(lengths, n_channels):
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    steps = np.arange(offsets[-1])
    values = (-steps[:, np.newaxis] % 251 + np.arange(n_channels)).astype(float)
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


@pytest.fixture
def batch_bytes(monkeypatch):
    """Small batches, so that small files are enough."""
    monkeypatch.setattr("slts.tables.scan.BATCH_BYTES", 1 << 17)
    monkeypatch.setattr("slts.tables.arrow_files._READ_BYTES", 3 << 15)
    return 1 << 17


@pytest.mark.parametrize("form", LARGE)
@pytest.mark.parametrize("n_channels", [4, 60])
def test_a_batch_ends_at_a_number_of_bytes(form, n_channels, tmp_path, batch_bytes):
    steps = 5 * batch_bytes // 2 // (8 * n_channels)
    batch = large_batch([steps // 50] * 50, n_channels)
    batches = list(iter_series(write_large(form, tmp_path, batch), id="id"))
    assert max(found.series.values.nbytes for found in batches) <= batch_bytes
    # Three or four batches, and one more for every cut of the row group.
    assert len(batches) <= 12
    found = join(batches)
    assert found.series == batch
    assert found.ids.tolist() == list(range(50))


@pytest.mark.parametrize("form", LARGE)
@pytest.mark.parametrize("position", [0, 20, 39])
def test_a_series_larger_than_a_batch_is_a_batch(form, position, tmp_path, batch_bytes):
    lengths = np.full(40, 30)
    lengths[position] = batch_bytes // 16 + 1000
    batch = large_batch(lengths, 2)
    batches = list(iter_series(write_large(form, tmp_path, batch), id="id"))
    counts = {len(found) for found in batches if found.series.values.nbytes > batch_bytes}
    assert counts == {1}
    assert join(batches).series == batch


def test_batch_size_is_a_limit_too(tmp_path):
    path = write_large("lists", tmp_path, large_batch([5] * 20, 2))
    assert [len(piece) for piece in iter_series(path, id="id", batch_size=8)] == [8, 8, 4]


def test_a_folder_of_large_files_is_read_in_small_batches(tmp_path, monkeypatch):
    batch, labels, ids = make_data()
    folder = write_folder(tmp_path / "folder", batch, labels, ids)
    monkeypatch.setattr("slts.tables.scan.BATCH_BYTES", 1)
    pieces = list(iter_series(folder, batch_size=5))
    assert [len(piece) for piece in pieces] == [1] * 12
    assert join(pieces).labels.tolist() == labels.tolist()
    assert pieces[0].share < 0.5
    assert pieces[-1].share == 1.0


@pytest.mark.slow
@pytest.mark.parametrize(("form", "length"), [("long", 100), ("lists", 10_000)])
def test_a_large_row_group_is_not_held_in_memory(form, length, tmp_path, monkeypatch):
    monkeypatch.setattr("slts.tables.scan.BATCH_BYTES", 1 << 20)
    monkeypatch.setattr("slts.tables.arrow_files._READ_BYTES", 3 << 18)
    values = np.random.default_rng(0).normal(size=(800_000, 6))
    offsets = np.arange(0, len(values) + 1, length)
    path = write_large(form, tmp_path, SeriesBatch(values, offsets, [f"c{c}" for c in range(6)]))
    assert path.stat().st_size > 38e6
    before = pa.total_allocated_bytes()
    held = [pa.total_allocated_bytes() - before for _ in iter_series(path, id="id")]
    assert len(held) > 4
    # The pages of Parquet take up to 3 MB per column.
    assert max(held) < 20e6


def test_lists_are_not_read_to_guess_the_columns(tmp_path):
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({"x": [[1.0, 2.0], [3.0]], "y": [[0.0, 1.0], [5.0]]}), path)
    # There are only lists.
    scan = scan_series(path)
    assert scan.columns.channels == ("x", "y")
    assert scan.read().series.lengths.tolist() == [2, 1]
    large = write_large("lists", tmp_path, large_batch([50_000] * 20, 4))
    pool = pa.system_memory_pool()
    usual = pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        before = pool.max_memory()
        scan_series(large, id="id")
        assert pool.max_memory() - before < 5e6
    finally:
        pa.set_memory_pool(usual)
