"""Commands on data that are read part by part: what they give in memory, or a clear refusal."""

import json
import logging

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("pyarrow")
pytest.importorskip("narwhals")

import pyarrow.parquet as pq

import slts
from slts import SeriesBatch, as_series
from slts.cli import fit, large_data
from tests.files.forms import csv_text, list_table, long_table

LANDMARKS = list(range(0, 36, 3))
# Little for 400 series, and nothing for a model.
TINY = ("--memory-limit", "100kB")


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


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Training data, test data, and test data in long form as CSV."""
    folder = tmp_path_factory.mktemp("large")
    train = write(folder / "train.parquet", draw(400, 0))
    test = write(folder / "test.parquet", draw(300, 1))
    text = folder / "test.csv"
    text.write_text(csv_text(long_table(*draw(300, 1))))
    return train, test, text


@pytest.fixture
def in_parts(monkeypatch):
    """Everything counts as large; the limit leaves room for what is learned."""
    monkeypatch.setattr(large_data, "_TIMES", 10**9)
    return ("--memory-limit", "2GB")


@pytest.fixture(scope="module")
def trained(files, tmp_path_factory):
    """A model trained in memory."""
    path = tmp_path_factory.mktemp("model") / "model.slts"
    arguments = ["fit", str(files[0]), "--model", str(path), "--method", "slts", "--quiet"]
    assert slts.cli.main([*arguments, "--param", "n_landmarks=20"]) == 0
    return path


def write_parts(folder, data, count=11):
    """The same in files that end inside series."""
    folder.mkdir()
    table = long_table(*data)
    size = -(-table.num_rows // count)
    for number in range(count):
        part = table.slice(number * size, size)
        pq.write_table(part, folder / f"part-{number}.parquet")
    return folder / "part-*.parquet"


# -- Several files


@pytest.mark.parametrize("limit", [(), TINY], ids=["memory", "parts"])
@pytest.mark.parametrize("command", ["evaluate", "certify"])
def test_a_pattern_is_one_file(command, limit, files, trained, tmp_path, run):
    pattern = write_parts(tmp_path / "parts", draw(300, 1))
    one = run(command, trained, files[1], "--json", *limit)
    many = run(command, trained, pattern, "--json", *limit)
    assert one[0] == many[0] == 0, many[2]
    assert json.loads(one[1]) | {"data": str(pattern)} == json.loads(many[1])


def test_models_and_predictions_from_a_pattern(files, tmp_path, run):
    pattern = write_parts(tmp_path / "parts", draw(400, 0))
    answers = []
    for source in (files[0], pattern):
        model = tmp_path / "model.slts"
        assert run("fit", source, "--model", model, "--method", "slts", "--quiet")[0] == 0
        code, output, _ = run("predict", model, source, "--quiet")
        assert code == 0
        answers.append(output)
    assert answers[0] == answers[1]


def test_files_of_a_pattern_are_not_overwritten(trained, tmp_path, run):
    pattern = write_parts(tmp_path / "parts", draw(300, 1))
    inside = tmp_path / "parts" / "part-7.parquet"
    before = inside.read_bytes()
    code, _, messages = run("predict", trained, pattern, "--out", inside)
    assert code == 1
    assert "would overwrite" in messages
    assert inside.read_bytes() == before


def test_a_pattern_without_a_file_and_a_folder_of_two_kinds(trained, tmp_path, run):
    code, _, messages = run("predict", trained, tmp_path / "x*.parquet")
    assert code == 1
    assert "no Parquet file matches it as a pattern" in messages
    write_parts(tmp_path / "parts", draw(30, 1))
    (tmp_path / "parts" / "labels.csv").write_text("file,label\n")
    code, _, messages = run("predict", trained, tmp_path / "parts")
    assert code == 1
    assert "part-0.parquet and " in messages
    assert "labels.csv" in messages


# -- fit


@pytest.mark.parametrize("method", ["slts", "bbs"])
@pytest.mark.parametrize("form", [long_table, list_table], ids=["long", "lists"])
def test_the_model_is_that_of_memory(method, form, files, tmp_path, run, in_parts):
    train = write(tmp_path / "train.parquet", draw(400, 0), form)
    paths = tmp_path / "memory.slts", tmp_path / "parts.slts"
    arguments = ["fit", train, "--method", method, "--param", f"landmarks={LANDMARKS}"]
    code, _, messages = run(*arguments, "--model", paths[1], *in_parts)
    assert code == 0, messages
    assert f"{train}: about 76 kB of series, read part by part\n" in messages
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large_data, "_TIMES", 20)
        code, _, messages = run(*arguments, "--model", paths[0], *in_parts)
    assert code == 0, messages
    assert "part by part" not in messages
    X, y, _ = draw(300, 1)
    one, other = (slts.load(path) for path in paths)
    assert other.landmark_indices_.tolist() == LANDMARKS
    decided = one.decision_function(X)
    np.testing.assert_allclose(
        other.decision_function(X), decided, rtol=0.0, atol=1e-6 * np.abs(decided).max()
    )
    assert one.predict(X).tolist() == other.predict(X).tolist()
    assert 0.6 < other.score(X, y) < 1.0
    assert not other.verbose


@pytest.mark.parametrize("method", ["slts", "bbs", "slts-cv", "bbs-cv", "local"])
def test_methods_that_learn_from_parts(method, files, tmp_path, run, in_parts):
    train, test, _ = files
    path = tmp_path / "m.slts"
    code, output, messages = run(
        "fit", train, "--model", path, "--method", method, "--test", test, "--json", *in_parts
    )  # fmt: skip
    assert code == 0, messages
    found = json.loads(output)
    assert (found["n_series"], found["n_channels"]) == (400, 3)
    assert found["classes"] == ["no", "yes"]
    assert found["columns"] == "id=recording, time=t, label=speaker, channels=c1..c3"
    assert (found["chosen"] != {}) == method.endswith("cv")
    X, y, _ = draw(300, 1)
    right = int((slts.load(path).predict(X) == y).sum())
    assert (found["held_out"]["n"], found["held_out"]["right"]) == (300, right)
    assert found["held_out"]["accuracy"] > 0.6
    assert messages.count("columns: ") == messages.count("read part by part") == 2
    assert ("memory: about" in messages) == (method != "local")


def test_what_is_said(files, tmp_path, run, in_parts):
    train, _, text = files
    path = tmp_path / "m.slts"
    level, handlers = logging.getLogger("slts").level, logging.getLogger("slts").handlers[:]
    arguments = ["fit", train, "--model", path, "--method", "bbs", *in_parts]
    code, output, messages = run(*arguments, "--test", text)
    assert code == 0, messages
    lines = messages.splitlines()
    assert lines[0] == "columns: id=recording, time=t, label=speaker, channels=c1..c3"
    assert lines[1] == f"{train}: about 76 kB of series, read part by part"
    assert lines[2].startswith("memory: about ")
    assert " of 2.0 GB (sample: 152 kB, its alignments: " in lines[2]
    assert "trained on 400 series (3 channels, 2 classes)" in output
    assert "on held-out series: accuracy" in output
    code, _, messages = run(*arguments, "--quiet")
    assert (code, messages) == (0, "")
    logger = logging.getLogger("slts")
    assert (logger.level, logger.handlers) == (level, handlers)


def test_a_sample_is_said_to_be_one(files, tmp_path, run, in_parts, monkeypatch):
    local = pytest.importorskip("slts.estimators.local")
    monkeypatch.setattr(local, "_FEWEST", 50)
    monkeypatch.setattr(local, "_MOST", 120)
    path = tmp_path / "m.slts"
    code, output, messages = run("fit", files[0], "--model", path, *in_parts)
    assert code == 0, messages
    assert "learns from a sample of 120 of 400 series" in messages
    assert "trained on 120 of 400 series" in output


def test_test_data_may_be_small(files, tmp_path, run, monkeypatch):
    """The larger of the two is read in parts, the other is not."""
    train = files[0]
    small = tmp_path / "small.csv"
    small.write_text(csv_text(long_table(*draw(20, 5))))
    size = slts.scan_series(train).n_bytes
    assert slts.scan_series(small).n_bytes < size // 3
    limit = 2 * 10**9
    monkeypatch.setattr(large_data, "_TIMES", 2 * limit // size)
    code, output, messages = run(
        "fit", train, "--model", tmp_path / "m.slts", "--method", "bbs", "--test", small,
        "--memory-limit", limit, "--json",
    )  # fmt: skip
    assert code == 0, messages
    assert json.loads(output)["held_out"]["n"] == 20
    assert messages.count("read part by part") == 1


@pytest.mark.parametrize("method", ["1nn", "svm", "ldmlt"])
def test_methods_that_need_all_series_are_refused(method, files, tmp_path, run, in_parts):
    path = tmp_path / "m.slts"
    code, _, messages = run("fit", files[0], "--model", path, "--method", method, *in_parts)
    assert code == 1
    assert f"Error: --method {method} needs all series in memory" in messages
    assert "--memory-limit" in messages
    assert not path.exists()


def test_large_data_are_not_divided(files, tmp_path, run, in_parts):
    path = tmp_path / "m.slts"
    code, _, messages = run("fit", files[0], "--model", path, "--test-size", "0.3", *in_parts)
    assert code == 1
    assert f"{files[0]} is read part by part and not divided: give --test" in messages
    assert not path.exists()


def test_test_data_are_looked_at_before_the_training(files, tmp_path, run, in_parts, monkeypatch):
    def train(*arguments):
        raise AssertionError("trained before the test data were looked at")

    monkeypatch.setattr(fit, "_train", train)
    data = long_table(*draw(30, 1))
    renamed = tmp_path / "renamed.parquet"
    pq.write_table(data.rename_columns(["recording", "t", "speaker", "c1", "c2", "other"]), renamed)
    for test, words in ((renamed, "no column 'c3'"), (tmp_path / "none.parquet", "none.parquet")):
        code, _, messages = run(
            "fit", files[0], "--model", tmp_path / "m.slts", "--test", test, *in_parts
        )  # fmt: skip
        assert code == 1
        assert words in messages
        assert "not your mistake" not in messages


def test_a_limit_too_small_to_learn_names_one_that_does(files, tmp_path, run):
    path = tmp_path / "m.slts"
    arguments = ["fit", files[0], "--model", path, "--method", "slts"]
    code, _, messages = run(*arguments, *TINY)
    assert code == 1
    assert "Error: --memory-limit is too small: 100 kB, and" in messages
    assert not path.exists()
    named = messages.split("100 kB, and ")[1].split(" would do")[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large_data, "_TIMES", 10**9)
        code, _, messages = run(*arguments, "--memory-limit", named)
    assert code == 0, messages
    assert "read part by part" in messages
    assert path.exists()


def test_a_full_disk_is_an_error_with_a_remedy(files, tmp_path, run, in_parts, monkeypatch):
    path = tmp_path / "m.slts"
    monkeypatch.setattr("slts.estimators.memory_plan.free_disk", lambda: -1)
    code, _, messages = run("fit", files[0], "--model", path, "--method", "slts", *in_parts)
    assert code == 1
    assert "temporary files are needed and the disk has" in messages
    assert "TMPDIR" in messages
    assert not path.exists()


@pytest.mark.parametrize("command", ["fit", "evaluate", "certify"])
@pytest.mark.parametrize("size", ["much", "0", "-3GB", "2PB"])
def test_sizes_that_are_none(command, size, files, trained, tmp_path, run):
    path = tmp_path / "m.slts"
    arguments = [files[0], "--model", path] if command == "fit" else [trained, files[1]]
    code, _, messages = run(command, *arguments, f"--memory-limit={size}")
    assert code == 2
    words = " ".join(messages.replace("│", " ").split())
    assert "--memory-limit" in words
    assert f"such as 2GB or 512MiB, got {size}" in words
    assert not path.exists()


@pytest.mark.parametrize("method", ["slts", "local"])
@pytest.mark.parametrize("group", [0, 30, 63])
def test_a_damaged_row_group_leaves_no_model(method, group, tmp_path, run, in_parts):
    data = write(tmp_path / "train.parquet", draw(400, 0))
    with pq.ParquetFile(data) as file:
        assert file.metadata.num_row_groups > 63
        column = file.metadata.row_group(group).column(4)
        place = column.dictionary_page_offset or column.data_page_offset
    content = bytearray(data.read_bytes())
    content[place : place + 16] = b"\xff" * 16
    data.write_bytes(content)
    path = tmp_path / "m.slts"
    code, output, messages = run("fit", data, "--model", path, "--method", method, *in_parts)
    assert (code, output) == (1, "")
    assert "Error: " in messages
    assert str(data) in messages.split("Error: ")[1]
    assert "not your mistake" not in messages
    assert [file.name for file in tmp_path.iterdir()] == ["train.parquet"]


def test_a_row_that_is_wrong_is_named(tmp_path, run, in_parts):
    X, y, ids = draw(400, 0)
    values, row = X.values[:, 0].copy(), int(X.offsets[333])
    values[row] = np.nan
    table = long_table(X, y, ids)
    data = tmp_path / "train.parquet"
    pq.write_table(table.set_column(3, "c1", [values]), data, row_group_size=50)
    code, _, messages = run("fit", data, "--model", tmp_path / "m.slts", *in_parts)
    assert code == 1
    assert f"{data}, row {row} (series 'r333'): 'c1' is missing" in messages
    assert [file.name for file in tmp_path.iterdir()] == ["train.parquet"]


# -- evaluate and certify


def same(one, other):
    """Equal but for the last digits of numbers."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            same(one[key], other[key])
    elif isinstance(one, list):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            same(a, b)
    else:
        assert one == (pytest.approx(other, rel=1e-9) if isinstance(other, float) else other)


