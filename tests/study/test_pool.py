"""The comparison on the pool of public data sets, with a made-up archive."""

import dataclasses
import io
import tarfile

import numpy as np
import pytest

from study.markdown import to_markdown
from study.methods import ADAPTERS, POOL_METHODS
from study.peer_document import build
from study.peer_tables import collect
from study.pool import ONE, POOL_SETS, SEVERAL
from study.problems import load_once, load_published, missing_datasets
from study.protocol import ACCURACY_WORDS, FULL, POOL, compared_datasets, parse_only, plan_accuracy
from tests.study.synthetic import TINY
from tests.study.test_peer_tables import EVERYTHING, GRIDS, RUN, row, score

SMALL = dataclasses.replace(TINY, pool=("Car", "AReM"))


@pytest.fixture(autouse=True)
def _nothing_is_loaded():
    load_once.cache_clear()


@pytest.fixture
def archive(monkeypatch, tmp_path, rng):
    """An archive with a data set of each group; the first series of "Car" has a gap."""
    with tarfile.open(tmp_path / "pool.tar.gz", "w:gz") as tar:
        for name, n_channels in (("Car", 1), ("AReM", 3)):
            y = np.array(["a", "b"] * 10)
            lengths = rng.integers(12, 16, size=20)
            steps = zip(lengths, y == "a", strict=True)
            parts = [rng.normal(size=(n_channels, n)) + 2.0 * first for n, first in steps]
            parts[0][0, 4:6] = np.nan if name == "Car" else 0.0
            values = np.concatenate(parts, axis=1).astype(np.float32)
            stream = io.BytesIO()
            np.savez(stream, values=values, lengths=lengths, y=y, n_train=np.array(12))
            member = tarfile.TarInfo(f"{name}.npz")
            member.size = stream.tell()
            stream.seek(0)
            tar.addfile(member, stream)
    monkeypatch.setenv("SLTS_POOL", str(tmp_path))
    return tmp_path


def test_series_labels_and_split_are_those_of_the_archive(archive):
    found = load_published("AReM")
    assert (found.batch.n_channels, found.n_train, len(found.batch)) == (3, 12, 20)
    assert found.labels.tolist() == ["a", "b"] * 10
    assert found.batch[0].mean() > found.batch[1].mean() + 1.0
    series = load_published("Car").batch
    assert np.flatnonzero(np.isnan(series[0][0])).tolist() == [4, 5]
    train, _ = ADAPTERS["minirocket"].prepare(series[:12], series[12:])
    before, after = series[0][0, [3, 6]]
    assert train[0, 0, 4:6] == pytest.approx([(2 * before + after) / 3, (before + 2 * after) / 3])
    with pytest.raises(FileNotFoundError, match=r"no member Meat\.npz"):
        load_published("Meat")


def test_without_its_folder_the_pool_is_left_out(monkeypatch):
    monkeypatch.delenv("SLTS_POOL", raising=False)
    missing = missing_datasets([POOL], load_published)
    assert "set SLTS_POOL" in missing[POOL]
    selection = parse_only("pool", ACCURACY_WORDS, compared_datasets(FULL))
    assert plan_accuracy(FULL, selection, missing) == []
    text = to_markdown(build(collect({}, FULL, selection), RUN | {"missing": missing}, []))
    assert "- Pool: pool.tar.gz is not on this machine: set SLTS_POOL to the folder" in text


def test_peers_run_once_and_the_centre_with_three_seeds():
    selection = parse_only("pool", ACCURACY_WORDS, compared_datasets(FULL))
    units = plan_accuracy(FULL, selection)
    counts = {name: sum(unit.detail == (name,) for unit in units) for name in POOL_METHODS}
    assert counts == {name: 41 * (3 if name == "local" else 1) for name in POOL_METHODS}
    assert len(units) == sum(counts.values())
    assert (len(ONE), len(SEVERAL), len(set(POOL_SETS))) == (28, 13, 41)


def test_the_mean_of_the_seeds_is_compared_with_one_run():
    results = {}
    for name, level in (("Car", 80.0), ("Meat", 90.0), ("AReM", 70.0)):
        for split in range(3):
            found = score("local", name, split, level + split)
            results[f"model/{name}/{split}/local"] = {
                "scores": [
                    found | {"ece": 0.02, "overconfidence": -0.01, "log_loss": 0, "brier": 0}
                ]
            }
        for method, gain in (("minirocket", 0.0), ("rdst", 5.0 if name == "Car" else 2.5)):
            results[f"model/{name}/0/{method}"] = {"scores": [score(method, name, 0, level + gain)]}
    tables = collect(results, FULL, EVERYTHING)
    assert tables["datasets"] == []
    one = tables["pool"]["one channel"]
    assert row(one, "tests", "minirocket")["record"] == [2, 0, 0]
    assert row(one, "tests", "rdst")["cells"]["Car"] == {"difference": -4.0, "p": None, "n": 3}
    assert tables["pool"]["all"]["ranks"]["ranks"] == {"local": 2.0, "minirocket": 3.0, "rdst": 1.0}
    run = RUN | {"grids": GRIDS | {"pool_seeds": 3}}
    document = to_markdown(build(tables, run, ["accuracy-pool-ranks"]))
    assert "## Time and size" not in document
    section = document.partition("## Pool: 3 ")[2]
    for text in (
        "mean over 3 seeds",
        "| LocalSLTS | 86.00 | 71.00 | 81.00 | 2.00 | 2.00 | 2.00 | 6.0 | 3.0 |",
        "| RDST | 0 - 0 - 2 | -2.75 | 0.500 | 0 - 0 - 1 | -1.50 | 1.000 | 0 - 0 - 3 | -2.33 |",
        "- LocalSLTS, one channel: mean probability minus accuracy -0.010, ECE 0.020.",
        "- Against RDST: Car by 4.0, Meat by 1.5, AReM by 1.5.",
        "| Car | 81.0 | 80.0 | 85.0 |",
        "![Mean ranks over the pool](accuracy-pool-ranks.png)",
    ):
        assert text in section


@pytest.mark.filterwarnings("ignore")
def test_the_pool_is_run_from_its_archive(archive, tmp_path):
    pytest.importorskip("aeon")
    pytest.importorskip("matplotlib")
    from study.__main__ import STUDIES, run_study

    study = STUDIES["accuracy"]
    selection = parse_only("pool,local,minirocket", study.words, study.datasets(SMALL))
    report = run_study(study, tmp_path / "out", protocol=SMALL, selection=selection)
    assert (report.outcome.failures, report.run["missing"]) == ({}, {})
    assert len(report.outcome.results) == 2 * 2 + 2
    assert {"pool.csv", "pool-tests.csv", "accuracy-pool.csv", "accuracy-pool-ranks.png"} <= {
        path.name for path in (tmp_path / "out").iterdir()
    }
    assert report.tables["pool"]["all"]["datasets"] == ["Car", "AReM"]
    again = run_study(study, tmp_path / "out", protocol=SMALL, selection=selection)
    assert again.outcome.n_reused == 6
