import dataclasses
import json

import numpy as np
import pytest

from slts.bench import FAST, compare_accuracy, parse_only
from slts.bench.makers import MAKERS, warm_up
from slts.bench.methods import BY_NAME
from slts.bench.protocol import choice_unit, plan
from slts.bench.work import Worker
from slts.series import as_series
from slts.study.problems import divide
from slts.study.protocol import Unit
from tests.bench.synthetic import HERE, MISSING, TINY, load

pytest.importorskip("matplotlib")

OURS = parse_only("local,slts,phases-1,slts-homogeneous,choices")


@dataclasses.dataclass
class Fused:
    """A worker that is interrupted after some units, and remembers what it did."""

    fuse: int
    done: list = dataclasses.field(default_factory=list)

    def __call__(self, unit):
        if len(self.done) >= self.fuse:
            raise KeyboardInterrupt
        self.done.append(unit.key)
        return Worker(TINY, load)(unit)


def run(out, **options):
    options = {"protocol": TINY, "wanted": OURS, "loader": load, "missing": MISSING, **options}
    return compare_accuracy(out, **options)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("whole")
    return out, run(out, markdown=out / "docs" / "accuracy.md")


def test_everything_is_written(whole):
    out, found = whole
    assert found.outcome.failures == {}
    assert found.run["unfinished"] == []
    assert all(path.exists() for path in found.files)
    names = {path.name for path in out.iterdir()}
    grids = {"accuracy", "tests", "wins", "seconds", "numbers", "ablations", "options", "choices"}
    assert {f"{name}.csv" for name in grids} | {"accuracy-ranks.svg", "index.html"} <= names
    assert (out / "docs" / "accuracy-ranks.png").exists()
    assert "accuracy-ranks.png" in (out / "docs" / "accuracy.md").read_text()
    assert json.loads((out / "tables.json").read_text()) == json.loads(json.dumps(found.tables))
    header, *lines = (out / "scores.csv").read_text().splitlines()
    assert header.startswith("dataset,method,split,accuracy")
    assert len(lines) == sum("accuracy" in r for r in found.outcome.results.values())


def test_tables_are_complete(whole):
    _, found = whole
    assert found.tables["datasets"] == list(HERE)
    local = found.tables["accuracy"][0]
    assert {name: cell["n"] for name, cell in local["cells"].items()} == dict.fromkeys(HERE, 2)
    assert all(cost["numbers"] > 0 for cost in local["costs"].values())
    assert len(found.tables["choices"]["left_out"]) == len(HERE)


def test_an_interrupted_run_ends_with_the_accuracies_of_an_uninterrupted_one(whole, tmp_path):
    _, found = whole
    total = found.run["planned"]
    first, second = Fused(total // 3), Fused(total)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, work=first)
    half = run(tmp_path, only_write=True, work=Fused(0))
    assert len(half.run["unfinished"]) == total - total // 3
    assert "Not finished" in (tmp_path / "report.md").read_text()
    again = run(tmp_path, work=second)
    assert not set(first.done) & set(second.done)
    assert again.tables["tests"] == found.tables["tests"]
    assert again.tables["choices"] == found.tables["choices"]


def test_a_finished_run_is_only_written_down_again(whole):
    out, found = whole
    again = run(out, work=Fused(0))
    assert again.tables == found.tables


def test_all_methods_of_a_set_see_the_same_division():
    dataset = load("auslan")
    train, test = divide(dataset, "auslan", 1, TINY.test_share)
    assert not set(train) & set(test)
    found = [Worker(TINY, load)(Unit(m, "auslan", (1,))) for m in ("local", "slts")]
    assert [(r["n_train"], r["n_test"]) for r in found] == [(len(train), len(test))] * 2


def test_the_fast_protocol_draws_few_training_series():
    fast = dataclasses.replace(FAST, most_train=12)
    found = Worker(fast, load)(Unit("local", "auslan"))
    assert found["n_train"] == 12
    assert {unit.splits for unit in plan(FAST, parse_only("local"))} == {(0,), (1,)}


def test_choices_stay_inside_the_training_part():
    dataset = load("japanese_vowels")
    hidden = np.arange(len(dataset.labels)) >= dataset.n_train

    class Watched:
        def __len__(self):
            return len(dataset.batch)

        def __getitem__(self, indices):
            assert not hidden[indices].any()
            return dataset.batch[indices]

    watched = dataclasses.replace(dataset, batch=Watched())
    found = Worker(TINY, lambda name: watched)(choice_unit("japanese_vowels", "local"))
    assert len(found["folds"]) == TINY.choice_folds * TINY.choice_repeats
    assert found["n_train"] == TINY.choice_series


# Numba warns while it compiles the peers, which it does once per machine.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["minirocket", "multirocket", "1nn-dtw"])
def test_peers_take_ragged_series(name, rng):
    pytest.importorskip("aeon")
    warm_up(name)
    y = np.arange(12) % 2
    X = as_series([rng.normal(size=(2, 10 + k)) + 3.0 * (k % 2) for k in range(12)])
    maker = MAKERS[BY_NAME[name].maker]
    train, test = maker.prepare(X[:8], X[8:])
    model = maker.model({}, 0).fit(train, y[:8])
    assert model.predict(test).tolist() == y[8:].tolist()
    assert maker.size(model) >= 2 * sum(10 + k for k in range(8))


def test_series_are_padded_to_the_longest_of_both_parts(rng):
    short, long = as_series([rng.normal(size=(2, 4))]), as_series([rng.normal(size=(2, 7))])
    train, test = MAKERS["minirocket"].prepare(short, long)
    assert train.shape == test.shape == (1, 2, 7)
    assert (train[0, :, 4:] == 0).all()
    assert train[0, :, :4] == pytest.approx(short[0])
