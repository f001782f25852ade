"""A small problem that is easy to learn, written in several forms."""

import json
from importlib.util import find_spec

import numpy as np
import pytest

from slts import SeriesBatch, as_series
from slts.cli import main

# The tests need these packages.
collect_ignore_glob = [] if all(map(find_spec, ("typer", "rich", "pyarrow"))) else ["test_*.py"]
CLASSES = ["high", "low", "mid"]


def draw(n_series, seed):
    rng = np.random.default_rng(seed)
    labels = np.array(CLASSES)[np.arange(n_series) % 3]
    shift = {"high": [2.0, 0.0, 1.0], "low": [-2.0, 0.0, 1.0], "mid": [0.0, 2.0, -1.0]}
    series = [rng.normal(size=(3, rng.integers(5, 12))) + np.c_[shift[c]] for c in labels]
    batch = as_series(series)
    ids = np.array([f"r{i:03d}" for i in range(n_series)])
    return SeriesBatch(batch.values, batch.offsets, ("c1", "c2", "c3")), labels, ids


@pytest.fixture(scope="session")
def problem(tmp_path_factory):
    """Folder with train and test data in every form; returns form -> (train, test)."""
    from tests.tables.forms import write_form

    folder = tmp_path_factory.mktemp("problem")
    files = {}
    for form in (".ts", ".csv", ".parquet", ".npz", "folder"):
        places = []
        for part, count, seed in (("train", 45, 0), ("test", 30, 1)):
            place = folder / part / form.strip(".")
            place.mkdir(parents=True)
            places.append(write_form(form, place, *draw(count, seed)))
        files[form] = tuple(places)
    return files


@pytest.fixture(scope="session")
def model(problem, tmp_path_factory):
    """A model trained on the CSV, so it knows the names of its channels."""
    path = tmp_path_factory.mktemp("model") / "model.slts"
    train, _ = problem[".csv"]
    assert main(["fit", str(train), "--model", str(path), "--method", "slts", "--quiet"]) == 0
    return path


class Runner:
    """Runs command lines."""

    def __init__(self, capsys):
        self.capsys = capsys

    def __call__(self, *arguments):
        """Return exit code, output and messages."""
        self.capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        return code, *self.capsys.readouterr()

    def ok(self, *arguments):
        """Return output and messages of a command that succeeds."""
        code, output, messages = self(*arguments)
        assert code == 0, messages
        return output, messages

    def json(self, *arguments):
        """Return the parsed output of a command that succeeds."""
        return json.loads(self.ok(*arguments, "--json")[0])

    def error(self, *arguments, code=1):
        """Return the messages of a command that fails and prints nothing else."""
        status, output, messages = self(*arguments)
        assert (status, output) == (code, ""), messages
        assert "Traceback" not in messages
        # Messages about options come in a frame, broken into lines.
        return " ".join(messages.replace("│", " ").split())


@pytest.fixture
def run(capsys):
    return Runner(capsys)
