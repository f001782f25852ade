"""Tables as people have them: text times, constant columns, wide files, a folder per class."""

import numpy as np
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow")

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

from slts import DataError, as_series
from slts.tables import iter_series, read_series, scan_series
from tests.tables.forms import csv_text, list_table, long_table, make_data, read_parts, replaced

BATCH, LABELS, IDS = make_data()
N_ROWS = BATCH.n_steps


def write(table, folder, form):
    """Write a table; the data frame itself is a form too."""
    if form == "frame":
        return table.to_pandas()
    path = folder / f"data{form}"
    if form == ".csv":
        path.write_text(csv_text(table))
    elif form == ".feather":
        pyarrow.feather.write_feather(table, path)
    else:
        pq.write_table(table, path, row_group_size=7)
    return path


def moments(table, form):
    """Replace the steps by text such as 2024-03-01 00:00:03.084531."""
    start = np.datetime64("2024-03-01T00:00:00.084531")
    texts = [form(str(start + 1_000_000 * step)) for step in table["t"].to_pylist()]
    return replaced(table, "t", pa.array(texts))


@pytest.mark.parametrize("form", [".csv", ".parquet", ".feather", "frame"])
@pytest.mark.parametrize(
    "written",
    [lambda text: text.replace("T", " "), lambda text: f"{text}Z", lambda text: text[11:19]],
    ids=["blank", "zone", "clock"],
)
def test_text_times_order_the_steps_in_every_form(form, written, tmp_path):
    table = moments(long_table(BATCH, LABELS, IDS), written)
    table = table.take(np.random.default_rng(0).permutation(N_ROWS))
    found = scan_series(write(table, tmp_path, form))
    assert found.columns.time == "t"
    for data in (found.read(), read_parts(found)):
        assert data.notes == ("steps were sorted by 't': the rows are not in order of time",)
        order = np.argsort(data.ids)
        assert data.series[order] == BATCH


# The first step of a series, the distance of steps, and the length of a turn of the clock.
@pytest.mark.parametrize("clock", [(86_398, 1, 86_400), (43_198, 1, 43_200), (0, 46_000, 86_400)])
@pytest.mark.parametrize("kind", ["text", "time32[s]", "time64[ns]"])
@pytest.mark.parametrize("form", [".csv", ".parquet", "frame"])
def test_times_of_day_that_start_again_are_an_error(kind, form, clock, tmp_path):
    table = long_table(BATCH, LABELS, IDS)
    first, distance, turn = clock
    times = [(first + distance * step) % turn for step in table["t"].to_pylist()]
    seconds = pa.array(times, "int32")
    clock = seconds.cast("time32[s]")
    table = replaced(table, "t", clock.cast("string" if kind == "text" else kind))
    message = r"data.*: the times of day 't' start again within series 'r0.*Add the dates.*--time"
    with pytest.raises(DataError, match=message):
        scan_series(write(table, tmp_path, form)).read()


@pytest.mark.parametrize("form", [".csv", ".parquet"])
def test_dates_with_slashes_and_dots_are_times(form, tmp_path):
    dated = long_table(BATCH, LABELS, IDS)
    iso = [f"2024-03-{1 + step:02d} 12:30" for step in dated["t"].to_pylist()]
    dots = [f"{text[8:10]}.{text[5:7]}.{text[:4]}{text[10:]}" for text in iso]
    for texts in ([text.replace("-", "/") for text in iso], dots):
        table = replaced(dated, "t", pa.array(texts))
        table = table.take(np.random.default_rng(0).permutation(N_ROWS))
        data = read_series(write(table, tmp_path, form))
        assert data.columns.time == "t"
        assert data.series[np.argsort(data.ids)] == BATCH


def test_row_numbers_of_pandas_are_not_listed(tmp_path):
    long_table(BATCH, LABELS, IDS).to_pandas().to_csv(tmp_path / "data.csv")
    columns = read_series(tmp_path / "data.csv").columns
    assert str(columns) == "id=recording, time=t, label=label, channels=c1..c3"


