"""Commands on files that are read in parts: Parquet in row groups, patterns, lists, CSV."""

import io
import json
import logging
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("pyarrow")

import pyarrow.parquet as pq

import slts
from slts import SeriesBatch, as_series
from slts.cli import evaluate
from slts.series.source import series_digests, series_keys
from slts.tables.arrow import ParquetPart
from slts.training.held_out import split_in_order
from tests.tables.forms import csv_text, list_table, long_table

pytestmark = pytest.mark.usefixtures("tables_in_parts")


def draw(n_series, seed, names=("no", "yes")):
    """Two classes that are told apart most of the time."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n_series) % 2
    shift = np.outer(2 * codes - 1, [0.4, 0.0, 0.2])
    batch = as_series(
        [rng.normal(size=(3, rng.integers(5, 12))) + move[:, np.newaxis] for move in shift]
    )
    ids = np.array([f"r{i:03d}" for i in range(n_series)])
    return SeriesBatch(batch.values, batch.offsets, ("c1", "c2", "c3")), np.array(names)[codes], ids


def write(path, data, form=long_table, **options):
    pq.write_table(form(*data), path, row_group_size=50, **options)
    return path


def write_parts(folder, data, count=11):
    """Write files that end inside series; return a pattern."""
    folder.mkdir()
    table = long_table(*data)
    size = -(-table.num_rows // count)
    for number in range(count):
        part = table.slice(number * size, size)
        pq.write_table(part, folder / f"part-{number}.parquet")
    return folder / "part-*.parquet"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Training data, and test data as Parquet, as Parquet with lists, as CSV and as a pattern."""
    folder, test = tmp_path_factory.mktemp("parts"), draw(200, 1)
    text = folder / "test.csv"
    text.write_text(csv_text(long_table(*test)))
    return {
        "train": write(folder / "train.parquet", draw(200, 0)),
        "parquet": write(folder / "test.parquet", test),
        "lists": write(folder / "lists.parquet", test, list_table),
        "csv": text,
        "pattern": write_parts(folder / "test", test),
    }


def train(data, path, *options):
    arguments = ["fit", data, "--model", path, "--method", "slts", "--quiet", *options]
    assert slts.cli.main([*map(str, arguments), "--param", "n_landmarks=10"]) == 0
    return path


@pytest.fixture(scope="module")
def trained(files, tmp_path_factory):
    return train(files["train"], tmp_path_factory.mktemp("model") / "model.slts")


# -- Several files


def test_models_and_predictions_from_a_pattern(files, trained, tmp_path, run):
    pattern = write_parts(tmp_path / "parts", draw(200, 0))
    other = train(pattern, tmp_path / "model.slts")
    outputs = [run("predict", model, files["parquet"], "--quiet") for model in (trained, other)]
    assert outputs[0] == outputs[1]
    assert outputs[0][0] == 0
    assert run("predict", trained, files["pattern"], "--quiet") == outputs[0]


# -- fit


def test_messages_of_fit(files, tmp_path, run):
    level, handlers = logging.getLogger("slts").level, logging.getLogger("slts").handlers[:]
    arguments = ["fit", files["train"], "--model", tmp_path / "m.slts", "--method", "bbs"]
    arguments += ["--param", "n_landmarks=10"]
    output, messages = run.ok(*arguments, "--test", files["csv"], "--memory-limit", "2GB")
    line = ": id=recording, time=t, label=speaker, channels=c1..c3"
    assert messages.splitlines()[:2] == [f"columns{line}", f"columns of {files['csv']}{line}"]
    assert "trained on 200 series (3 channels, 2 classes)" in output
    assert "on held-out series: accuracy" in output
    assert run(*arguments, "--quiet")[::2] == (0, "")
    logger = logging.getLogger("slts")
    assert (logger.level, logger.handlers) == (level, handlers)


