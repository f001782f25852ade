import csv
import io
import json
import os
import re
import threading
import warnings

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("pyarrow")

import pyarrow.parquet as pq

import slts
from tests.cli.conftest import draw
from tests.tables.forms import csv_text, long_table

# The readers of all forms are tested in `tests/files`.
FORMS = (".ts", ".csv.gz", "folder", "lists")


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_from_data_to_predictions_and_back(form, problem, tmp_path, run):
    train, test = problem[form]
    path, out = tmp_path / "m.slts", tmp_path / "p.csv"
    output, _ = run.ok("fit", train, "--model", path, "--method", "slts", "--test", test)
    assert "trained on 45 series (3 channels, 3 classes)" in output
    assert "accuracy 100.0% (30 of 30; 95% interval 88.4% to 100.0%)" in output
    run.ok("predict", path, test, "--out", out)
    X, y, ids = draw(30, 1)
    rows = table(out.read_text())
    assert [row["prediction"] for row in rows] == y.tolist()
    if form == ".ts":
        assert [row["id"] for row in rows] == [str(i) for i in range(30)]
    else:
        assert [row["id"].removesuffix(".csv") for row in rows] == ids.tolist()
    chances = np.array([[float(row[f"p_{c}"]) for c in ("high", "low", "mid")] for row in rows])
    assert np.allclose(chances, slts.load(path).predict_proba(X), rtol=1e-5)
    found = run.json("evaluate", path, test)
    assert found["accuracy"] == found["balanced_accuracy"] == 1.0
    assert found["confusion"] == [[10, 0, 0], [0, 10, 0], [0, 0, 10]]
    assert found["certificate"]["headline"] == "hold-out error"
    run.ok("explain", path, test, "--series", "3")
    run.ok("certify", path, test, "--delta", "0.01")


def test_guesses_are_printed_unless_quiet(problem, model, tmp_path, run):
    train, test = problem[".csv"]
    out = tmp_path / "m.slts"
    _, output, messages = run("fit", train, "--model", out, "--method", "1nn")
    assert messages == "columns: id=recording, time=t, label=speaker, channels=c1..c3\n"
    assert output.endswith(f"model: {out}\n")
    code, _, messages = run("evaluate", model, test, "--quiet")
    assert (code, messages) == (0, "")
    _, _, messages = run("evaluate", model, test, "--verbose")
    assert "SeriesScan(" in messages
    assert "missing" not in messages


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "chosen"),
    [
        ("local", {"n_phases", "n_landmarks"}),
        ("local -p n_phases=2", {"n_landmarks"}),
        ("slts", {"n_landmarks"}),
        ("slts-cv", {"gamma", "lam", "n_landmarks"}),
        ("bbs", {"n_landmarks"}),
        ("bbs-cv", {"gamma", "n_landmarks"}),
        ("1nn", set()),
        ("svm", {"C"}),
        ("ldmlt", set()),
    ],
)
def test_every_method_trains_and_says_what_it_chose(method, chosen, problem, tmp_path, run):
    train, test = problem[".parquet"]
    path = tmp_path / "m.slts"
    found = run.json("fit", train, "--model", path, "--test", test, "--method", *method.split())
    assert found["held_out"]["accuracy"] > 0.9
    assert found["classes"] == ["high", "low", "mid"]
    assert found["columns"] == "id=recording, time=t, label=speaker, channels=c1..c3"
    assert found["chosen"].keys() == chosen
    X, y, _ = draw(30, 1)
    model = slts.load(path)
    assert found["held_out"]["right"] == np.count_nonzero(model.predict(X) == y)
    assert not model.verbose
    if "n_landmarks" in chosen:
        assert found["chosen"]["n_landmarks"] == len(model.landmarks_)
    if method == "svm":
        assert found["chosen"]["C"] == model.C_
    if method.startswith("local"):
        assert found["chosen"].get("n_phases", 2) == model.model_.aligned[0].n_phases
    run.ok("predict", path, test, "--quiet")


def test_predictions_in_every_form(problem, model, tmp_path, run, monkeypatch):
    _, test = problem[".parquet"]
    X, y, ids = draw(30, 1)
    expected = slts.load(model).predict_proba(X)
    output, _ = run.ok("predict", model, test, "--quiet", "--batch-size", "7")
    assert [row["prediction"] for row in table(output)] == y.tolist()
    out = tmp_path / "p.jsonl"
    run.ok("predict", model, test, "--out", out, "--batch-size", "7")
    entries = [json.loads(line) for line in out.read_text().splitlines()]
    assert [entry["id"] for entry in entries] == ids.tolist()
    assert entries[3]["probabilities"]["high"] == pytest.approx(expected[3, 0])
    output, _ = run.ok("predict", model, test, "--json", "--quiet")
    assert [json.loads(line) for line in output.splitlines()] == entries
    out = tmp_path / "p.parquet"
    counts = run.json("predict", model, test, "--out", out, "--batch-size", "7")["predicted"]
    assert counts == {"high": 10, "low": 10, "mid": 10}
    found = pq.read_table(out)
    assert found.column_names == ["id", "prediction", "p_high", "p_low", "p_mid"]
    assert np.allclose(found["p_low"].to_numpy(), expected[:, 1])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.jsonl", "p.parquet"]