def trials(batch, labels):
    """A table of four subjects with three trials each; one subject has a slash in its name."""
    table = long_table(batch, labels, np.arange(12))
    number = table["recording"].to_numpy()
    subject = pa.array(np.array(["s1", "s2", "s/3", "s4"])[number // 3])
    table = table.add_column(1, "trial", pa.array(number % 3))
    return replaced(table, "recording", subject).rename_columns(
        ["subject", "trial", *table.column_names[2:]]
    )


@pytest.mark.parametrize("form", [".csv", ".parquet", ".feather", "frame"])
def test_several_columns_identify_a_series_together(form, tmp_path, tables_in_parts):
    source = write(trials(BATCH, LABELS), tmp_path, form)
    with pytest.raises(DataError, match=r"'trial' varies within 'subject'.*--id subject --id tria"):
        scan_series(source)
    with pytest.raises(DataError, match=r"occurs twice in the series with id 's1'.*several series"):
        scan_series(source, id="subject").read()
    scan = scan_series(source, id=["subject", "trial"], groups="subject")
    assert (scan.columns.channels, scan.columns.label) == (BATCH.channel_names, "label")
    for data in (scan.read(), read_parts(scan)):
        assert data.series == BATCH
        assert data.labels.tolist() == LABELS.tolist()
        assert data.groups.tolist()[4:8] == ["s2", "s2", "s/3", "s/3"]
        assert data.ids.tolist()[4:8] == ["s2/1", "s2/2", r"s\/3/0", r"s\/3/1"]
    with pytest.raises(DataError, match=r"no column 'nope' \(id\)"):
        scan_series(source, id=["subject", "nope"])


def test_a_label_that_varies_may_need_one_more_identifier():
    table = trials(BATCH, LABELS)
    varying = replaced(table, "label", pa.array(np.arange(table.num_rows) % 2))
    options = r"--id subject --id trial --id \.\.\. \(id=\['subject', 'trial', \.\.\.\]\)"
    with pytest.raises(DataError, match=options):
        scan_series(varying, id=["subject", "trial"], label="label").read()
    with pytest.raises(
        DataError, match=r"one: --id subject --id \.\.\. \(id=\['subject', \.\.\.\]\)"
    ):
        scan_series(varying, id="subject", label="label", channels=["c1"]).read()


def test_frames_and_rows_of_lists_have_several_identifiers_too():
    frame = trials(BATCH, LABELS).to_pandas()
    found, labels = as_series(
        frame, id=["subject", "trial"], time="t", label="label", channels=BATCH.channel_names
    )
    assert found == BATCH
    assert found.series_names[3:5] == ("s2/0", "s2/1")
    assert labels.tolist() == LABELS.tolist()
    lists = list_table(BATCH, LABELS, IDS).append_column("trial", pa.array(np.arange(12) % 3))
    assert scan_series(lists, id=["id", "trial"]).read().ids[4] == "r004/1"
    frame.loc[5, "trial"] = None
    with pytest.raises(DataError, match=r"row 5: 'subject,trial' \(id\) is missing"):
        scan_series(frame, id=["subject", "trial"]).read()


@pytest.mark.parametrize("form", [".csv", ".parquet"])
def test_a_later_time_that_cannot_be_read_is_named(form, tmp_path, monkeypatch):
    monkeypatch.setattr("slts.tables.arrow_files.SAMPLE_ROWS", 10)
    monkeypatch.setattr("slts.tables.text_files._BLOCK", 1 << 10)
    table = moments(long_table(BATCH, LABELS, IDS), str)
    texts = table["t"].to_pylist()
    texts[-1] = "late"
    path = write(replaced(table, "t", pa.array(texts)), tmp_path, form)
    place = rf"(line {N_ROWS + 1}|row {N_ROWS - 1}) \(series 'r011'\): 't' \(time\) holds 'late'"
    with pytest.raises(DataError, match=place):
        read_series(path)


def test_seconds_may_have_fractions_in_later_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("slts.tables.text_files._BLOCK", 1 << 10)
    path = tmp_path / "data.csv"
    rows = [f"a,2024-03-01 00:{i // 60:02d}:{i % 60:02d},{i % 7}" for i in range(500)]
    path.write_text("\n".join(["id,t,x", *rows, "a,2024-03-01 00:50:00.25,5"]))
    assert read_series(path).series.n_steps == 501


@pytest.mark.parametrize("form", [".csv", ".parquet", ".feather", "frame"])
def test_booleans_are_read_as_zeros_and_ones(form, tmp_path):
    on = np.arange(N_ROWS) % 3 == 0
    table = long_table(BATCH, LABELS, IDS).append_column("on", pa.array(on))
    found = scan_series(write(table, tmp_path, form)).read()
    assert found.columns.channels == (*BATCH.channel_names, "on")
    assert found.series.values[:, 3].tolist() == on.tolist()


def test_a_number_among_booleans_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("slts.tables.text_files._BLOCK", 1 << 10)
    path = tmp_path / "data.csv"
    rows = "".join(f"a{i // 100},{i % 3 == 0}\n" for i in range(2_000))
    path.write_text(f"id,on\n{rows}b,0.5\n")
    with pytest.raises(DataError, match=r"line 2002: column 'on' .* not true or false: .*'0.5'"):
        read_series(path)


@pytest.mark.parametrize("form", [".csv", ".parquet", ".feather", "frame"])
def test_a_coded_label_is_not_a_channel(form, tmp_path):
    rows = np.repeat(np.arange(len(BATCH)), BATCH.lengths)
    code, age = pa.array((LABELS == "low").astype(int)[rows]), pa.array(30.5 + rows % 5)
    table = long_table(BATCH, LABELS, IDS).append_column("code", code).append_column("age", age)
    scan = scan_series(write(table, tmp_path, form))
    for found in (scan.read(), read_parts(scan)):
        assert found.columns.constant == ("code", "age")
        assert found.series == BATCH


def later(table, name, values, folder, monkeypatch, form):
    """Write a table in which a column changes its nature after the rows of the sample."""
    monkeypatch.setattr("slts.tables.arrow_files.SAMPLE_ROWS", 60)
    monkeypatch.setattr("slts.tables.reading.SAMPLE_ROWS", 60)
    monkeypatch.setattr("slts.tables.text_files._BLOCK", 1 << 11)
    return write(table.append_column(name, pa.array(values)), folder, form)


def many():
    """Forty series of ten steps."""
    rng = np.random.default_rng(1)
    ids = np.repeat(np.arange(40), 10)
    labels = np.where(ids % 2, "u", "v")
    return pa.table({"id": ids, "label": labels, "x": rng.normal(size=400)})


@pytest.mark.usefixtures("tables_in_parts")
@pytest.mark.parametrize("form", [".csv", ".parquet", ".feather", "frame"])
def test_a_column_that_varies_later_is_an_error(form, tmp_path, monkeypatch):
    alarm = np.zeros(400)
    alarm[395:] = 1.0
    source = later(many(), "alarm", alarm, tmp_path, monkeypatch, form)
    scan = scan_series(source)
    assert scan.columns.constant == ("alarm",)
    message = (
        r"'alarm' is constant in every series of the first rows.*varies in series '?39'?: name"
    )
    for read in (scan.read, lambda: list(scan.batches(batch_size=3))):
        with pytest.raises(DataError, match=message):
            read()
    assert scan_series(source, channels=["x", "alarm"]).read().series.n_channels == 2
    assert scan_series(source, channels=["x"]).read().series.n_channels == 1


@pytest.mark.usefixtures("tables_in_parts")
@pytest.mark.parametrize("form", [".csv", ".parquet", ".feather", "frame"])
def test_a_time_that_falls_later_is_an_error(form, tmp_path, monkeypatch):
    load = 1.5 * np.arange(400)
    load[398] = 0.0
    source = later(many(), "load", load, tmp_path, monkeypatch, form)
    scan = scan_series(source)
    assert (scan.columns.time, scan.columns.channels) == ("load", ("x",))
    for read in (scan.read, lambda: list(scan.batches(batch_size=3))):
        with pytest.raises(
            DataError, match=r"'load' increases .* not increase in series '?39'?: name"
        ):
            read()
    assert scan_series(source, channels=["x", "load"]).read().series.n_channels == 2


def test_text_that_is_not_utf_8_is_named_as_the_cause(tmp_path):
    path = tmp_path / "data.csv"
    rows = "".join(f"r{i // 4},{'groß' if i // 4 % 2 else 'klein'},{i % 3}\n" for i in range(40))
    path.write_bytes(f"recording,size,x\n{rows}".encode("latin-1"))
    with pytest.raises(DataError, match=r"data.csv: column 'size' holds text that is not UTF-8"):
        read_series(path)


# -- Wide files


def wide_values(lengths=(30, 30, 24, 30, 12, 30)):
    rng = np.random.default_rng(2)
    return [rng.normal(size=length).round(6) for length in lengths]


def wide_lines(series, labels, delimiter, *, last=False):
    """Rows that are padded with NaN at the end."""
    for x, label in zip(series, labels, strict=True):
        cells = [*map(repr, x.tolist()), *["NaN"] * (30 - len(x))]
        cells = [*cells, label] if last else [label, *cells]
        yield delimiter.join(cells)


def assert_wide(found, series, labels):
    assert found.columns.wide
    assert found.series.channel_names is None
    assert [x[0].tolist() for x in found.series] == [x.tolist() for x in series]
    assert found.labels.tolist() == list(labels)


@pytest.mark.parametrize("classes", [("1", "2"), ("-1", "1"), ("up", "down")])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("suffix", [".tsv", ".csv"])
def test_files_of_the_ucr_archive(suffix, last, classes, tmp_path):
    series = wide_values()
    labels = [classes[k % 2] for k in (0, 0, 1, 0, 1, 1)]
    if last:
        # The label cannot be last behind padding.
        series = wide_values([30] * 6)
    path = tmp_path / f"Coffee_TRAIN{suffix}"
    delimiter = "\t" if suffix == ".tsv" else ","
    path.write_text("\n".join(wide_lines(series, labels, delimiter, last=last)) + "\n")
    assert_wide(read_series(path), series, labels)
    batches = list(iter_series(path, batch_size=4))
    assert [len(batch) for batch in batches] == [4, 2]
    scan = scan_series(path)
    assert not scan.requires_unique_ids
    assert_wide(read_parts(scan), series, labels)


def test_a_wide_file_without_labels(tmp_path):
    path = tmp_path / "new.csv"
    series = wide_values([30] * 4)
    path.write_text("\n".join(",".join(map(str, x.tolist())) for x in series))
    found = read_series(path)
    assert found.labels is None
    assert [x[0].tolist() for x in found.series] == [x.tolist() for x in series]
    # A model with a named channel does not know the numbers of columns.
    assert len(read_series(path, expect=("x",))) == 4


def test_an_unclear_label_of_a_wide_file_is_a_question(tmp_path):
    path = tmp_path / "counts.tsv"
    path.write_text("\n".join("\t".join(str(k * j % 7) for j in range(1, 20)) for k in range(9)))
    with pytest.raises(DataError, match=r"--label 0 \(the first\) or --label 18 \(the last\), or"):
        read_series(path)
    assert read_series(path, label="0").series.lengths.tolist() == [18] * 9
    assert read_series(path, channels="0..18").labels is None


@pytest.mark.parametrize("form", [".csv", ".parquet", ".feather", "frame"])
def test_wide_tables_with_names(form, tmp_path):
    values = np.random.default_rng(3).normal(size=(10, 12))
    table = pa.table(
        {
            "id": [f"s{k}" for k in range(10)],
            **{f"x{k}": values[:, k] for k in range(12)},
            "target": np.arange(10) % 3,
        }
    )
    scan = scan_series(write(table, tmp_path, form))
    assert scan.columns.wide
    for found in (scan.read(), read_parts(scan)):
        assert found.ids.tolist() == table["id"].to_pylist()
        assert [int(label) for label in found.labels] == table["target"].to_pylist()
        assert found.series.values.ravel().tolist() == values.ravel().tolist()


def test_numbers_may_name_the_columns(tmp_path):
    path = tmp_path / "data.csv"
    rng = np.random.default_rng(4)
    rows = [",".join(map(str, [*rng.normal(size=10), "ab"[k % 2]])) for k in range(6)]
    path.write_text("\n".join([",".join([*map(str, range(10)), "label"]), *rows]))
    found = read_series(path)
    assert (len(found), found.columns.label, found.columns.channels[-1]) == (6, "label", "9")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({3: "inf"}, r"line 3: step 2 \('3'\) is infinite"),
        (dict.fromkeys(range(1, 31), ""), "line 3: the series has no values"),
        ({3: "oops"}, r"line 3: column '3' holds 'oops', but numbers"),
    ],
)
def test_bad_values_of_a_wide_file(change, message, tmp_path):
    path = tmp_path / "bad.tsv"
    lines = list(wide_lines(wide_values([30] * 6), "121212", "\t"))
    cells = lines[2].split("\t")
    for position, text in change.items():
        cells[position] = text
    lines[2] = "\t".join(cells)
    path.write_text("\n".join(lines))
    with pytest.raises(DataError, match=message):
        read_series(path)


