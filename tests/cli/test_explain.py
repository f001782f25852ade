"""`slts explain`: exact contributions, chosen series and classes, plots."""

import re

import numpy as np
import pytest

from tests.cli.conftest import draw
from tests.tables.forms import csv_text, long_table


@pytest.fixture(scope="module")
def local(problem, tmp_path_factory):
    from slts.cli import main

    path = tmp_path_factory.mktemp("local") / "m.slts"
    fit = ["fit", problem[".csv"][0], "--model", path, "--param", "n_snippets=100", "--quiet"]
    assert main(list(map(str, fit))) == 0
    return path


def test_contributions_sum_to_the_decision(problem, local, run):
    test = problem[".csv"][1]
    content = run.json("explain", local, test, "--series", "r004")
    assert (content["series"], content["predicted"]) == ("r004", "low")
    assert content["channels"] == ["c1", "c2", "c3"]
    terms = np.array(content["contributions"])
    assert np.allclose(terms.sum(axis=(1, 2)) + content["offset"], content["decision"])
    landmarks, snippets = (np.array(content[f"by_{kind}"]) for kind in ("landmark", "snippet"))
    total = content["intercept"] + landmarks.sum(axis=1) + snippets.sum(axis=1)
    assert np.allclose(total, content["decision"])
    assert sum(content["probabilities"].values()) == pytest.approx(1.0)


def test_tables_show_the_largest_contributions_and_the_sum_of_the_others(problem, local, run):
    test = problem[".csv"][1]
    content = run.json("explain", local, test)
    output, _ = run.ok("explain", local, test, "--top", "2")
    assert output.startswith("series r000: predicted high\n")
    c = content["classes"].index("high")
    terms = np.array(content["contributions"][c])
    for header, values in (
        (r"channel", terms.sum(axis=0)),
        (r"step\ttime", terms.sum(axis=1)),
        (r"landmark\tplain similarity", np.array(content["by_landmark"][c])),
        (r"snippet\tnumber of steps where it occurs", np.array(content["by_snippet"][c])),
    ):
        table = re.search(rf"^{header}\tcontribution\n((?:.*\n){{3}})", output, re.MULTILINE)[1]
        printed = [float(line.split("\t")[-1]) for line in table.splitlines()]
        largest = values[np.argsort(-np.abs(values))[:2]]
        expected = [*largest, values.sum() - largest.sum()]
        assert np.allclose(printed, expected, atol=6e-5)
        n_others = len(values) - 2
        assert re.search(rf"^{n_others} others?\t", table, re.MULTILINE)
    decision = rf"class high: decision value {content['decision'][c]:.4f} = "
    assert f"{decision}offset {content['offset'][c]:.4f} + contributions " in output
    assert f"{decision}intercept {content['intercept'][c]:.4f} + landmarks " in output
    # Landmarks and snippets have the identifiers of the data.
    assert re.search(r"^(high|low|mid), r0\d\d\t", output, re.MULTILINE)
    assert re.search(r" of r0\d\d, channel", output)


def test_stretches_are_shown(problem, local, run):
    import slts

    X, _, _ = draw(30, 1)
    explanation = slts.explain(slts.load(local), X[:1])
    content = run.json("explain", local, problem[".csv"][1])
    for label, stretches in zip(content["classes"], content["stretches"], strict=True):
        expected = [list(one) for one in explanation.stretches(label)]
        np.testing.assert_allclose([list(one.values()) for one in stretches], expected)
    output, _ = run.ok("explain", local, problem[".csv"][1])
    header = "strongest channel\tcontribution\tshare of all steps that support the class"
    first, last, contribution, share, channel = explanation.stretches()[0]
    values = f"c{channel + 1}\t{contribution:+.4f}\t{share:.1%}"
    row = rf"{first} to {last}\t.* to .*\t{re.escape(values)}"
    assert re.search(rf"\nsteps\ttime\t{header}\n{row}\n", output)


@pytest.mark.parametrize(("form", "wanted"), [(".csv", "r004"), (".ts", "4")])
def test_a_series_is_named_or_numbered(form, wanted, problem, local, run):
    test = problem[form][1]
    assert run.json("explain", local, test, "--series", wanted)["predicted"] == "low"
    message = run.error("explain", local, test, "--series", "r999")
    assert "r999" in message
    assert "30 series" in message


def test_the_predicted_one_of_two_classes_is_explained(tmp_path, run):
    X, y, ids = draw(45, 0)
    two = y != "mid"
    data, path = tmp_path / "data.csv", tmp_path / "m.slts"
    data.write_text(csv_text(long_table(X[two], y[two], ids[two])))
    run.ok("fit", data, "--model", path, "--method", "slts")
    for name, other in (("high", "low"), ("low", "high")):
        explain = ["explain", path, data, "--series", ids[y == name][0]]
        content = run.json(*explain)
        assert content["predicted"] == content["explained"] == name
        scores = dict(zip(content["classes"], content["decision"], strict=True))
        assert scores[name] > 0 > scores[other] == -scores[name]
        for chosen, against in ((name, other), (other, name)):
            output, _ = run.ok(*explain, "--class", chosen)
            decision = f"class {chosen}, against {against}: decision value {scores[chosen]:.4f} ="
            assert output.count(decision) == 2
    assert "'mid'" in run.error("explain", path, data, "--class", "mid", code=2)


def test_contributions_are_plotted(problem, local, tmp_path, run):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "why.png"
    output, _ = run.ok("explain", local, problem[".csv"][1], "--plot", picture)
    assert output.endswith(f"plot: {picture}\n")
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_times_are_shown(local, tmp_path, run):
    X, _, _ = draw(1, 0)
    times = (20 * np.arange(X.n_steps)).astype("timedelta64[ms]") + np.datetime64("2024-05-01T10")
    rows = [f"a,{t},{','.join(map(str, x))}" for t, x in zip(times, X.values, strict=True)]
    (tmp_path / "data.csv").write_text("\n".join(["id,time,c1,c2,c3", *rows]))
    output, _ = run.ok("explain", local, tmp_path / "data.csv", "--top", "1")
    assert re.search(r"\nstep\ttime\tcontribution\n\d+\t2024-05-01T10:00:00\.\d{2,3}\t", output)


def test_neighbours_cannot_be_explained(problem, tmp_path, run):
    test, path = problem[".csv"][1], tmp_path / "m.slts"
    run.ok("fit", test, "--model", path, "--method", "1nn")
    assert "OneNNClassifier" in run.error("explain", path, test)