def test_standard_input_and_output(model, run, monkeypatch):
    X, y, ids = draw(30, 1)
    text = csv_text(long_table(X, y, ids, label=False))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    output, messages = run.ok("predict", model, "-")
    assert [row["prediction"] for row in table(output)] == y.tolist()
    assert messages == "columns: id=recording, time=t, channels=c1..c3\n"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="FIFOs of POSIX")
def test_the_reader_of_a_fifo_gets_the_predictions(problem, model, tmp_path, run):
    fifo, found = tmp_path / "out", []
    os.mkfifo(fifo)
    reader = threading.Thread(target=lambda: found.append(fifo.read_text()), daemon=True)
    reader.start()
    _, test = problem[".parquet"]
    run.ok("predict", model, test, "--out", fifo, "--quiet")
    reader.join(20)
    output, _ = run.ok("predict", model, test, "--out", "/dev/stdout", "--quiet")
    assert len(table(output)) == 30
    assert table(found[0]) == table(output)
    assert fifo.is_fifo()


def test_channels_are_taken_by_the_names_of_the_model(problem, model, tmp_path, run):
    X, y, ids = draw(30, 1)
    shuffled = long_table(X, y, ids).select(["c3", "recording", "c1", "t", "speaker", "c2"])
    path = tmp_path / "data.csv"
    path.write_text(csv_text(shuffled.append_column("extra", shuffled["c1"])))
    code, output, messages = run("evaluate", model, path, "--json")
    assert json.loads(output)["accuracy"] == 1.0
    assert "channels=c1..c3, not used: extra" in messages
    renamed = shuffled.rename_columns(["z", "recording", "x", "t", "speaker", "y"])
    path.write_text(csv_text(renamed))
    messages = run.error("evaluate", model, path)
    assert "no column 'c1', a channel of the model" in messages
    code, output, messages = run("evaluate", model, path, "--channels", "x,y,z", "--json")
    assert json.loads(output)["accuracy"] == 1.0
    assert "Warning" not in messages
    # Channels of the model have its order.
    _, test = problem[".csv"]
    _, expected, _ = run("predict", model, test)
    code, output, messages = run("predict", model, test, "--channels", "c3,c1,c2")
    assert (code, output) == (0, expected)
    assert "channels=c1..c3" in messages


def test_labels_are_matched_by_their_text(tmp_path, run):
    X, y, _ = draw(45, 0)
    numbers = np.searchsorted(["high", "low", "mid"], y)
    arrays = {"values": X.values, "offsets": X.offsets}
    np.savez(tmp_path / "a.npz", **arrays, y=numbers)
    path = tmp_path / "m.slts"
    run.ok("fit", tmp_path / "a.npz", "--model", path, "--method", "slts")
    assert slts.load(path).classes_.dtype.kind == "i"
    with_fraction = numbers.astype(float)
    for labels in (numbers.astype(str), with_fraction, with_fraction.astype(str)):
        np.savez(tmp_path / "b.npz", **arrays, y=labels)
        slts.datasets.write_ts(tmp_path / "b.ts", X, labels)
        for name in ("b.npz", "b.ts"):
            found = run.json("evaluate", path, tmp_path / name)
            assert (found["accuracy"], found["classes"]) == (1.0, [0, 1, 2])
            # Training series give no certificate.
            assert found["certificate"] is None
    np.savez(tmp_path / "c.npz", **arrays, y=numbers + 0.5)
    messages = run.error("evaluate", path, tmp_path / "c.npz")
    assert "label 0.5 is not a class of the model" in messages
    # Numbers become text if the classes are text.
    run.ok("fit", tmp_path / "b.npz", "--model", path, "--method", "1nn")
    assert run.json("evaluate", path, tmp_path / "a.npz")["classes"] == ["0.0", "1.0", "2.0"]


def test_the_label_need_not_be_named_again(tmp_path, run):
    paths = []
    for name, count, seed in (("train", 45, 0), ("test", 30, 1)):
        X, y, ids = draw(count, seed)
        table = long_table(X, np.searchsorted(["high", "low", "mid"], y), ids)
        table = table.append_column("fold", [np.repeat(np.arange(count) % 2, X.lengths)])
        paths.append(tmp_path / f"{name}.csv")
        paths[-1].write_text(csv_text(table))
    (train, test), model = paths, tmp_path / "m.slts"
    told = ("--label", "speaker", "--channels", "c1..c3")
    run.ok("fit", train, "--model", model, "--method", "1nn", *told)
    for command in ("evaluate", "certify"):
        expected = run(command, model, test, "--json", *told)
        found = run(command, model, test, "--json")
        assert found == expected
        assert found[0] == 0, found[2]
        assert "label=speaker, channels=c1..c3, not used: fold" in found[2]
    _, messages = run.ok("report", model, test, "--out", tmp_path / "report.html")
    assert "label=speaker" in messages


