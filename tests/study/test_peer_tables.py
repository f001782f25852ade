import pytest

from study.figures import joined
from study.markdown import Grid, to_markdown
from study.methods import CANDIDATES
from study.peer_document import build
from study.peer_tables import collect, pairs
from study.protocol import ACCURACY_WORDS, FULL, compared_datasets, parse_only
from study.statistics import Scores

LEVELS = {"local": 90.0, "minirocket": 89.0, "1nn-dtw": 80.0, "slts": 85.0, "snippets-400": 91.0}
SETS = ("japanese_vowels", "auslan", "robot_lp1")
EVERYTHING = parse_only(None, ACCURACY_WORDS, compared_datasets(FULL))
GRIDS = {
    "n_splits": 3, "fewer_splits": [["auslan", "main", 2], ["auslan", "ldmlt", 2]],
    "most_train": None, "choice_folds": 2, "choice_repeats": 1, "choice_series": 9,
    "cue_seeds": 2, "cue_test": 20,
}  # fmt: skip
RUN = {
    "version": "1", "aeon": "1.6", "date": "2020-01-01", "command": "python -m study accuracy",
    "protocol": "tiny", "digest": "0", "grids": GRIDS, "n_splits": 3, "units": 9, "planned": 12,
    "cpu_minutes": 1.0, "machine": "none", "wall": "",
    "missing": {"auslan": "not here", "multirocket": "no aeon"},
    "failures": {"model/auslan/0/slts": "ValueError: wrong"},
    "unfinished": ["model/auslan/7/local", "model/auslan/8/local"],
}  # fmt: skip


def score(method, dataset, split, accuracy):
    return {
        "method": method, "dataset": dataset, "split": split, "accuracy": accuracy,
        "heldout": False, "n_train": 20, "fit_seconds": 2.0, "predict_seconds": 1.0,
        "numbers": 1000,
    }  # fmt: skip


def with_probabilities(found, split):
    return found | {"ece": 0.01 * (split + 1), "log_loss": 0.2, "brier": 0.1}


def made_up():
    """Three splits, fewer of some; the method without seed once on the published split."""
    results = {}
    for dataset in SETS:
        for method, level in LEVELS.items():
            n = 1 if method == "1nn-dtw" and dataset == "japanese_vowels" else 3
            n = 2 if method == "snippets-400" else n
            for split in range(n):
                accuracy = level + split
                if dataset == "robot_lp1" and method == "minirocket":
                    accuracy = 95.0 + split**2
                key = f"model/{dataset}/{split}/{method}"
                found = score(method, dataset, split, accuracy)
                if method in ("local", "snippets-400"):
                    found = with_probabilities(found, split)
                results[key] = {"scores": [found]}
        for k, name in enumerate(CANDIDATES):
            best = {"japanese_vowels": 0, "auslan": 3, "robot_lp1": 3}[dataset]
            folds = [70.0 - abs(k - best), 72.0 - abs(k - best)]
            choice = {"method": name, "dataset": dataset, "folds": folds}
            results[f"choice/{dataset}/0/{name}"] = {"choice": choice}
    return results


@pytest.fixture(scope="module")
def tables():
    return collect(made_up(), FULL, EVERYTHING)


def row(tables, table, method):
    return next(one for one in tables[table] if one["method"] == method)


def test_accuracy_is_the_mean_over_splits_then_over_data_sets(tables):
    found = row(tables, "accuracy", "local")
    assert found["cells"]["auslan"]["mean"] == pytest.approx(91.0)
    assert found["cells"]["auslan"]["interval"] == pytest.approx(2.484, abs=1e-3)
    assert found["mean"] == pytest.approx(91.0)
    costs = tables["costs"]["local"]["auslan"]
    assert costs == {"fit": 2.0, "predict": 1.0, "numbers": 1000.0}


def test_probabilities_are_scored_where_a_method_has_them(tables):
    found = tables["probabilities"]
    assert set(found) == {"local", "snippets-400"}
    assert found["local"]["auslan"] == pytest.approx({"ece": 0.02, "log_loss": 0.2, "brier": 0.1})
    text = to_markdown(build(tables, RUN, []))
    section = text.partition("## Probabilities")[2].partition("\n## ")[0]
    assert "Calibration error (ECE)" in section
    assert "| LocalSLTS | 0.020 |" in section
    # One row in each of three tables: ablations are not listed.
    assert section.count("\n| LocalSLTS") == section.count("\n| --- ") == 3


def test_methods_are_compared_on_shared_splits(tables):
    found = row(tables, "tests", "snippets-400")
    assert found["cells"]["auslan"] == {"difference": -1.0, "p": 0.0, "n": 2}
    assert found["record"] == [0, 0, 3]
    # One run of a method without seed stands for all splits.
    cell = row(tables, "tests", "1nn-dtw")["cells"]["japanese_vowels"]
    assert (cell["n"], cell["difference"]) == (3, pytest.approx(11.0))
    assert 0 < cell["p"] < 0.01
    wins = {one["method"]: one["records"] for one in tables["wins"]}
    assert wins["local"] == wins["local"] | {"minirocket": [2, 0, 1], "local": [0, 3, 0]}
    assert wins["minirocket"]["local"] == [1, 0, 2]
    assert set(tables["ranks"]["ranks"]) == {"local", "minirocket", "slts", "1nn-dtw"}
    assert tables["ranks"]["ranks"]["local"] == pytest.approx(4 / 3)