@pytest.mark.parametrize(
    ("form", "method"), [("parquet", "bbs"), ("csv", "1nn"), ("stdin", "bbs"), ("stdin", "1nn")]
)
def test_the_same_series_are_held_out_in_every_form(
    form, method, files, tmp_path, run, monkeypatch
):
    """The split does not depend on the form, and the model is trained on the other series only."""
    data = "-" if form == "stdin" else files[form]
    text = files["csv"].read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    path = tmp_path / "m.slts"
    options = ["--test-size", "0.3", "--random-state", 7]
    options += ["--param", "n_landmarks=10"] if method == "bbs" else []
    found = run.json("fit", data, "--model", path, "--method", method, *options)
    X, y, _ = draw(200, 1)
    order = np.argsort(series_keys(series_digests(X), 7))
    codes = np.unique(y, return_inverse=True)[1]
    ((kept, left),) = split_in_order(0.3, codes, order, None, "--test-size")
    model = slts.load(path)
    assert (found["n_series"], found["held_out"]["n"]) == (140, 60)
    assert found["held_out"]["right"] == np.count_nonzero(model.predict(X[left]) == y[left])
    if method == "1nn":
        assert model.predict(X[kept]).tolist() == y[kept].tolist()


@pytest.mark.parametrize("method", ["slts", "local"])
def test_a_limit_that_is_too_small_names_one_that_suffices(method, files, tmp_path, run):
    path = tmp_path / "m.slts"
    arguments = ["fit", files["train"], "--model", path, "--method", method]
    messages = run.error(*arguments, "--memory-limit", "30kB")
    assert "'memory_limit'" in messages
    assert not path.exists()
    named = messages.split(" needs ")[1].split(". Raise")[0]
    _, messages = run.ok(*arguments, "--memory-limit", named)
    assert path.exists()


@pytest.mark.parametrize(("method", "group"), [("slts", 0), ("slts", 30), ("local", 30)])
def test_a_damaged_row_group_leaves_no_model(method, group, tmp_path, run):
    data = write(tmp_path / "train.parquet", draw(200, 0))
    with pq.ParquetFile(data) as file:
        assert file.metadata.num_row_groups > 30
        column = file.metadata.row_group(group).column(4)
        place = column.dictionary_page_offset or column.data_page_offset
    content = bytearray(data.read_bytes())
    content[place : place + 16] = b"\xff" * 16
    data.write_bytes(content)
    path = tmp_path / "m.slts"
    messages = run.error("fit", data, "--model", path, "--method", method)
    assert str(data) in messages.split("Error: ")[1]
    assert "bug" not in messages
    assert [file.name for file in tmp_path.iterdir()] == ["train.parquet"]


def test_notes_of_readers_are_printed_once(tmp_path, run):
    data = tmp_path / "train.csv"
    table = long_table(*draw(40, 0)).sort_by([("recording", "ascending"), ("t", "descending")])
    data.write_text(csv_text(table))
    test_on = ["--test-size", "0.5"]
    _, messages = run.ok("fit", data, "--model", tmp_path / "m.slts", "--method", "bbs", *test_on)
    assert messages.count("steps were sorted by 't'") == 1


# -- evaluate and certify


@pytest.mark.slow
@pytest.mark.parametrize("form", ["parquet", "lists", "csv", "pattern"])
def test_scores_and_certificates_are_those_of_series_in_memory(form, files, trained, run):
    X, y, _ = draw(200, 1)
    model = slts.load(trained)
    predicted, _, probabilities = model.outputs(X)
    expected = evaluate.scores(model.classes_, predicted, probabilities, y)
    certificate = slts.certify(model, X, y).to_dict()
    found = run.json("evaluate", trained, files[form])
    assert found.pop("log_loss") == pytest.approx(expected.pop("log_loss"))
    assert found.pop("certificate") == certificate
    assert found == expected | {"data": str(files[form]), "n_training_copies": 0}
    assert 0.6 < found["accuracy"] < 1.0
    assert run.json("certify", trained, files[form]) == certificate | {"data": str(files[form])}