def test_test_data_are_read_before_the_training(problem, tmp_path, run):
    train_file, _ = problem[".csv"]
    X, y, ids = draw(30, 1)
    strange = tmp_path / "strange.csv"
    strange.write_text(csv_text(long_table(X, np.where(y == "mid", "odd", y), ids)))
    renamed = tmp_path / "renamed.csv"
    renamed.write_text(strange.read_text().replace("c2", "other").replace("odd", "mid"))
    narrow = tmp_path / "narrow.npz"
    np.savez(narrow, X=np.ones((2, 2, 5)), y=["high", "low"])
    for other, message in (
        (tmp_path / "no.csv", "no such file, folder or data set"),
        (strange, f"label 'odd' of series 'r002' is not a class of {train_file}"),
        (renamed, f"renamed.csv has no column 'c2', a channel of {train_file}. Its columns are"),
        (narrow, f"narrow.npz has 2 channels, but {train_file} has 3"),
    ):
        arguments = ["fit", train_file, "--model", tmp_path / "m.slts", "--test", other]
        messages = run.error(*arguments, "--verbose")
        assert message in messages
        assert "fitting" not in messages


def test_what_is_read_is_never_overwritten(problem, model, tmp_path, run):
    _, test = problem[".csv"]
    data = tmp_path / "data.csv"
    data.write_bytes(test.read_bytes())
    link = tmp_path / "link.csv"
    link.symlink_to(data)
    page = tmp_path / "m.html"
    page.write_bytes(model.read_bytes())
    picture = tmp_path / "m.png"
    picture.write_bytes(model.read_bytes())
    named = tmp_path / "train.slts"
    named.write_bytes(b"anything")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.csv").write_text("c1,c2,c3\n1,2,3\n")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for arguments in (
        ["predict", model, data, "--out", data],
        ["predict", model, data, "--out", link],
        ["predict", model, folder, "--out", folder / "a.csv"],
        ["predict", model, folder / "*.csv", "--out", folder / "a.csv"],
        ["report", page, "--out", page],
        ["explain", picture, data, "--plot", picture],
        ["fit", named, "--model", named],
        ["fit", data, "--test", named, "--model", named],
    ):
        messages = run.error(*arguments)
        assert "would overwrite" in messages
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    # Files that the command does not read are overwritten.
    run.ok("predict", model, data, "--out", tmp_path / "p.csv")
    run.ok("predict", model, data, "--out", tmp_path / "p.csv")


def test_explanations_sum_to_the_score(problem, model, tmp_path, run):
    pytest.importorskip("matplotlib")
    _, test = problem[".csv"]
    found = run.json("explain", model, test, "--series", "r004", "--quiet")
    assert found["predicted"] == "low"
    assert found["channels"] == ["c1", "c2", "c3"]
    terms = np.array(found["contributions"])
    assert np.allclose(terms.sum(axis=(1, 2)) + found["offset"], found["decision"])
    assert sum(found["probabilities"].values()) == pytest.approx(1.0)
    picture = tmp_path / "why.png"
    output, _ = run.ok("explain", model, test, "--series", "4", "--plot", picture, "--top", "2")
    assert output.startswith("series r004: predicted low\n")
    assert picture.read_bytes().startswith(b"\x89PNG")
    run.ok("explain", model, test, "--series", "4", "--class", "mid")
    neighbours = tmp_path / "m.slts"
    run.ok("fit", test, "--model", neighbours, "--method", "1nn")
    messages = run.error("explain", neighbours, test)
    assert "OneNNClassifier cannot be explained" in messages


def test_snippets_are_explained_after_landmarks(problem, tmp_path, run):
    train, test = problem[".csv"]
    path = tmp_path / "m.slts"
    few = ("--param", "n_snippets=300")
    run.ok("fit", train, "--model", path, "--method", "local", *few)
    found = run.json("explain", path, test)
    landmarks, snippets = (np.array(found[f"by_{kind}"]) for kind in ("landmark", "snippet"))
    total = found["intercept"] + landmarks.sum(axis=1) + snippets.sum(axis=1)
    assert np.allclose(total, found["decision"])
    output, _ = run.ok("explain", path, test, "--top", "2")
    _, listed = output.split("snippet\tnumber of steps where it occurs\tcontribution\n")
    values = [float(line.split("\t")[2]) for line in listed.splitlines()]
    own = snippets[found["classes"].index(found["explained"])]
    strongest = own[np.argsort(-np.abs(own))[:2]]
    assert np.allclose(values[:2], strongest, atol=1e-4)
    # The rows of a table sum to its term of the score.
    assert f"\n{len(own) - 2} others\t\t{values[2]:+.4f}" in output
    sums = re.search(
        r"decision value (\S+) = intercept (\S+) \+ landmarks (\S+) \+ snippets (\S+)", output
    )
    score, intercept, of_landmarks, of_snippets = map(float, sums.groups())
    assert score == pytest.approx(intercept + of_landmarks + of_snippets, abs=1e-9)
    assert of_snippets == pytest.approx(sum(values), abs=1e-9)
    # The identifiers of the data.
    assert re.search(r" of r0\d\d, channel", listed)
    assert all(re.fullmatch(r"(high|low|mid), r0\d\d", name) for name in found["landmark_names"])
    assert re.search(r"landmark\tplain similarity\tcontribution\n(high|low|mid), r0\d\d\t", output)
    assert re.search(r"\nstep\ttime\tcontribution\n(\d+)\t\1\t", output)