@pytest.mark.parametrize("form", ["parquet", "lists", "csv"])
@pytest.mark.parametrize("command", ["evaluate", "certify"])
def test_figures_are_those_of_memory(command, form, files, trained, tmp_path, run):
    _, test, text = files
    data = {"parquet": test, "csv": text}.get(form) or write(
        tmp_path / "lists.parquet", draw(300, 1), list_table
    )
    code, expected, messages = run(command, trained, data, "--json")
    assert code == 0, messages
    assert "part by part" not in messages
    code, output, messages = run(command, trained, data, "--json", *TINY)
    assert code == 0, messages
    assert f"{data}: about " in messages
    assert "kB of series, read part by part" in messages
    assert "no certificate" not in messages
    found = json.loads(output)
    same(found, json.loads(expected))
    if command == "evaluate":
        assert (found["n"], found["data"]) == (300, str(data))
        assert 0.6 < found["accuracy"] < 1.0
        assert found["log_loss"] > 0.0
    else:
        assert found["n"] == 300
    plain = [run(command, trained, data, *limit)[1] for limit in ((), TINY)]
    assert plain[0] == plain[1] != ""


@pytest.mark.parametrize("command", ["evaluate", "certify"])
def test_series_of_the_model_prove_nothing(command, files, trained, run):
    answers = [run(command, trained, files[0], *limit) for limit in ((), TINY)]
    assert [code for code, _, _ in answers] == [int(command == "certify")] * 2
    for _, _, messages in answers:
        assert ("no certificate" in messages) == (command == "evaluate")
        assert "Error" in messages or command == "evaluate"
        assert "landmark" in messages


