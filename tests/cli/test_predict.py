"""`slts predict`: labels, probabilities and prediction sets, in every form."""

import csv
import io
import json
import re

import numpy as np
import pyarrow.parquet as pq
import pytest

import slts
from tests.cli.conftest import CLASSES, draw

COLUMNS = ["id", "prediction", *(f"p_{name}" for name in CLASSES)]
SETS = ["set", "set_size", "set_flag"]


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


def outputs(suffix, run, folder, *arguments):
    """Return what is written to a file, as records with the columns of a table."""
    out = folder / f"p{suffix}"
    run.ok("predict", *arguments, "--out", out, "--batch-size", "7")
    assert [path.name for path in folder.iterdir()] == [out.name]
    if suffix == ".parquet":
        return pq.read_table(out).to_pylist()
    if suffix == ".csv":
        return table(out.read_text())
    records = [json.loads(line) for line in out.read_text().splitlines()]
    for record in records:
        record |= {f"p_{name}": p for name, p in record.pop("probabilities").items()}
    return records


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_files_have_labels_probabilities_and_sets(suffix, problem, model, tmp_path, run):
    X, y, ids = draw(30, 1)
    fitted = slts.load(model)
    records = outputs(suffix, run, tmp_path, model, problem[".csv"][1], "--alpha", "0.2")
    assert set(records[0]) == {*COLUMNS, *SETS}
    assert [record["id"] for record in records] == ids.tolist()
    assert [record["prediction"] for record in records] == y.tolist()
    chances = [[float(record[column]) for column in COLUMNS[2:]] for record in records]
    assert np.allclose(chances, fitted.predict_proba(X), rtol=1e-5)
    expected = slts.prediction_sets(fitted).predict(X, 0.2)
    sets = [row.tolist() for row in expected.labels]
    if suffix == ".csv":
        sets = ["|".join(row) for row in sets]
    assert [record["set"] for record in records] == sets
    assert [int(record["set_size"]) for record in records] == list(expected.sizes)
    assert [record["set_flag"] for record in records] == list(expected.flags)


def test_standard_output_has_csv_or_json_lines(problem, model, run):
    _, y, ids = draw(30, 1)
    predict = ["predict", model, problem[".csv"][1]]
    rows = table(run.ok(*predict)[0])
    assert list(rows[0]) == COLUMNS
    records = [json.loads(line) for line in run.ok(*predict, "--json")[0].splitlines()]
    assert [record["id"] for record in records] == [row["id"] for row in rows] == ids.tolist()
    assert [record["prediction"] for record in records] == y.tolist()
    assert set(records[0]["probabilities"]) == set(CLASSES)


def test_series_without_identifiers_are_numbered(problem, model, run):
    rows = table(run.ok("predict", model, problem[".ts"][1], "--batch-size", "7")[0])
    assert [row["id"] for row in rows] == [str(k) for k in range(30)]


def test_predictions_and_sets_are_counted(problem, model, tmp_path, run):
    predict = ["predict", model, problem[".csv"][1], "--alpha", "0.2", "--out", tmp_path / "p.csv"]
    result = run.json(*predict)
    assert result["predicted"] == dict.fromkeys(CLASSES, 10)
    assert sum(result["sets"].values()) == result["n_series"] == 30
    output, messages = run.ok(*predict)
    assert re.search(r"\n\d+ single, \d+ several", output)
    guarantee = slts.prediction_sets(slts.load(model)).guarantee
    assert messages.count(f"alpha = 0.2: {guarantee}\n") == 1


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_model_without_calibration_writes_labels_only(suffix, problem, tmp_path, run):
    X, y, _ = draw(30, 1)
    path, folder = tmp_path / "m.slts", tmp_path / "out"
    folder.mkdir()
    slts.save(slts.BBSClassifier(9, calibration_cv=None, random_state=0).fit(X, y), path)
    records = outputs(suffix, run, folder, path, problem[".parquet"][1])
    assert set(records[0]) == set(COLUMNS[:2])
    message = run.error("predict", path, problem[".parquet"][1], "--alpha", "0.1")
    assert "no decisions for held-out series" in message


def test_a_failure_leaves_the_older_file(problem, model, tmp_path, run):
    out, data = tmp_path / "p.csv", tmp_path / "data.csv"
    out.write_text("older")
    *lines, last = problem[".csv"][1].read_text().splitlines()
    data.write_text("\n".join([*lines, last.rpartition(",")[0] + ",inf"]))
    run.error("predict", model, data, "--out", out, "--batch-size", "7")
    assert out.read_text() == "older"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.csv", "p.csv"]