def test_printed_contributions_add_up(problem, model, run):
    """To the last digit, for every series; two of three channels leave one other."""
    _, test = problem[".csv"]
    for series in range(12):
        output, _ = run.ok("explain", model, test, "--series", series, "--top", "2")
        assert "\n1 other\t" in output
        found = re.search(r"decision value (\S+) = offset (\S+) \+ contributions (\S+)\n", output)
        score, offset, total = map(float, found.groups())
        assert score == pytest.approx(offset + total, abs=1e-9)
        found = re.search(r"decision value (\S+) = intercept (\S+) \+ landmarks (\S+)\n", output)
        again, intercept, landmarks = map(float, found.groups())
        assert again == score == pytest.approx(intercept + landmarks, abs=1e-9)
        for head, expected in (("channel", total), ("step", total), ("landmark", landmarks)):
            _, rows = re.split(rf"^{head}\t.*\n", output, maxsplit=1, flags=re.MULTILINE)
            values = [float(row.split("\t")[-1]) for row in rows.splitlines()[:3]]
            assert sum(values) == pytest.approx(expected, abs=1e-9)
        # Three classes: no row without a score.
        assert output.startswith(f"series r{series:03d}: predicted")
        assert "\t\t\n" not in output


def test_accuracy_on_training_series_is_not_called_held_out(problem, tmp_path, run):
    (train, test), path = problem[".csv"], tmp_path / "m.slts"
    fit = ["fit", train, "--model", path, "--method", "slts", "--no-digests"]
    output, messages = run.ok(*fit, "--test", train)
    assert "on series that are not held out: accuracy" in output
    assert messages.count("warning: 45 of 45 series are copies of training series") == 1
    assert slts.load(path).training_digests_ is None
    _, output, messages = run(*fit[:-1], "--test", test)
    assert "on held-out series: accuracy" in output
    assert "copies" not in messages
    assert len(slts.load(path).training_digests_) == 45
    _, output, messages = run("evaluate", path, train, "--json")
    assert "warning: 45 of 45 series are copies of training series" in messages
    assert json.loads(output)["n_training_copies"] == 45
    _, _, messages = run("report", path, train, "--out", tmp_path / "r.html")
    assert messages.count("warning: 45 of 45 series are copies of training series") == 1
    unlabelled = tmp_path / "unlabelled.csv"
    pd = pytest.importorskip("pandas")
    pd.read_csv(train).drop(columns="speaker").to_csv(unlabelled, index=False)
    _, _, messages = run("report", path, unlabelled, "--out", tmp_path / "u.html")
    assert "has no accuracy" in messages
    assert "The accuracy" not in messages


