"""How many splits of what, as data, and the units of work it comes to."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from slts.bench.methods import BY_NAME, CANDIDATES, GROUPS, METHODS, Method
from slts.study.paper import TABLE_1
from slts.study.protocol import Unit, digest_of, is_divided

# Raise the one of a maker when it comes to give other results: what was kept is done again.
_VERSIONS = {"local": 1, "slts": 1, "minirocket": 1, "multirocket": 1, "1nn-dtw": 1}
# Units that choose among configurations inside training parts.
CHOICES = "choices"
_CHOICE = "choice:"


@dataclass(frozen=True)
class Protocol:
    """Everything that decides a result besides data, method and split.

    Parameters
    ----------
    name
        "full" or "fast".
    n_splits
        Divisions into training and test part; where the division is given, seeds.
    fewer_splits
        (data set, method or group, splits) where a split costs much; the first match counts.
    test_share
        Share of the series to test on, where the division is random.
    most_train
        With more training series, a stratified draw of so many; None takes all.
    choice_folds, choice_repeats
        Cross-validation inside the training part of the first split.
    choice_series
        With more training series, it is done on a stratified draw of so many.
    datasets
        Names of the data sets, in the order of the tables.
    """

    name: str = "full"
    n_splits: int = 10
    fewer_splits: tuple[tuple[str, str, int], ...] = (
        ("arabic_digits", "local", 3),
        ("arabic_digits", "minirocket", 3),
        ("arabic_digits", "slts", 3),
        ("arabic_digits", "main", 1),
        ("arabic_digits", "ablation", 1),
        ("arabic_digits", "option", 1),
        ("auslan", "ablation", 5),
        ("auslan", "option", 5),
    )
    test_share: float = 0.3
    most_train: int | None = None
    choice_folds: int = 5
    choice_repeats: int = 2
    choice_series: int = 600
    datasets: tuple[str, ...] = tuple(TABLE_1)

    @property
    def digests(self) -> dict[str, str]:
        """By kind of unit, a short hash of all that its results depend on."""
        found = {}
        for method in METHODS:
            base = [_VERSIONS[method.maker], method.maker, method.parameters, self.test_share]
            found[method.name] = digest_of([*base, self.most_train])
            inner = [self.choice_folds, self.choice_repeats, self.choice_series]
            found[_CHOICE + method.name] = digest_of([*base, *inner])
        return found

    def splits_of(self, dataset: str, method: Method) -> int:
        """How many splits of a data set a method is run on."""
        if is_divided(dataset) and not method.chance:
            return 1
        for name, which, count in self.fewer_splits:
            if name == dataset and which in (method.name, method.group):
                return min(count, self.n_splits)
        return self.n_splits


FULL = Protocol()
FAST = replace(
    FULL,
    name="fast",
    n_splits=2,
    fewer_splits=(("arabic_digits", "main", 1), ("arabic_digits", "ablation", 1)),
    most_train=150,
    choice_folds=3,
    choice_repeats=1,
    choice_series=100,
)


@dataclass(frozen=True)
class Selection:
    """What of the comparison is wanted: data sets, methods, whether choices are checked."""

    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    choices: bool = True


def parse_only(only: str | None, protocol: Protocol = FULL) -> Selection:
    """What text such as "auslan,local,minirocket" asks for; all of it from None.

    Names of data sets restrict the data sets; names of methods and groups, and "choices", restrict
    the rest.

    Raises
    ------
    ValueError
        If there is no such name; the message lists them.
    """
    words = [] if only is None else [word.strip().lower() for word in only.split(",")]
    words = [word for word in words if word]
    known = (*protocol.datasets, *BY_NAME, *GROUPS, CHOICES)
    if (only is not None and not words) or any(word not in known for word in words):
        raise ValueError(
            f"The data sets are {', '.join(protocol.datasets)}; the methods {', '.join(BY_NAME)}; "
            f"their groups {', '.join(GROUPS)}; and there is {CHOICES}. Got {only!r} instead."
        )
    datasets = tuple(name for name in protocol.datasets if name in words) or protocol.datasets
    if all(word in protocol.datasets for word in words):
        return Selection(datasets, tuple(BY_NAME))
    methods = tuple(m.name for m in METHODS if m.name in words or m.group in words)
    return Selection(datasets, methods, CHOICES in words)


def is_choice(unit: Unit) -> bool:
    """Whether the unit is about choosing a configuration."""
    return unit.kind.startswith(_CHOICE)


def method_of(unit: Unit) -> Method:
    """The method that a unit runs."""
    return BY_NAME[unit.kind.removeprefix(_CHOICE)]


def choice_unit(dataset: str, method: str) -> Unit:
    """Cross-validation of a configuration inside a training part."""
    return Unit(_CHOICE + method, dataset)


# Rough seconds of one split, by maker and data set.
_COSTS = {
    ("local", "arabic_digits"): 45.0,
    ("local", "auslan"): 5.0,
    ("slts", "arabic_digits"): 20.0,
    ("slts", "auslan"): 12.0,
    ("minirocket", "arabic_digits"): 120.0,
    ("minirocket", "auslan"): 5.0,
    ("multirocket", "arabic_digits"): 400.0,
    ("multirocket", "auslan"): 15.0,
    ("1nn-dtw", "arabic_digits"): 500.0,
    ("1nn-dtw", "auslan"): 10.0,
}
# What comes first, so that a run that is stopped has said most: the methods side by side, then
# whatever is quick, then the rest.
_FIRST = {"local": 0, "minirocket": 0, "slts": 1, "1nn-dtw": 1}
_QUICK, _QUICK_COST = 2, 4.0
_RANKS = {"ablation": 3, "main": 3, CHOICES: 4, "option": 6}
_LARGE, _LARGE_COST, _HUGE_COST = 5, 40.0, 200.0


def _rank(group: str, maker: str, cost: float) -> int:
    if group == "main" and maker in _FIRST and cost < _HUGE_COST:
        return _FIRST[maker]
    if cost <= _QUICK_COST:
        return _QUICK
    return _LARGE if cost >= _LARGE_COST and group in ("main", "ablation") else _RANKS[group]


def plan(protocol: Protocol, wanted: Selection, absent: Collection[str] = ()) -> list[Unit]:
    """List the units of work; those that say most come first.

    Parameters
    ----------
    protocol
        How many splits of what.
    wanted
        Data sets and methods.
    absent
        Data sets and methods that are not on this machine.
    """
    units = []
    datasets = [name for name in wanted.datasets if name not in absent]
    for dataset in datasets:
        for name in wanted.methods:
            method = BY_NAME[name]
            if name in absent:
                continue
            cost = _COSTS.get((method.maker, dataset), 1.0)
            rank = _rank(method.group, method.maker, cost)
            units += [
                replace(Unit(name, dataset, (split,)), cost=cost, rank=rank)
                for split in range(protocol.splits_of(dataset, method))
            ]
        if wanted.choices:
            times = protocol.choice_folds * protocol.choice_repeats
            cost = times * min(3.0, _COSTS.get(("local", dataset), 0.3))
            rank = _rank(CHOICES, "local", cost)
            units += [
                replace(choice_unit(dataset, name), cost=cost, rank=rank) for name in CANDIDATES
            ]
    return units
