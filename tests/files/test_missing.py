"""Missing values in files: kept as NaN; series that cannot be used can be left out."""

import numpy as np
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("narwhals")

import pyarrow as pa
import pyarrow.parquet as pq

from slts import DataError, SeriesBatch, as_series
from slts.files import iter_series, read_series
from tests.files.forms import make_data, write_form

FORMS = (".ts", ".csv", ".csv.gz", ".parquet", ".npz", "folder", "lists")


def with_gaps():
    batch, labels, ids = make_data()
    values = batch.values.copy()
    values[np.random.default_rng(0).random(values.shape) < 0.3] = np.nan
    values[batch.offsets[1:] - 1, 0] = 1.0
    return SeriesBatch(values, batch.offsets, batch.channel_names), labels, ids


@pytest.mark.parametrize("form", FORMS)
def test_every_form_keeps_missing_values(form, tmp_path):
    batch, labels, ids = with_gaps()
    found = read_series(write_form(form, tmp_path, batch, labels, ids))
    assert as_series(list(found.series)) == as_series(list(batch))
    assert found.labels.tolist() == labels.tolist()


@pytest.mark.parametrize("form", [".csv", ".parquet", "lists"])
def test_steps_at_the_end_without_a_value_are_removed(form, tmp_path):
    batch, labels, ids = make_data()
    values = batch.values.copy()
    values[batch.offsets[4] - 1] = np.nan
    changed = SeriesBatch(values, batch.offsets, batch.channel_names)
    path = write_form(form, tmp_path, changed, labels, ids)
    lengths = batch.lengths.copy()
    lengths[3] -= 1
    assert read_series(path).series.lengths.tolist() == lengths.tolist()


def test_empty_cells_are_missing_values(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("id,x,y\na,1,\na,,2\nb,NA,3\nb,4,nan\n")
    found = read_series(path).series
    np.testing.assert_array_equal(
        found.values, [[1, np.nan], [np.nan, 2], [np.nan, 3], [4, np.nan]]
    )


def test_a_channel_of_a_model_may_be_empty(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("id,x,y\na,1,\na,2,\n")
    assert read_series(path, expect=["x", "y"]).series.n_missing.tolist() == [0, 2]


# -- series that cannot be used


@pytest.mark.parametrize("batch_size", [1, 2, 100])
@pytest.mark.parametrize("in_parts", [False, True])
@pytest.mark.parametrize("cell", ["inf", "oops"])
def test_one_bad_cell_leaves_one_series_out(cell, in_parts, batch_size, tmp_path, request):
    if in_parts:
        request.getfixturevalue("tables_in_parts")
    path = tmp_path / "data.csv"
    path.write_text(f"id,x\na,1\na,2\nb,3\nb,{cell}\nc,\nc,\nd,5\nd,6\n")
    with pytest.raises(DataError, match=r"line 5"):
        list(iter_series(path, expect=["x"], batch_size=batch_size))
    batches = list(iter_series(path, expect=["x"], batch_size=batch_size, on_error="skip"))
    assert [id for batch in batches for id in batch.ids.tolist()] == ["a", "d"]
    first, found = 0, []
    for batch in batches:
        found += [(first + one.position, one.id, one.reason) for one in batch.unusable]
        first += len(batch) + len(batch.unusable)
    assert [(position, id) for position, id, _ in found] == [(1, "b"), (2, "c")]
    assert found[0][2] == "step 1 of 'x' is infinite or not a number"
    assert found[1][2] == "it has no values"
    assert np.isfinite(np.concatenate([batch.series.values for batch in batches])).all()


def test_bad_lists_can_be_left_out(tmp_path):
    path = tmp_path / "data.parquet"
    lists = [[1.0, 2.0], [np.inf, 1.0], [None, 3.0], [None, None]]
    pq.write_table(pa.table({"id": ["a", "b", "c", "d"], "x": lists}), path)
    (batch,) = iter_series(path, on_error="skip", labels=False)
    assert batch.ids.tolist() == ["a", "c"]
    assert [(one.position, one.id) for one in batch.unusable] == [(1, "b"), (3, "d")]