def test_only_fit_warns_of_more_channels_than_steps(tmp_path, run):
    X, path = np.random.default_rng(0).normal(size=(12, 9, 2)), tmp_path / "m.slts"
    X[::2] += 2.0
    np.savez(tmp_path / "a.npz", X=X, y=[0, 1] * 6)
    np.savez(tmp_path / "swapped.npz", X=X.transpose(0, 2, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        _, _, messages = run("fit", tmp_path / "a.npz", "--model", path, "--method", "1nn")
    assert messages.count("is read as series of 9 channels and 2 steps") == 1
    run.ok("predict", path, tmp_path / "a.npz")
    messages = run.error("predict", path, tmp_path / "swapped.npz")
    assert "but the model has 9. Arrays are (n, channels, time)" in messages
    # One series as long as there are channels says nothing about the axes.
    np.savez(tmp_path / "ragged.npz", values=np.zeros((12, 2)), offsets=[0, 9, 12])
    _, _, messages = run("predict", path, tmp_path / "ragged.npz")
    assert "ragged.npz has 2 channels, but the model has 9\n" in messages
    _, _, messages = run("fit", tmp_path / "swapped.npz", "--model", path, "--method", "1nn")
    assert "swapped.npz has no labels. A table has them in a column (--label" in messages


def test_identifiers_can_be_left_out_of_a_model_file(problem, tmp_path, run):
    train, _ = problem[".csv"]
    for options, expected in (([], True), (["--no-identifiers"], False)):
        path = tmp_path / f"m{len(options)}.slts"
        run.ok("fit", train, "--model", path, "--method", "slts", *options)
        names = re.findall(rb'"r0\d\d\\?"', path.read_bytes())
        assert bool(names) == expected


def test_a_report_is_named_after_its_data(problem, model, tmp_path, run):
    _, test = problem[".csv"]
    page = tmp_path / "page.html"
    data = tmp_path / "gait_of_patients.csv"
    data.write_bytes(test.read_bytes())
    for options, title in (
        ([data], "Gait of patients"),
        ([], "Model"),
        # A word of a command line that is not UTF-8.
        ([data, "--title", "Mine\udcff"], "Mine?"),
    ):
        run.ok("report", model, *options, "--out", page)
        text = page.read_text(encoding="utf-8")
        assert f"<h1>{title}</h1>" in text
        page.unlink()
    assert '"id":"r00' in text


def test_times_are_explained_as_precisely_as_neighbours_need_it(model, tmp_path, run):
    X, _, _ = draw(1, 0)
    seconds = 0.02 * np.arange(X.n_steps) + 1e-9
    dates = (1e9 * seconds).astype("timedelta64[ns]") + np.datetime64("2024-05-01T10:00")
    for times, form in ((seconds, r"0(\.\d\d?)?"), (dates, r"2024-05-01T10:00:00\.\d{3}")):
        rows = [f"a,{t},{x[0]},{x[1]},{x[2]}" for t, x in zip(times, X.values, strict=True)]
        (tmp_path / "data.csv").write_text("\n".join(["id,time,c1,c2,c3", *rows]))
        output, _ = run.ok("explain", model, tmp_path / "data.csv")
        _, listed = output.split("step\ttime\tcontribution\n")
        shown = [line.split("\t")[1] for line in listed.splitlines()[:5]]
        assert all(re.fullmatch(form, time) for time in shown), shown


def test_the_predicted_one_of_two_classes_is_explained(tmp_path, run):
    X, y, ids = draw(45, 0)
    two = y != "mid"
    data, path = tmp_path / "data.csv", tmp_path / "m.slts"
    data.write_text(csv_text(long_table(X[two], y[two], ids[two])))
    run.ok("fit", data, "--model", path, "--method", "slts")
    for name, other in (("high", "low"), ("low", "high")):
        series = ids[y == name][0]
        found = run.json("explain", path, data, "--series", series)
        assert found["predicted"] == found["explained"] == name
        assert found["classes"] == ["high", "low"]
        scores = dict(zip(found["classes"], found["decision"], strict=True))
        assert scores[name] > 0 > scores[other] == -scores[name]
        terms = np.array(found["contributions"])
        assert np.allclose(terms.sum(axis=(1, 2)) + found["offset"], found["decision"])
        for chosen, against in ((name, other), (other, name)):
            output, _ = run.ok("explain", path, data, "--series", series, "--class", chosen)
            score = f"{scores[chosen]:.4f}"
            assert f"class {chosen}, against {against}: decision value {score} = offset" in output
            assert f"\n{chosen}\t{score}\t" in output
    assert run("explain", path, data, "--class", "mid")[0] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "x.csv"], "--model"),
        (["fit", "x.csv", "--model", "m.slts", "--method", "magic"], "magic"),
        (["fit", "x.csv", "--model", "m.txt"], "must end in .slts"),
        (["fit", "x.csv", "--model", "m.slts", "--param", "gama=1"], "no parameter 'gama'"),
        (["fit", "x.csv", "--model", "m.slts", "--param", "gamma"], "expected name=value"),
        (["fit", "x.csv", "--model", "m.slts", "--test-size", "2"], "between 0 and 1"),
        (["fit", "x", "--model", "m.slts", "--test-size", ".2", "--test", "y"], "not both"),
        (["predict", "m.slts", "x.csv", "--out", "p.xlsx"], "must end in one of"),
        (["explain", "m.slts", "x.csv", "--plot", "p.xlsx"], "must end in one of"),
        (["certify", "m.slts", "x.csv", "--delta", "5"], "between 0 and 1"),
        (["predict", "m.slts", "x.csv", "--alpha", "nan"], "between 0 and 1"),
        (["fit", "x.csv", "--model", "m.slts", "--memory-limit=-3GB"], "such as 2GB or 512MiB"),
        (["evaluate", "m.slts", "x.csv", "--memory-limit", "2PB"], "got 2PB"),
        (["report", "m.slts", "--out", "r.pdf"], "must end in one of .html, .htm"),
    ],
)
def test_a_wrong_command_line_is_2(arguments, message, run):
    messages = run.error(*arguments, code=2)
    # The message comes in a frame, broken into lines.
    assert message in " ".join(messages.replace("│", " ").split())


def test_mistakes_get_a_message_and_1(problem, model, tmp_path, run):
    train, test = problem[".csv"]
    X, y, ids = draw(30, 1)
    unlabelled = tmp_path / "unlabelled.csv"
    unlabelled.write_text(csv_text(long_table(X, y, ids, label=False)))
    narrow = tmp_path / "narrow.npz"
    np.savez(narrow, X=np.ones((2, 2, 5)), y=["high", "low"])
    strange = tmp_path / "strange.csv"
    strange.write_text(csv_text(long_table(X, np.where(y == "mid", "odd", y), ids)))
    fresh, folder = tmp_path / "fresh.slts", tmp_path / "folder"
    folder.mkdir()
    (folder / "a.csv").write_text("x,y\n1,2\n2,3\n")
    for arguments, message in (
        (["predict", tmp_path / "no.slts", test], "there is no model file"),
        (["predict", model, tmp_path / "no.csv"], "no such file, folder or data set"),
        (["predict", test, model], "data.csv is not a model file: give the model before the data"),
        (["predict", model, narrow], "narrow.npz has 2 channels, but the model has 3"),
        (["evaluate", model, narrow], "narrow.npz has 2 channels, but the model has 3"),
        (["predict", model, f"{test}v"], "Did you mean data.csv?"),
        (["predict", model, test, "--out", tmp_path / "no" / "p.csv"], "there is no folder"),
        (["evaluate", model, unlabelled], "has no column that holds the classes of the model"),
        (["evaluate", model, strange], "not a class of the model. Its classes are 'high', 'low'"),
        (["evaluate", model, test, "--label", "nope"], "no column 'nope' (label)"),
        (
            ["explain", model, test, "--series", "r999"],
            "has 30 series, and none has the identifier or the position r999. Give an identifier, "
            "such as 'r000', 'r001', 'r002', or a position from 0 to 29",
        ),
        (["evaluate", model, test, "--label", "speeker"], "Did you mean 'speaker'?"),
        (["fit", unlabelled, "--model", fresh], "has no label column"),
        (["fit", folder, "--model", fresh], "folder has no labels: add labels.csv with a header"),
        (["fit", train, "--model", fresh, "--param", "gamma=-1", "--method", "slts"], "'gamma'"),
        (["fit", train, "--model", fresh, "--method", "slts-cv", "--param", "cv=1"], "'cv'"),
    ):
        messages = run.error(*arguments)
        assert message in messages
        assert "Traceback" not in messages
    assert not fresh.exists()