def test_a_training_sample_is_needed_in_memory(files, trained, run):
    arguments = ["certify", trained, files[0], "--sample", "training"]
    assert run(*arguments)[0] == 0
    code, _, messages = run(*arguments, *TINY)
    assert code == 1
    assert "bounds from the training sample need its series in memory" in messages


@pytest.mark.parametrize("command", ["evaluate", "certify"])
@pytest.mark.parametrize("names", [("1", "2"), (1.0, 2.0), ("1.0", "2.0")], ids=repr)
def test_labels_are_spelled_as_the_model_does(command, names, tmp_path, run):
    """The model knows 1 and 2; files say so as text, or with a fraction."""
    train = write(tmp_path / "train.parquet", draw(100, 0, (1, 2)))
    path = tmp_path / "m.slts"
    options = ["--label", "speaker", "--json"]
    assert run("fit", train, "--model", path, "--method", "bbs", *options)[0] == 0
    assert slts.load(path).classes_.dtype.kind == "i"
    data = draw(300, 1, names)
    parquet, text = write(tmp_path / "test.parquet", data), tmp_path / "test.csv"
    text.write_text(csv_text(long_table(*data)))
    numbers = write(tmp_path / "numbers.parquet", draw(300, 1, (1, 2)))
    code, expected, messages = run(command, path, numbers, *options)
    assert code == 0, messages
    for file in (parquet, text, numbers):
        code, output, messages = run(command, path, file, *options, *TINY)
        assert code == 0, messages
        assert "read part by part" in messages
        same(json.loads(output) | {"data": None}, json.loads(expected) | {"data": None})


