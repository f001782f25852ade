import dataclasses

import pytest

from slts.study import FAST, FULL, PARTS, parse_parts
from slts.study.paper import COLUMNS, METHODS, TABLE_2, WEIGHTS
from slts.study.protocol import Unit, plan, seed_of


def keys(protocol, parts, available=FULL.datasets):
    return [unit.key for unit in plan(protocol, available, parts)]


def test_keys_and_seeds_are_stable():
    # Results are found again by these names: a change orphans what users have computed.
    assert Unit("landmarks", "auslan", (3,), (25,)).key == "landmarks/auslan/3/25"
    assert Unit("similarity", "japanese_vowels", (0, 1)).key == "similarity/japanese_vowels/0,1"
    assert seed_of("division", "auslan", 0) == 1323951497


def test_no_two_units_share_a_key():
    found = keys(FULL, PARTS)
    assert len(found) == len(set(found))


def test_the_number_of_splits_does_not_make_results_stale():
    assert dataclasses.replace(FULL, n_splits=3).digests == FULL.digests
    assert set(keys(dataclasses.replace(FULL, n_splits=3), ["figure2"])) < set(
        keys(FULL, ["figure2"])
    )


def test_a_grid_makes_stale_what_depends_on_it():
    changed = dataclasses.replace(FULL, cs=(1.0,)).digests
    stale = [kind for kind in changed if changed[kind] != FULL.digests[kind]]
    assert stale == ["similarity", "aside"]
    assert FULL.digest != FAST.digest


def test_parts_need_what_they_show():
    assert keys(FULL, ["figure1"]) == []
    assert {key.split("/")[0] for key in keys(FULL, ["table1"])} == {"facts"}
    assert len(keys(FULL, ["figure3"])) == 10
    table2 = keys(FULL, ["table2"])
    assert "landmarks/auslan/0/100" in table2
    assert "landmarks/auslan/0/10" not in table2
    assert "landmarks/auslan/0/10" in keys(FULL, ["tests"])
    assert {key.split("/")[1] for key in keys(FULL, ["table4"])} == {"robot_lp1"}
    assert "aside/robot_lp1/0/selection" in keys(FULL, ["table4"])
    assert "aside/auslan/0/methods" in table2
    assert not [key for key in table2 if key.startswith("aside/japanese_vowels")]


def test_without_a_data_set_its_units_are_left_out():
    found = keys(FULL, PARTS, available=["japanese_vowels"])
    assert found
    assert all(key.split("/")[1] == "japanese_vowels" for key in found)


def test_only_is_parsed():
    assert parse_parts(None) == PARTS
    assert parse_parts(" Figure2, table2") == ("table2", "figure2")
    for wrong in ("table9", "", "table2;table3"):
        with pytest.raises(ValueError, match="table1, table2"):
            parse_parts(wrong)


def test_the_papers_average_is_nearly_the_weighted_mean():
    for method in METHODS:
        total = sum(WEIGHTS[c] * TABLE_2[method][c].mean for c in COLUMNS) / sum(WEIGHTS.values())
        assert total == pytest.approx(TABLE_2[method]["average"].mean, abs=0.6)
