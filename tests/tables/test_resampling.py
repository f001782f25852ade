"""Series with irregular steps, resampled on a regular time grid."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from slts import DataError
from slts.tables import iter_series, read_series, scan_series

RNG = np.random.default_rng(0)
TIMES = [np.sort(RNG.uniform(0, 2, size=n)) + 5.0 for n in (30, 12, 1, 40)]


def table(times=TIMES):
    """Channels that are linear in time, so that interpolation is exact; slopes differ."""
    return pa.table(
        {
            "id": np.repeat(list("abcd"), [len(t) for t in times]),
            "t": np.concatenate(times),
            "label": np.repeat(["u", "v", "u", "v"], [len(t) for t in times]),
            "x": np.concatenate([k - 3.0 * t * (k + 1) for k, t in enumerate(times)]),
            "z": np.concatenate([-t * (k + 1) for k, t in enumerate(times)]),
        }
    )


def moments(unit="ns"):
    start = np.datetime64("2024-03-01T00:00:00", "ns")
    found = table()
    seconds = found["t"].to_numpy()
    when = start + (seconds * 1e9).astype("timedelta64[ns]")
    return found.set_column(1, "t", pa.array(when.astype(f"datetime64[{unit}]")))


def assert_on_grid(found, step):
    for k, (x, t) in enumerate(zip(found.series, TIMES, strict=True)):
        grid = t[0] + step * np.arange(int((t[-1] - t[0]) / step) + 1)
        np.testing.assert_allclose(x, [k - 3.0 * grid * (k + 1), -grid * (k + 1)], atol=1e-5)
    assert (found.ids.tolist(), found.labels.tolist()) == (list("abcd"), list("uvuv"))


@pytest.mark.parametrize("shuffled", [False, True])
def test_channels_are_interpolated_on_a_grid(shuffled, tmp_path):
    rows = np.arange(83)
    if shuffled:
        # Series keep the order of their first rows.
        rows = np.argsort(np.concatenate([np.arange(len(t)) for t in TIMES]), kind="stable")
    pq.write_table(table().take(rows), tmp_path / "data.parquet", row_group_size=7)
    scan = scan_series(tmp_path / "data.parquet", every=0.05)
    assert "time=t (every 0.05)" in str(scan.columns)
    assert_on_grid(scan.read(), 0.05)
    assert sum(map(len, scan.batches(batch_size=1))) == 4


@pytest.mark.parametrize("unit", ["ns", "us"])
def test_moments_have_distances_with_units(unit, tmp_path):
    pq.write_table(moments(unit), tmp_path / "data.parquet")
    assert_on_grid(read_series(tmp_path / "data.parquet", every="50ms"), 0.05)
    lines = [",".join(map(str, row.values())) for row in moments("us").to_pylist()]
    (tmp_path / "data.csv").write_text("\n".join(["id,t,label,x,z", *lines]))
    assert_on_grid(read_series(tmp_path / "data.csv", every=" 0.05 s"), 0.05)


def test_parts_and_batches_give_the_same_steps(tmp_path, tables_in_parts):
    pq.write_table(table(), tmp_path / "data.parquet", row_group_size=7)
    whole = read_series(tmp_path / "data.parquet", every=0.1).series
    found = [part.series for part in iter_series(tmp_path / "data.parquet", every=0.1)]
    assert np.concatenate([part.values for part in found]).tolist() == whole.values.tolist()


@pytest.mark.parametrize(("every", "message"), [
    ("20ms", r"the data frame: every \(--every\) must be a number .* holds numbers, .*; got 20ms"),
    ("fast", "must be a number such as 0.02, .*; got fast"),
    (0, "must be a number such as 0.02, .*; got 0"),
    ("1e400", "must be a number such as 0.02, .*; got 1e400"),
    (1e-9, r"the data frame: every=1e-09 \(--every 1e-09\) is too small for these times: 83 rows"),
])  # fmt: skip
def test_distances_that_cannot_be_used(every, message):
    with pytest.raises(DataError, match=message):
        scan_series(table(), every=every).read()


def test_a_distance_may_be_longer_than_all_series():
    whole = table().set_column(1, "t", pa.array(np.arange(83)))
    for data, every in ((table(), 1e300), (whole, 1e300), (moments(), "1e290h")):
        assert set(scan_series(data, every=every).read().series.lengths) == {1}


def test_distances_of_moments_need_a_unit_and_grids_a_time():
    for every in ("0.02", "3 weeks", "1e300h"):
        with pytest.raises(DataError, match=f"such as 20ms, .* timestamps; got {every}"):
            scan_series(moments(), every=every)
    with pytest.raises(DataError, match=r"every=1 \(--every\) .* no time column. Name it"):
        scan_series(table().drop_columns(["t"]), every=1, channels=["x", "z"])
    with pytest.raises(DataError, match=r"no named columns, so every \(--every\) cannot be used"):
        scan_series("japanese_vowels:train", every=1)


def gappy(x, **columns):
    return pa.table({"id": list("aaaaa"), "t": [0.0, 1.0, 2.0, 3.0, 4.0], "x": x, **columns})


def test_missing_values_are_bridged_and_stay_missing_at_the_ends():
    data = gappy([None, 2.0, None, 6.0, None], z=[1.0, 1.5, 2.0, None, None])
    found = scan_series(data, every=0.5, channels=["x", "z"]).read().series
    nan = np.nan
    expected = [[nan, nan, 2, 3, 4, 5, 6], [1, 1.25, 1.5, 1.75, 2, nan, nan]]
    np.testing.assert_allclose(found.values.T, expected)
    assert found.times.tolist() == [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
    # Rounded times lose no step.
    data = pa.table({"id": ["a"] * 4, "t": [0.0, 0.1, 0.2, 0.3], "x": [1.0, None, 3.0, 4.0]})
    found = scan_series(data, every=0.1, channels=["x"]).read().series
    np.testing.assert_allclose(found.values[:, 0], [1.0, 2.0, 3.0, 4.0])
