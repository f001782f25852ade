import ast
import dataclasses
from pathlib import Path

import pytest

import study
from study import methods as table
from study.methods import BY_NAME, CANDIDATES, METHODS, unavailable
from study.protocol import (
    ACCURACY_WORDS,
    FAST,
    FULL,
    PARTS,
    REPRODUCTION_WORDS,
    compared_datasets,
    parse_only,
    plan_accuracy,
    plan_reproduction,
    seed_of,
)
from study.runner import Unit

EVERYTHING = parse_only(None, ACCURACY_WORDS, compared_datasets(FULL))


def keys(protocol, only, absent=()):
    selection = parse_only(only, REPRODUCTION_WORDS)
    return [unit.key for unit in plan_reproduction(protocol, selection, absent)]


def splits(method, dataset, protocol=FULL):
    units = plan_accuracy(protocol, EVERYTHING)
    return len([u for u in units if (u.detail, u.dataset) == ((method,), dataset)
                and u.kind == "model"])  # fmt: skip


def test_keys_and_seeds_are_stable():
    # Results are found by these names: a change makes users compute them again.
    assert Unit("landmarks", "auslan", (3,), (25,)).key == "landmarks/auslan/3/25"
    assert Unit("similarity", "japanese_vowels", (0, 1)).key == "similarity/japanese_vowels/0,1"
    assert seed_of("division", "auslan", 0) == 1323951497
    found = {unit.key for unit in plan_accuracy(FULL, EVERYTHING)}
    assert {"model/auslan/9/local", "choice/auslan/0/local", "model/robot_lp1/3/1nn-dtw"} <= found


@pytest.mark.parametrize("protocol", [FULL, FAST])
def test_no_two_units_share_a_key(protocol):
    found = keys(protocol, None)
    assert len(found) == len(set(found))
    units = plan_accuracy(protocol, EVERYTHING)
    assert len({unit.key for unit in units}) == len(units)


def test_the_number_of_splits_does_not_change_digests():
    fewer = dataclasses.replace(FULL, n_splits=3)
    every = {unit: unit.digest for unit in plan_accuracy(FULL, EVERYTHING)}
    found = {unit: unit.digest for unit in plan_accuracy(fewer, EVERYTHING)}
    assert found.items() < every.items()
    assert set(keys(fewer, "figure2")) < set(keys(FULL, "figure2"))
    assert fewer.digest == FULL.digest


def changed_kinds(**fields):
    other = dataclasses.replace(FULL, **fields)
    selection = parse_only(None, REPRODUCTION_WORDS)
    every = plan_reproduction(FULL, selection) + plan_accuracy(FULL, EVERYTHING)
    again = [other.unit(unit.kind, unit.dataset, unit.splits, unit.detail) for unit in every]
    return {a.kind for a, b in zip(every, again, strict=True) if a.digest != b.digest}


def test_a_field_changes_the_digests_that_depend_on_it():
    assert changed_kinds(cs=(1.0,)) == {"similarity", "heldout"}
    assert changed_kinds(choice_folds=7) == {"choice"}
    assert FULL.digest != FAST.digest


def test_a_parameter_of_a_method_changes_its_digests(monkeypatch):
    unit, other = (
        FULL.unit("model", "auslan", (0,), (n,)) for n in ("no-snippets", "snippets-400")
    )
    changed = dataclasses.replace(BY_NAME["no-snippets"], parameters=(("n_snippets", 4),))
    monkeypatch.setitem(BY_NAME, "no-snippets", changed)
    assert FULL.unit("model", "auslan", (0,), ("no-snippets",)).digest != unit.digest
    assert FULL.unit("model", "auslan", (0,), ("snippets-400",)).digest == other.digest


def test_absent_data_sets_and_methods_are_left_out():
    found = keys(FULL, None, set(FULL.datasets) - {"auslan"})
    assert {key.split("/")[1] for key in found} == {"auslan"}
    units = plan_accuracy(FULL, EVERYTHING, {"auslan", "minirocket"})
    assert not [unit for unit in units if "auslan" in unit.key or "minirocket" in unit.key]


@pytest.mark.parametrize("wrong", ["table9", "", ",", "table2;table3"])
def test_unknown_names_are_an_error_that_lists_the_known_ones(wrong):
    with pytest.raises(ValueError, match=r"auslan.*table1, table2"):
        parse_only(wrong, REPRODUCTION_WORDS)


