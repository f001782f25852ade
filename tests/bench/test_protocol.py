import dataclasses

import pytest

from slts.bench import FAST, FULL, parse_only
from slts.bench import methods as table
from slts.bench.methods import BY_NAME, CANDIDATES, METHODS, Method, unavailable
from slts.bench.protocol import is_choice, method_of, plan

ALL = parse_only(None)


def units_of(method, dataset, protocol=FULL):
    found = plan(protocol, ALL)
    return [u for u in found if u.kind == method and u.dataset == dataset]


def test_no_two_units_share_a_key_and_every_kind_has_a_digest():
    for protocol in (FULL, FAST):
        units = plan(protocol, ALL)
        assert len({unit.key for unit in units}) == len(units)
        assert {unit.kind for unit in units} <= protocol.digests.keys()


def test_keys_are_stable():
    # Results are found again by these names: a change orphans what users have computed.
    keys = {unit.key for unit in plan(FULL, ALL)}
    assert {"local/auslan/9", "choice:local/auslan/0", "1nn-dtw/robot_lp1/3"} <= keys


def test_splits_are_fewer_where_the_protocol_says_so():
    assert len(units_of("local", "auslan")) == 10
    assert len(units_of("local", "arabic_digits")) == 3
    assert len(units_of("multirocket", "arabic_digits")) == 1
    assert len(units_of("phases-3", "arabic_digits")) == 1
    assert len(units_of("local", "arabic_digits", dataclasses.replace(FULL, n_splits=2))) == 2


def test_a_method_without_chance_runs_once_on_a_given_division():
    assert len(units_of("1nn-dtw", "japanese_vowels")) == 1
    assert len(units_of("1nn-dtw", "robot_lp1")) == 10


def test_what_says_most_comes_first():
    units = sorted(plan(FULL, ALL), key=lambda unit: unit.rank)
    order = [unit.kind for unit in units]
    assert set(order[:136]) == {"local", "minirocket"}
    assert max(k for k, kind in enumerate(order) if kind == "slts") < order.index("phases-3")
    assert units[-1].kind.startswith("slts-")


def test_only_names_data_sets_methods_and_groups():
    assert parse_only("Auslan").methods == tuple(BY_NAME)
    assert parse_only("auslan").choices
    found = parse_only("robot_lp1, local,option")
    assert found.datasets == ("robot_lp1",)
    assert found.methods == (
        "local",
        *(method.name for method in METHODS if method.group == "option"),
    )
    assert not found.choices
    only_choices = plan(FULL, parse_only("choices"))
    assert all(is_choice(unit) for unit in only_choices)
    assert len(only_choices) == 8 * len(CANDIDATES)
    assert {method_of(unit).name for unit in only_choices} == set(CANDIDATES)
    for wrong in ("rocket", "", "auslan;local"):
        with pytest.raises(ValueError, match="minirocket"):
            parse_only(wrong)


def test_absent_data_sets_and_methods_are_left_out():
    units = plan(FULL, ALL, {"auslan", "minirocket"})
    assert not [unit for unit in units if "auslan" in unit.key or "minirocket" in unit.key]


def test_a_changed_parameter_makes_stale_only_what_depends_on_it(monkeypatch):
    before = FULL.digests
    changed = [
        dataclasses.replace(m, parameters=(("n_phases", 4),)) if m.name == "phases-3" else m
        for m in METHODS
    ]
    monkeypatch.setattr("slts.bench.protocol.METHODS", tuple(changed))
    stale = {kind for kind, digest in FULL.digests.items() if before[kind] != digest}
    assert stale == {"phases-3", "choice:phases-3"}
    assert dataclasses.replace(FULL, n_splits=3).digests == FULL.digests


def test_parameters_that_a_classifier_lacks_are_told():
    future = Method("future", "Future", "option", "slts", (("warp", 9),))
    assert unavailable([future]) == {"future": "no such parameter: warp"}
    assert not unavailable([m for m in METHODS if m.maker == "local"])


def test_a_missing_package_is_told(monkeypatch):
    monkeypatch.setattr(table.importlib.util, "find_spec", lambda name: None)
    assert "slts[bench]" in unavailable([BY_NAME["minirocket"]])["minirocket"]