def test_models_that_know_text_are_told_numbers(tmp_path, run):
    train = write(tmp_path / "train.parquet", draw(100, 0, ("1", "2")))
    path = tmp_path / "m.slts"
    options = ["--label", "speaker", "--quiet"]
    assert run("fit", train, "--model", path, "--method", "bbs", *options)[0] == 0
    assert slts.load(path).classes_.tolist() == ["1", "2"]
    numbers = write(tmp_path / "numbers.parquet", draw(300, 1, (1, 2)))
    figures = [
        json.loads(run("evaluate", path, numbers, *options, "--json", *limit)[1])
        for limit in ((), TINY)
    ]
    same(*figures)
    assert figures[0]["classes"] == ["1", "2"]


@pytest.mark.parametrize("command", ["evaluate", "certify"])
def test_labels_the_model_does_not_know_are_refused(command, trained, tmp_path, run):
    X, y, ids = draw(300, 1)
    odd = write(tmp_path / "odd.parquet", (X, np.where(ids == "r250", "maybe", y), ids))
    code, output, messages = run(command, trained, odd, *TINY)
    assert (code, output) == (1, "")
    assert "the label 'maybe' of series 'r250' is none the model was trained on" in messages


@pytest.mark.parametrize("command", ["evaluate", "certify"])
def test_data_without_labels_are_refused(command, trained, tmp_path, run):
    X, y, ids = draw(300, 1)
    plain = tmp_path / "plain.parquet"
    pq.write_table(long_table(X, y, ids, label=False), plain, row_group_size=50)
    code, output, messages = run(command, trained, plain, *TINY)
    assert (code, output) == (1, "")
    assert "has no labels: name their column" in messages


# -- what is large


def test_half_of_the_memory_is_the_limit():
    assert large_data.limit_of("3GB") == 3 * 10**9
    assert 0 < large_data.limit_of(None) < 10**16


def test_machines_that_do_not_tell_their_memory_have_a_limit(monkeypatch):
    def unknown(name):
        raise ValueError(name)

    monkeypatch.setattr("os.sysconf", unknown, raising=False)
    assert large_data.limit_of(None) == 4 * 10**9


def test_data_are_large_when_their_multiple_is(files, trained, run):
    size = large_data._TIMES * slts.scan_series(files[1]).n_bytes
    for limit, in_parts in ((size, False), (size - 1, True)):
        code, _, messages = run("evaluate", trained, files[1], "--memory-limit", limit)
        assert code == 0
        assert ("read part by part" in messages) == in_parts