@pytest.mark.parametrize(("method", "dataset", "count"), [
    ("local", "auslan", 10), ("local", "arabic_digits", 3), ("multirocket", "arabic_digits", 1),
    ("no-snippets", "auslan", 5), ("local", "gun_point", 10),
    # A method without seed runs once on a published split.
    ("1nn-dtw", "japanese_vowels", 1), ("1nn-dtw", "gun_point", 1),
    ("1nn-dtw", "robot_lp1", 10),
])  # fmt: skip
def test_expensive_data_sets_and_methods_without_seed_have_fewer_splits(method, dataset, count):
    assert splits(method, dataset) == count
    assert splits(method, dataset, dataclasses.replace(FULL, n_splits=2)) == min(count, 2)


@pytest.mark.parametrize(("part", "needed", "others"), [
    ("figure1", {"path/japanese_vowels/0"}, set()),
    ("table2",
     {"landmarks/auslan/0/100", "heldout/auslan/0/methods", "similarity/arabic_digits/0,1,2"},
     {"landmarks/auslan/0/10", "heldout/japanese_vowels/0/methods"}),
    ("tests", {"landmarks/auslan/0/10"}, set()),
    ("table4", {"heldout/robot_lp1/0/selection"}, {"landmarks/auslan/0/100"}),
])  # fmt: skip
def test_parts_need_what_they_show(part, needed, others):
    assert needed <= set(keys(FULL, part))
    assert not others & set(keys(FULL, part))


@pytest.mark.parametrize(("only", "words", "datasets", "parts"), [
    (None, REPRODUCTION_WORDS, FULL.datasets, PARTS),
    (" Figure2, table2,AUSLAN", REPRODUCTION_WORDS, ("auslan",), ("table2", "figure2")),
    ("robot_lp1, local,option", ACCURACY_WORDS, ("robot_lp1",),
     ("local", *(method.name for method in METHODS if method.group == "option"))),
])  # fmt: skip
def test_only_names_data_sets_and_parts(only, words, datasets, parts):
    found = parse_only(only, words)
    assert (found.datasets, found.parts) == (datasets, parts)
    assert "choices" in parse_only("auslan", ACCURACY_WORDS).parts


def test_choices_are_made_on_series_of_several_channels():
    units = plan_accuracy(FULL, parse_only("choices", ACCURACY_WORDS))
    assert ({unit.kind for unit in units}, len(units)) == ({"choice"}, 8 * len(CANDIDATES))
    units = [unit for unit in plan_accuracy(FULL, EVERYTHING) if unit.dataset == "gun_point"]
    assert {BY_NAME[unit.detail[0]].group for unit in units} == {"main", "ablation"}


def test_made_up_families_are_selected_by_one_name():
    known = compared_datasets(FULL)
    units = plan_accuracy(FULL, parse_only("cues,local", ACCURACY_WORDS, known))
    assert ({unit.kind for unit in units}, len(units)) == ({"cue"}, 9 * 2 * FULL.cue_seeds)
    assert "cue/motif-400/4/local" in {unit.key for unit in units}
    units = plan_accuracy(FULL, parse_only("auslan", ACCURACY_WORDS, known))
    assert {unit.dataset for unit in units} == {"auslan"}


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(table.importlib.util, "find_spec", lambda name: None)
    peers = {"minirocket", "multirocket", "multirocket-hydra", "quant", "rdst", "1nn-dtw"}
    assert set(unavailable()) == peers
    assert "slts[study]" in unavailable()["minirocket"]
    only_torch = {"torch": None}
    monkeypatch.setattr(table.importlib.util, "find_spec", lambda name: only_torch.get(name, name))
    assert set(unavailable()) == {"multirocket-hydra", "quant"}
    assert unavailable()["quant"] == 'torch not installed: pip install "slts[study-torch]"'


def sources():
    return sorted(Path(study.__file__).parent.glob("*.py"))


def test_the_study_uses_public_names_of_slts_only_and_has_a_map():
    assert all(path.name in study.__doc__ for path in sources() if path.name != "__init__.py")
    for path in sources():
        if path.name in ("bounds.py", "originals.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("slts"):
                assert node.module == "slts.plots", path
            if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
                owner = node.value
                dunder = node.attr.startswith("__") or node.attr == "_asdict"
                own = isinstance(owner, ast.Name) and owner.id in ("self", "os")
                assert dunder or own, f"{path}: {node.attr}"