def walks(folder, **columns):
    """Write series of one channel; a column is a function of the number of the series."""
    rng = np.random.default_rng(0)
    lines = [",".join(["recording", "t", *columns, "x"])]
    for i in range(24):
        for t in range(10):
            values = [f"r{i:02d}", t, *(f(i) for f in columns.values()), rng.normal() + i % 2]
            lines.append(",".join(map(str, values)))
    path = folder / "walks.csv"
    path.write_text("\n".join(lines))
    return path


def test_columns_that_are_constant_in_every_series_are_listed(tmp_path, run):
    path, out = tmp_path / "m.slts", ["--method", "bbs", "--model"]
    columns = {"gait": lambda i: ["walk", "run"][i % 2], "code": lambda i: i % 2}
    output, messages = run.ok("fit", walks(tmp_path, **columns), *out, path)
    assert "channels=x, not used, constant in every series: code" in messages
    assert "(1 channel, 2 classes)" in output
    messages = run.error("fit", walks(tmp_path, code=columns["code"]), *out, path)
    text = "has no label column: name it with --label. It may be --label code. Unused columns: code"
    assert messages.rstrip().endswith(text)
    _, _, messages = run("fit", walks(tmp_path), *out, path)
    assert (
        "the label must have one value per series, at least two different values, and no empty"
        in messages
    )


def test_a_wrong_number_of_channels_is_an_error_with_advice_that_works(problem, tmp_path, run):
    path, (train, _) = tmp_path / "m.slts", problem[".npz"]
    run.ok("fit", train, "--model", path, "--method", "1nn")
    csv = walks(tmp_path, gait=lambda i: ["high", "low", "mid"][i % 3])
    _, _, messages = run("predict", path, csv)
    assert "has 1 channel, but the model has 3: name as many with --chan" in messages
    # Columns of the training data cannot be named.
    _, _, messages = run("fit", train, "--test", csv, "--model", path, "--method", "1nn")
    assert messages.rstrip().endswith(f"has 1 channel, but {train} has 3")
    wide = tmp_path / "wide.csv"
    rows = [",".join(map(str, [i, *range(9)])) for i in range(4)]
    wide.write_text("\n".join([",".join(["id", *(f"v{k}" for k in range(9))]), *rows]))
    _, _, messages = run("predict", path, wide)
    assert "the model has 3: a table with one series per row has one channel" in messages


@pytest.mark.filterwarnings("default")
def test_channels_of_other_names_in_an_array_file_are_warned_about(model, tmp_path, run):
    X, y, _ = draw(30, 1)
    names = {"channel_names": ["p", "q", "r"]}
    np.savez(tmp_path / "a.npz", values=X.values, offsets=X.offsets, y=y, **names)
    _, messages = run.ok("predict", model, tmp_path / "a.npz", "--quiet")
    text = "Warning: X has channels p,q,r, but SLTSClassifier was fitted on c1..c3"
    assert messages.count(text) == 1


def test_columns_that_are_used_by_position_are_said_to_be(problem, tmp_path, run):
    path, (_, table) = tmp_path / "m.slts", problem[".csv"]
    X, y, _ = draw(30, 1)
    np.savez(tmp_path / "a.npz", values=X.values, offsets=X.offsets, y=y)
    by_position = "channels=c1..c3; channels are in this order, because {} has no names for them"
    arguments = ["fit", tmp_path / "a.npz", "--model", path, "--method", "1nn", "--test", table]
    _, messages = run.ok(*arguments)
    assert by_position.format(tmp_path / "a.npz") in messages
    for command in ("predict", "evaluate"):
        _, messages = run.ok(command, path, table)
        assert messages.count(by_position.format("the model")) == 1


@pytest.mark.parametrize("jobs", [-1, 1, 3])
def test_jobs_are_those_of_python(jobs, problem, tmp_path, run):
    train, _ = problem[".npz"]
    arguments = ["fit", train, "--model", tmp_path / "m.slts", "--method", "1nn"]
    _, messages = run.ok(*arguments, "--jobs", jobs, "--verbose")
    assert f"n_jobs={jobs}" in messages
    messages = run.error(*arguments, "--jobs", 0, code=2)
    assert "-1 for all processors, got 0" in " ".join(messages.replace("│", "").split())