def test_every_pass_over_the_data_is_needed(files, trained, tmp_path, run, monkeypatch):
    reads = Counter()
    batches = ParquetPart.batches

    def counted(self, **options):
        reads[Path(self.source).name] += self.start == 0
        return batches(self, **options)

    monkeypatch.setattr(ParquetPart, "batches", counted)
    fit = ["fit", files["train"], "--model", tmp_path / "m.slts", "--method", "bbs"]
    fit += ["--param", "n_landmarks=9"]
    for arguments, expected in (
        (["evaluate", trained, files["parquet"]], {"test.parquet": 1}),
        (["certify", trained, files["parquet"]], {"test.parquet": 1}),
        # Split, train, predict.
        ([*fit, "--test-size", "0.3"], {"train.parquet": 3}),
        # Both are read for their labels, which are compared before training.
        ([*fit, "--test", files["parquet"]], {"train.parquet": 2, "test.parquet": 2}),
    ):
        reads.clear()
        run.ok(*arguments)
        assert reads == expected


@pytest.mark.parametrize("command", ["evaluate", "certify"])
def test_training_series_give_no_certificate(command, files, trained, run):
    code, _, messages = run(command, trained, files["train"])
    assert code == int(command == "certify")
    assert ("no certificate: " in messages) == (command == "evaluate")
    assert "r000 is a copy of a training series (the first of 200)" in messages


def test_the_training_sample_can_be_certified(files, trained, run):
    output, _ = run.ok("certify", trained, files["train"], "--sample", "training")
    assert "training" in output


@pytest.mark.parametrize("command", ["evaluate", "certify"])
def test_unknown_and_missing_labels_are_errors(command, trained, tmp_path, run):
    X, y, ids = draw(100, 1)
    odd = write(tmp_path / "odd.parquet", (X, np.where(ids == "r070", "maybe", y), ids))
    messages = run.error(command, trained, odd)
    assert "label 'maybe' of series 'r070' is not a class of the model" in messages
    plain = tmp_path / "plain.parquet"
    pq.write_table(long_table(X, y, ids, label=False), plain, row_group_size=50)
    messages = run.error(command, trained, plain)
    assert "no column that holds the classes of the model ('no', 'yes')" in messages
    arrays = tmp_path / "arrays.npz"
    np.savez(arrays, values=X.values, offsets=X.offsets)
    messages = run.error(command, trained, arrays)
    assert "has no labels" in messages


def test_standard_input_is_evaluated(files, trained, run, monkeypatch):
    expected = run.json("evaluate", trained, files["csv"])
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(files["csv"].read_bytes())))
    output, messages = run.ok("evaluate", trained, "-", "--json", "--verbose")
    assert "SeriesScan(standard input" in messages
    found = json.loads(output)
    assert found.pop("log_loss") == pytest.approx(expected.pop("log_loss"))
    assert found == expected | {"data": found["data"]}


@pytest.mark.parametrize("method", ["1nn", "svm", "ldmlt"])
def test_series_that_do_not_fit_in_memory_are_refused(method, files, tmp_path, monkeypatch, capsys):
    n_bytes = slts.scan_series(files["train"]).n_bytes
    # The series fit, but not the copies that reading and aligning need.
    memory = "slts.estimators.training_data.usable_memory"
    monkeypatch.setattr(memory, lambda: 2 * n_bytes)
    path = tmp_path / "model.slts"
    arguments = ["fit", files["train"], "--model", path, "--method", method, "--quiet"]
    assert slts.cli.main(list(map(str, arguments))) == 1
    message = capsys.readouterr().err
    assert "needs all training series in memory" in message
    assert "train.parquet" in message
    assert not path.exists()


def test_other_channels_are_found_before_anything_is_read(files, model, monkeypatch, capsys):
    monkeypatch.setattr(ParquetPart, "batches", None)
    columns = ["--label", "speaker", "--channels", "c1,c2"]
    arguments = ["evaluate", model, files["parquet"], *columns, "--quiet"]
    assert slts.cli.main(list(map(str, arguments))) == 1
    assert "was scanned with 2 channels, but the model has" in capsys.readouterr().err