def test_a_short_line_of_numbers_is_no_series(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("1,2\n3,4\n")
    with pytest.raises(DataError, match=r"begins with numbers.*one series per row, of 7 steps"):
        read_series(path)


# -- Folders


def write_classes(folder, batch=BATCH, labels=LABELS, ids=IDS):
    for x, label, name in zip(batch, labels, ids, strict=True):
        (folder / label).mkdir(exist_ok=True)
        lines = ["t,c1,c2,c3", *(f"{k},{a},{b},{c}" for k, (a, b, c) in enumerate(x.T.tolist()))]
        (folder / label / f"{name}.csv").write_text("\n".join(lines))
    return folder


def test_a_folder_per_class(tmp_path):
    scan = scan_series(write_classes(tmp_path))
    assert str(scan.columns) == "id=(file), time=t, label=(folder), channels=c1..c3"
    order = np.argsort(LABELS, kind="stable")
    for found in (scan.read(), read_parts(scan)):
        assert found.labels.tolist() == LABELS[order].tolist()
        assert found.ids.tolist() == [f"{LABELS[k]}/{IDS[k]}.csv" for k in order]
        assert found.series == BATCH[order]
    assert scan.read(labels=False).labels is None
    with pytest.raises(DataError, match=r"has no labels.csv, .* 'gait': the names of its folders"):
        scan_series(tmp_path, label="gait")
    # A file of labels comes first.
    lines = [f"{LABELS[k]}/{IDS[k]}.csv,{k % 3}" for k in range(len(IDS))]
    (tmp_path / "labels.csv").write_text("\n".join(["file,label", *lines]))
    assert scan_series(tmp_path).read().labels.tolist() == [str(k % 3) for k in range(len(IDS))]


def test_a_folder_without_series_says_what_is_expected(tmp_path):
    (tmp_path / "walk").mkdir()
    with pytest.raises(DataError, match="nor folders with CSV files, one folder per class"):
        scan_series(tmp_path)


def test_columns_of_a_folder_are_found_in_several_files(tmp_path):
    for k in range(4):
        rows = [f"{i},{k},{int(k > 0 and i > 2)},{(i * 7 + k) % 5}" for i in range(9)]
        (tmp_path / f"{k}.csv").write_text("\n".join(["t,subject,alarm,x", *rows]))
    found = read_series(tmp_path)
    assert found.columns.channels == ("alarm", "x")
    assert found.columns.constant == ("subject",)
    (tmp_path / "4.csv").write_text("t,subject,alarm,x\n0,1,0,oops\n1,1,0,2\n2,1,0,1\n")
    with pytest.raises(DataError, match=r"4.csv, line 2: channel 'x' holds 'oops'"):
        read_series(tmp_path)