def test_two_methods_without_a_shared_split_are_not_compared():
    units = [score("local", "auslan", 0, 90.0), score("slts", "auslan", 1, 80.0)]
    scores = Scores([{"scores": units}], 3)
    assert pairs(scores, "local", "slts", "auslan") == ([], [])
    assert pairs(scores, "local", "1nn-dtw", "japanese_vowels") == ([], [])


def test_choices_leave_one_data_set_out(tables):
    found = {one["dataset"]: one for one in tables["choices"]["left_out"]}
    assert found["japanese_vowels"]["choice"] == CANDIDATES[3]
    assert found["japanese_vowels"]["behind"] == pytest.approx(3.0)
    assert found["japanese_vowels"]["error"] == pytest.approx(0.0)
    assert found["japanese_vowels"]["rank"] == len(CANDIDATES)
    # Candidates 0 to 3 are equally good on the other two: the default is kept.
    assert (found["auslan"]["choice"], found["auslan"]["behind"]) == ("local", 0.0)
    assert found["auslan"]["test"] == pytest.approx(0.0)
    assert tables["choices"]["means"]["local"] == pytest.approx(69.0)


def test_what_is_incomplete_or_not_selected_does_not_show():
    results = {key: value for key, value in made_up().items() if key.startswith("choice/auslan")}
    assert collect(results, FULL, EVERYTHING)["choices"] == {}
    found = collect(made_up(), FULL, parse_only("auslan,local,slts", ACCURACY_WORDS))
    assert found["datasets"] == ["auslan"]
    assert [one["method"] for one in found["accuracy"]] == ["local", "slts"]
    found = collect(results, FULL, parse_only("choices", ACCURACY_WORDS))
    assert found["choices"] == {}
    found = collect({}, FULL, EVERYTHING)
    assert not [block for block in build(found, RUN, []) if isinstance(block, Grid)]


@pytest.mark.parametrize("text", [
    "| LocalSLTS | 91.0±2.5 | 91.0±2.5 | 91.0±2.5 | 91.00 | 1.33 |",
    "| 1NN-DTW | 80.0 (1) | 81.0±2.5 |", "- Against MiniRocket: LP1 by 5.7 (p = ",
    "| 400 snippets | +1.0\\* | +1.0\\* | +1.0\\* | +1.0 | 0.250 | 1.0x |",
    "Not finished, 2 units: model/auslan/local (2).",
    "model/auslan/0/slts failed: ValueError: wrong.", "MultiRocket: no aeon.",
    "| Japanese vowels | 400 snippets | 71.00 | 68.00 | 3.00 ± 0.00 |",
    "Auslan is expensive and has fewer splits: other methods 2.",
    "![Mean ranks over the data sets](accuracy-ranks.png)",
])  # fmt: skip
def test_the_document_says_what_was_found_and_what_is_missing(text, tables):
    assert text in to_markdown(build(tables, RUN, ["accuracy-ranks"]))


def test_data_sets_with_one_channel_have_ranks_and_tests_of_their_own():
    results = made_up()
    for split in range(3):
        for method, level in (("local", 80.0), ("minirocket", 81.0)):
            scored = score(method, "gun_point", split, level + split)
            results[f"model/gun_point/{split}/{method}"] = {"scores": [scored]}
    found = collect(results, FULL, EVERYTHING)
    assert found["datasets"] == list(SETS)
    single = found["univariate"]
    assert single["datasets"] == ["gun_point"]
    assert single["ranks"]["ranks"] == {"local": 2.0, "minirocket": 1.0}
    assert row(single, "tests", "minirocket")["difference"] == pytest.approx(-1.0)
    text = to_markdown(build(found, RUN, []))
    assert "## One channel: 1 data sets" in text
    assert "| LocalSLTS | 81.0±2.5 | 81.00 | 2.00 |" in text
    assert "- Against MiniRocket: GunPoint by 1.0 (p < 0.001, significant)." in text


def test_made_up_families_show_which_method_finds_which_cue():
    accuracies = {
        "level-40": {"local": 90.0, "slts": 89.0, "1nn-dtw": 70.0, "minirocket": 60.0},
        "level-400": {"local": 95.0, "slts": 80.0, "1nn-dtw": 70.0, "minirocket": 60.0},
        "tempo-40": {"local": 80.0, "slts": 50.0, "1nn-dtw": 50.0, "minirocket": 97.0},
    }
    results = {
        f"cue/{name}/{seed}/{method}": {"scores": [score(method, name, seed, value + seed)]}
        for name, values in accuracies.items()
        for method, value in values.items()
        for seed in (0, 1)
    }
    found = collect(results, FULL, EVERYTHING)
    assert found["datasets"] == []
    assert [one["cue"] for one in found["cues"]["rows"]] == ["level", "tempo"]
    text = to_markdown(build(found, RUN, []))
    assert "| level | mean of one of ten channels | 90.5 | 89.5 | 70.5 | 60.5 | 95.5 |" in text
    assert "| 97.5 | - | - | - | - |" in text
    assert (
        "- With 40 training series, best or less than 2 points below: LocalSLTS on 1 of 2 (level); "
        "SLTS (paper) on 1 of 2 (level); 1NN-DTW on 0 of 2; MiniRocket on 1 of 2 (tempo)." in text
    )


def test_bars_join_the_longest_runs():
    assert (joined([1.0, 2.0, 3.0], 5.0), joined([1.0, 3.0, 5.0], 1.0)) == ([(0, 2)], [])
    assert joined([1.0, 1.5, 2.2, 4.0, 4.5], 1.0) == [(0, 1), (1, 2), (3, 4)]
