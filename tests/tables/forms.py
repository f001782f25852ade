"""The same small data set written in every form that can be read."""

import bz2
import gzip
import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

from slts import SeriesBatch, as_series
from slts.series.dataset import join
from tests.data import write_ts

CHANNELS = ("c1", "c2", "c3")


def make_data(n_series=12, seed=0):
    """Series of 2 to 9 steps, three channels, two classes, and identifiers that look like text."""
    rng = np.random.default_rng(seed)
    labels = np.where(np.arange(n_series) % 2, "low", "high")
    series = [rng.normal(size=(3, rng.integers(2, 10))) + 2.0 * (y == "high") for y in labels]
    batch = as_series(series)
    ids = np.array([f"r{i:03d}" for i in range(n_series)])
    return SeriesBatch(batch.values, batch.offsets, CHANNELS), labels, ids


def series_of_lengths(lengths, *, text=False, seed=0):
    """Series of given lengths with distinct values, labels and identifiers."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    batch = SeriesBatch(rng.normal(size=(offsets[-1], 2)), offsets, ["c1", "c2"])
    ids = rng.permutation(len(lengths)) - 3
    labels = np.array([f"class {i % 3}" for i in range(len(lengths))])
    return batch, labels, np.array([f"s{i}" for i in ids]) if text else ids


def long_table(batch, labels, ids, *, label=True):
    rows = np.repeat(np.arange(len(batch)), batch.lengths)
    steps = np.concatenate([np.arange(length) for length in batch.lengths])
    columns = {"recording": ids[rows], "t": steps}
    if label:
        columns["label"] = labels[rows]
    names = batch.channel_names or CHANNELS
    return pa.table(columns | {name: batch.values[:, c] for c, name in enumerate(names)})


def list_table(batch, labels, ids):
    columns = {"id": ids.tolist(), "label": labels.tolist()}
    for c, name in enumerate(batch.channel_names):
        columns[name] = [x[c].tolist() for x in batch]
    return pa.table(columns)


def replaced(table, name, values):
    """Return a table with another column in the place of `name`."""
    return table.set_column(table.schema.get_field_index(name), name, values)


def assert_holds(found, data):
    """Check series, labels and identifiers of a data set that was read."""
    batch, labels, ids = data
    assert (found.series, found.labels.tolist()) == (batch, labels.tolist())
    assert found.ids.tolist() == ids.tolist()


def read_parts(scan, *, batch_size=3, labels=True):
    """Read every part of a scan, sent through pickle as to another process."""
    batches = []
    for part in pickle.loads(pickle.dumps(scan.parts(labels=labels))):
        batches += part.batches(labels=labels, batch_size=batch_size)
    assert max(map(len, batches)) <= batch_size
    return join(batches)


def csv_text(table, delimiter=","):
    rows = zip(*(table[name].to_pylist() for name in table.column_names), strict=True)
    lines = [delimiter.join(table.column_names)]
    lines += [delimiter.join(map(str, row)) for row in rows]
    return "\n".join(lines) + "\n"


def write_compressed(path: Path, content: bytes) -> None:
    if path.suffix == ".zst":
        with pa.CompressedOutputStream(str(path), "zstd") as stream:
            stream.write(content)
        return
    openers = {".gz": gzip.open, ".bz2": bz2.open}
    with openers.get(path.suffix, open)(path, "wb") as file:
        file.write(content)


def write_folder(folder: Path, batch, labels, ids, *, with_labels=True) -> Path:
    folder.mkdir()
    lines = ["file,label"]
    for x, label, name in zip(batch, labels, ids, strict=True):
        rows = [",".join(batch.channel_names), *(",".join(map(repr, row.tolist())) for row in x.T)]
        (folder / f"{name}.csv").write_text("\n".join(rows) + "\n")
        lines.append(f"{name}.csv,{label}")
    if with_labels:
        (folder / "labels.csv").write_text("\n".join(lines) + "\n")
    return folder


def write_form(form: str, folder: Path, batch, labels, ids, *, order=None) -> Path:
    """Write a data set; `form` is a suffix, or one of "folder", "lists", "parquet folder".

    `order` is another order of the rows in long form.
    """
    table = long_table(batch, labels, ids)
    table = table if order is None else table.take(order)
    path = folder / f"data{form}"
    if form.startswith((".csv", ".tsv")):
        write_compressed(path, csv_text(table, "\t" if ".tsv" in form else ",").encode())
    elif form.startswith(".ts"):
        plain = folder / "plain.ts"
        write_ts(plain, batch, labels)
        write_compressed(path, plain.read_bytes())
    elif form == ".parquet":
        # Row groups end inside series.
        pq.write_table(table, path, row_group_size=7)
    elif form == ".feather":
        pyarrow.feather.write_feather(table, path, chunksize=7)
    elif form == ".npz":
        np.savez(path, values=batch.values, offsets=batch.offsets, y=labels, ids=ids)
    elif form == "folder":
        return write_folder(folder / "folder", batch, labels, ids)
    elif form == "lists":
        path = folder / "lists.parquet"
        pq.write_table(list_table(batch, labels, ids), path, row_group_size=5)
    elif form == "parquet folder":
        path = folder / "parts"
        path.mkdir()
        cut = table.num_rows // 2
        pq.write_table(table.slice(0, cut), path / "part-0.parquet")
        pq.write_table(table.slice(0, 0), path / "part-1.parquet")
        pq.write_table(table.slice(cut), path / "part-2.parquet")
    else:
        raise ValueError(form)
    return path


FORMS = (
    ".ts", ".ts.gz", ".ts.bz2", ".ts.zst", ".csv", ".csv.gz", ".csv.bz2",
    ".csv.zst", ".tsv", ".parquet", ".feather", ".npz", "folder", "lists", "parquet folder",
)  # fmt: skip