def test_a_model_knows_the_layout_and_the_label_of_a_wide_file(tmp_path, run):
    waves = [np.sin(np.arange(10) * (1 + i % 3) + i).tolist() for i in range(30)]
    names = ",".join(["fault", *(f"v{k}" for k in range(10))])
    rows = [",".join(map(str, [i % 3, *wave])) for i, wave in enumerate(waves)]
    mixed, by_class, model = (tmp_path / name for name in ("mixed.csv", "sorted.csv", "m.slts"))
    mixed.write_text("\n".join([names, *rows]))
    # Two of three classes, one after the other.
    by_class.write_text("\n".join([names, *rows[::3], *rows[1::3]]))
    fit = ["fit", mixed, "--label", "fault", "--model", model, "--method", "bbs"]
    run.ok(*fit)
    assert slts.load(model).label_column_ == "fault"
    for command in ("predict", "evaluate"):
        _, messages = run.ok(command, model, by_class)
        assert "label=fault, one series per row, steps=v0..v9" in messages


def test_prediction_sets_in_every_form(problem, model, tmp_path, run):
    _, test = problem[".parquet"]
    X, _, _ = draw(30, 1)
    expected = slts.prediction_sets(slts.load(model)).predict(X, 0.2)
    labels = [row.tolist() for row in expected.labels]
    output, messages = run.ok("predict", model, test, "--alpha", "0.2", "--batch-size", "7")
    rows = table(output)
    assert [row["set"] for row in rows] == ["|".join(row) for row in labels]
    assert [int(row["set_size"]) for row in rows] == expected.sizes.tolist()
    assert [row["set_flag"] for row in rows] == expected.flags
    assert messages.count("About 80% of the sets contain the true class. This is an estimate") == 1
    output, _ = run.ok("predict", model, test, "--alpha", "0.2", "--json", "--quiet")
    assert [json.loads(line)["set"] for line in output.splitlines()] == labels
    out = tmp_path / "p.parquet"
    counts = run.json("predict", model, test, "--alpha", "0.2", "--out", out)["sets"]
    assert sum(counts.values()) == 30
    found = pq.read_table(out)
    assert found["set"].to_pylist() == labels
    assert found["set_flag"].to_pylist() == expected.flags
    output, _ = run.ok("predict", model, test, "--alpha", "0.2", "--out", tmp_path / "p.csv")
    assert re.search(r"\d+ empty, \d+ single, \d+ several", output)


def test_a_model_without_held_out_decisions_has_no_sets(problem, tmp_path, run):
    X, y, _ = draw(30, 1)
    path, test = tmp_path / "m.slts", problem[".parquet"][1]
    slts.save(slts.BBSClassifier(9, calibration_cv=None, random_state=0).fit(X, y), path)
    messages = run.error("predict", path, test, "--alpha", "0.1")
    assert "no decisions for held-out series" in messages


# -- missing values


def gappy(path, run, *, cell=""):
    """Write a CSV of 12 series: c2 is missing in one step in four, `cell` in the fourth series."""
    X, y, ids = draw(12, 5)
    lines = csv_text(long_table(X, y, ids)).splitlines()
    rows = [line.split(",") for line in lines]
    position = rows[0].index("c2") if "c2" in rows[0] else rows[0].index('"c2"')
    for row in rows[1::4]:
        row[position] = ""
    rows[1 + int(X.offsets[3])][position] = cell
    path.write_text("\n".join(",".join(row) for row in rows))
    return X, y, ids


def test_commands_say_how_many_values_are_missing(model, tmp_path, run):
    data = tmp_path / "data.csv"
    X, _, _ = gappy(data, run)
    n_missing = len(range(0, X.n_steps, 4)) + (int(X.offsets[3]) % 4 != 0)
    share = f"{n_missing / X.n_steps:.1%}"
    message = f"missing values in {X.n_steps} steps: {n_missing} ({share}) in c2"
    for command in (
        ["fit", data, "--model", tmp_path / "m.slts", "--method", "bbs"],
        ["predict", model, data],
        ["evaluate", model, data],
        ["explain", model, data, "--series", "3"],
        ["report", model, data, "--out", tmp_path / "r.html"],
    ):
        output, messages = run.ok(*command, *(["--json"] if command[0] == "fit" else []))
        assert messages.count("missing values") == 1
        assert message in messages
        if command[0] == "fit":
            counts = json.loads(output)
            assert counts["missing"] == {"c1": 0, "c2": n_missing, "c3": 0}
            assert counts["n_steps"] == X.n_steps


def test_text_that_holds_no_class_of_the_model_is_not_the_label(model, tmp_path, run):
    X, _, ids = draw(12, 5)
    machines = np.array(["press", "lathe"])[np.arange(12) % 2]
    table = long_table(X, machines, ids)
    table = table.rename_columns([n.replace("speaker", "machine") for n in table.column_names])
    (tmp_path / "data.csv").write_text(csv_text(table))
    messages = run.error("evaluate", model, tmp_path / "data.csv")
    assert "no column that holds the classes of the model ('high', 'low', 'mid')" in messages
    assert "may be" not in messages
    page = tmp_path / "r.html"
    _, messages = run.ok("report", model, tmp_path / "data.csv", "--out", page)
    assert "holds the classes of the model: the report has no accuracy" in messages


def test_the_model_keeps_its_grid_of_time(problem, tmp_path, run):
    train, test = problem[".csv"]
    model = tmp_path / "m.slts"
    command = ["fit", train, "--model", model, "--method", "bbs", "--param", "n_landmarks=9"]
    assert "every=) must be a number" in run.error(*command, "--every", "20ms")
    run.ok(*command)
    n_steps = slts.load(model).n_steps_in_
    run.ok(*command, "--every", "2")
    assert slts.load(model).n_steps_in_ < 0.7 * n_steps
    output, messages = run.ok("predict", model, test)
    assert "time=t (every 2)" in messages
    assert output == run("predict", model, test, "--every", "2")[1]
    assert "time=t (every 2)" in run("evaluate", model, test)[2]
    assert "the model was" not in run("predict", model, test, "--every", "2.0")[2]
    _, other, messages = run("predict", model, test, "--every", "1")
    assert other != output
    assert "the model was trained on a time grid with steps of 2" in messages
    _, _, messages = run("evaluate", model, test, "--every", "1")
    # One message, not one of the command and one of the model.
    assert messages.count("the model was") == 1
    assert "but the model was fitted with every=2: use --every 2" in messages
    assert "the model was" not in run("evaluate", model, test, "--every", "2.0")[2]
    fitted = slts.load(model)
    with pytest.warns(UserWarning, match="scanned with every=None, but the model was fitted with"):
        fitted.predict(slts.scan_series(test))


@pytest.mark.parametrize("cell", ["inf", "oops"])
def test_a_bad_cell_stops_or_is_skipped(cell, model, tmp_path, run):
    data = tmp_path / "data.csv"
    _, y, ids = gappy(data, run, cell=cell)
    messages = run.error("predict", model, data)
    assert "c2" in messages
    output, messages = run.ok("predict", model, data, "--on-error", "skip")
    rows = table(output)
    assert [row["id"] for row in rows] == ids.tolist()
    assert rows[3]["prediction"] == rows[3]["p_low"] == ""
    assert rows[3]["error"].startswith("step 0 of 'c2' is infinite or not a number")
    others = [k for k in range(12) if k != 3]
    assert [rows[k]["prediction"] for k in others] == y[others].tolist()
    assert {rows[k]["error"] for k in others} == {""}
    assert "skipped 1 of 12 series" in messages
    output, _ = run.ok("predict", model, data, "--on-error", "skip", "--json")
    entries = [json.loads(line) for line in output.splitlines()]
    assert entries[3]["prediction"] is None
    assert entries[3]["error"] == rows[3]["error"]
    out = tmp_path / "p.parquet"
    run.ok("predict", model, data, "--on-error", "skip", "--out", out)
    assert pq.read_table(out)["prediction"].to_pylist()[2:5] == [y[2], None, y[4]]


def test_bad_series_of_sources_without_columns_are_skipped(model, tmp_path, run):
    X, y, _ = draw(6, 5)
    values = X.values.copy()
    values[X.offsets[3], 1] = np.inf
    values[X.offsets[4] : X.offsets[5]] = np.nan
    np.savez(tmp_path / "data.npz", values=values, offsets=X.offsets, y=y)
    lines = [":".join(",".join(map(str, channel)) for channel in x) for x in X]
    lines[3] = "oops" + lines[3][lines[3].index(",") :]
    lines[4] = "?:?:?"
    header = "@dimensions 3\n@classLabel true high low mid\n@data"
    rows = [f"{line}:{label}" for line, label in zip(lines, y, strict=True)]
    (tmp_path / "data.ts").write_text("\n".join([header, *rows]))
    reasons = {
        "data.npz": "step 0 of channel 1 is infinite or not a number",
        "data.ts": "channel 0, step 0: 'oops' is not a number",
    }
    for name, reason in reasons.items():
        assert run("predict", model, tmp_path / name)[0] == 1
        output, _ = run.ok("predict", model, tmp_path / name, "--on-error", "skip")
        errors = [row["error"] for row in table(output)]
        assert errors == ["", "", "", reason, "the series has no values", ""]


def test_a_series_that_is_skipped_has_no_prediction_set(model, tmp_path, run):
    data, out = tmp_path / "data.csv", tmp_path / "p.parquet"
    gappy(data, run, cell="oops")
    command = ["predict", model, data, "--on-error", "skip", "--alpha", "0.2"]
    output, _ = run.ok(*command, "--batch-size", "1")
    rows = table(output)
    assert list(rows[3])[-4:] == ["set", "set_size", "set_flag", "error"]
    assert rows[3]["set"] == rows[3]["set_size"] == rows[3]["set_flag"] == ""
    assert rows[3]["error"]
    others = [row for k, row in enumerate(rows) if k != 3]
    assert {row["set_flag"] for row in others} <= {"single", "several", "empty"}
    counts = run.json(*command, "--out", out)["sets"]
    assert sum(counts.values()) == 11
    found = pq.read_table(out)
    sets = found["set"].to_pylist()
    assert sets[3] is None
    assert ["|".join(row) for row in sets[:3] + sets[4:]] == [row["set"] for row in others]
    run.ok(*command, "--out", tmp_path / "one.parquet", "--batch-size", "1")
    names = ["set", "set_size", "set_flag", "error"]
    assert pq.read_table(tmp_path / "one.parquet", columns=names).equals(found.select(names))
