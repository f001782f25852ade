"""The paper's protocol as data: what is varied, and the units of work it comes to."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from slts.study.paper import SHARES, TABLE_1

# What the results of each kind of unit depend on, besides the data and the name of the unit.
_FIELDS = {
    "facts": (),
    "landmarks": ("gammas", "lams", "shares", "test_share", "tuning_share"),
    "selection": ("gammas", "lams", "shares", "test_share", "tuning_share"),
    "pca": ("gammas", "lams", "pca_landmarks", "tuning_share"),
    "similarity": ("cs", "svm_columns", "svm_rank", "test_share", "tuning_share"),
    "ldmlt": ("ldmlt_cycles", "ldmlt_ranking", "test_share"),
    "aside": (
        "gammas", "lams", "cs", "shares", "counts", "ldmlt_cycles", "ldmlt_ranking", "test_share",
        "tuning_share",
    ),
}  # fmt: skip
# Raise one when units of the kind come to mean something else, or a method gives other results:
# what was kept of them is then stale and done again.
_VERSIONS = dict.fromkeys(_FIELDS, 1) | {"similarity": 2}

PARTS = (
    "table1", "table2", "table3", "table4", "figure1", "figure2", "figure3", "tests",
)  # fmt: skip

# Data set of the tables on choosing landmarks.
SELECTION_TABLES = {"table3": "japanese_vowels", "table4": "robot_lp1"}
PCA_DATASET = "japanese_vowels"


def digest_of(content: object) -> str:
    """Short hash of plain data."""
    text = json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Protocol:
    """Everything that decides a result besides data and split.

    Parameters
    ----------
    name
        "full" or "fast".
    n_splits
        Divisions into training and test part, or draws of landmarks and of the tuning part where
        the division is given.
    gammas, lams, cs
        The grids of the margin, of the penalty of the metric, of the penalty of the SVM.
    test_share, tuning_share
        Share of the series to test on where the division is random; share of the training series
        that parameters are chosen on.
    shares
        Numbers of landmarks, as shares of the training set.
    counts
        (data set, numbers of landmarks) where shares do not apply; these are the large sets.
    pca_landmarks
        Landmarks of Figure 3.
    svm_columns
        With more training series, similarities to this many random ones only; None takes all.
    svm_rank
        With more training series, their similarities are projected on this many singular vectors.
    svm_splits, ldmlt_splits
        (data set, number of splits) where fewer are run than `n_splits`.
    ldmlt_cycles, ldmlt_ranking
        Cycles of LDMLT, and how many series a cycle ranks.
    datasets
        Names of the data sets, in the order of Table 1.
    """

    name: str = "full"
    n_splits: int = 10
    gammas: tuple[float, ...] = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
    lams: tuple[float, ...] = (0.1, 1.0, 10.0)
    cs: tuple[float, ...] = tuple(2.0**k for k in range(-6, 10))
    test_share: float = 0.3
    tuning_share: float = 0.3
    shares: tuple[float, ...] = SHARES
    counts: tuple[tuple[str, tuple[int, ...]], ...] = (
        ("auslan", (10, 25, 50, 75, 100)),
        ("arabic_digits", (10, 20, 30, 50, 75, 100)),
    )
    pca_landmarks: int = 10
    svm_columns: int | None = None
    svm_rank: int = 500
    svm_splits: tuple[tuple[str, int], ...] = (("arabic_digits", 3),)
    ldmlt_splits: tuple[tuple[str, int], ...] = (("arabic_digits", 3),)
    ldmlt_cycles: int = 8
    ldmlt_ranking: int = 1500
    datasets: tuple[str, ...] = tuple(TABLE_1)

    @property
    def digests(self) -> dict[str, str]:
        """By kind of unit, a short hash of all that its results depend on."""
        return {
            kind: digest_of([_VERSIONS[kind], *(getattr(self, name) for name in names)])
            for kind, names in _FIELDS.items()
        }

    @property
    def digest(self) -> str:
        """Short hash of all that results depend on; the number of splits is not among it."""
        return digest_of([self.digests, self.counts])

    def counts_of(self, dataset: str) -> tuple[int, ...] | None:
        """Numbers of landmarks of a large set; None where `shares` apply."""
        return dict(self.counts).get(dataset)


FULL = Protocol()
FAST = dataclasses.replace(
    FULL,
    name="fast",
    n_splits=2,
    gammas=(1e-3, 1e-2),
    lams=(0.1,),
    cs=(0.125, 1.0, 8.0),
    shares=(0.03, 0.10, 0.50),
    counts=(("auslan", (10, 50)), ("arabic_digits", (10, 50))),
    svm_columns=400,
    svm_splits=(("arabic_digits", 1),),
    ldmlt_splits=(("arabic_digits", 1),),
    ldmlt_cycles=2,
    ldmlt_ranking=300,
)


@dataclass(frozen=True)
class Unit:
    """One piece of work: it runs in one process, and its result is kept or lost as a whole.

    Parameters
    ----------
    kind
        "facts", "landmarks", "selection", "similarity", "ldmlt", "pca" or "aside".
    dataset
        Name of the data set.
    splits
        The splits it covers.
    detail
        Numbers of landmarks, or ways of choosing them; empty where there is no choice.
    cost
        Rough seconds, to run the largest first and to tell the time left.
    rank
        Units of a lower rank come first, whatever their cost.
    """

    kind: str
    dataset: str
    splits: tuple[int, ...] = (0,)
    detail: tuple[int | str, ...] = ()
    cost: float = dataclasses.field(default=1.0, compare=False)
    rank: int = dataclasses.field(default=0, compare=False)

    @property
    def key(self) -> str:
        """Name of the unit in the file of results."""
        splits = ",".join(map(str, self.splits))
        detail = ",".join(map(str, self.detail))
        return "/".join(filter(None, [self.kind, self.dataset, splits, detail]))


def seed_of(*names: object) -> int:
    """Seed that depends on nothing but the names.

    Examples
    --------
    >>> from slts.study.protocol import seed_of
    >>> seed_of("auslan", 3) == seed_of("auslan", 3)
    True
    """
    return zlib.crc32("/".join(map(str, names)).encode()) % (2**31 - 1)


# Rough seconds of one unit of the full protocol.
_COSTS = {
    ("landmarks", "japanese_vowels"): 30.0,
    ("landmarks", "auslan"): 30.0,
    ("landmarks", "arabic_digits"): 50.0,
    ("selection", "japanese_vowels"): 25.0,
    ("similarity", "arabic_digits"): 180.0,
    ("similarity", "auslan"): 5.0,
    ("ldmlt", "arabic_digits"): 110.0,
    ("ldmlt", "auslan"): 25.0,
    ("ldmlt", "japanese_vowels"): 10.0,
    ("aside", "auslan"): 25.0,
}
_SMALL_COSTS = {"facts": 0.1, "similarity": 0.2, "landmarks": 6.0, "ldmlt": 3.0, "aside": 4.0}
# What the grids of the fast protocol save.
_FAST_COST = 0.15


def plan(
    protocol: Protocol, available: Collection[str], parts: Sequence[str] = PARTS
) -> list[Unit]:
    """List the units of work that the given parts of the study need.

    Parameters
    ----------
    protocol
        What is varied.
    available
        Data sets on this machine.
    parts
        Some of `PARTS`.

    Returns
    -------
    list of Unit
        Without repetition, in an order that depends on nothing else.
    """
    wanted: list[Unit] = []
    for name in protocol.datasets:
        if name not in available:
            continue
        for part in parts:
            wanted += _units_of(protocol, name, part)
    scale = _FAST_COST if protocol.name == "fast" else 1.0
    return [dataclasses.replace(unit, cost=scale * _cost(unit)) for unit in dict.fromkeys(wanted)]


def _cost(unit: Unit) -> float:
    cost = _COSTS.get((unit.kind, unit.dataset), _SMALL_COSTS.get(unit.kind, 2.0))
    count = unit.detail[0] if unit.detail else None
    return cost * (0.4 + 0.006 * count) if isinstance(count, int) else cost


def _units_of(protocol: Protocol, name: str, part: str) -> list[Unit]:
    if part == "table1":
        return [Unit("facts", name)]
    if part in ("table2", "tests"):
        units = _similarity(protocol, name) + _ldmlt(protocol, name)
        if part == "table2":
            units += _aside(protocol, name, "methods")
        return units + _landmarks(protocol, name, every=part == "tests")
    if part == "figure2":
        return _landmarks(protocol, name, every=True)
    if part == "figure3" and name == PCA_DATASET:
        return [Unit("pca", name, (split,)) for split in range(protocol.n_splits)]
    if SELECTION_TABLES.get(part) == name:
        # Random landmarks are those of Figure 2.
        chosen = [
            Unit("selection", name, (split,), (method,))
            for method in ("dselect", "kmedoids")
            for split in range(protocol.n_splits)
        ]
        other = _aside(protocol, name, "selection")
        return chosen + other + _landmarks(protocol, name, every=True)
    return []


def _aside(protocol: Protocol, name: str, what: str) -> list[Unit]:
    """Sets with a random division once more, the tuning part kept aside for good."""
    if is_divided(name):
        return []
    return [Unit("aside", name, (split,), (what,)) for split in range(protocol.n_splits)]


def _landmarks(protocol: Protocol, name: str, *, every: bool) -> list[Unit]:
    """One unit per split; of a large set one per split and number of landmarks."""
    counts = protocol.counts_of(name)
    if counts is None:
        return [Unit("landmarks", name, (split,)) for split in range(protocol.n_splits)]
    chosen = counts if every else (max(counts),)
    return [
        Unit("landmarks", name, (split,), (count,))
        for count in chosen
        for split in range(protocol.n_splits)
    ]


def _similarity(protocol: Protocol, name: str) -> list[Unit]:
    """1NN and SVM; with a given division all splits share one matrix, so they are one unit."""
    n_splits = min(protocol.n_splits, dict(protocol.svm_splits).get(name, protocol.n_splits))
    if is_divided(name):
        return [Unit("similarity", name, tuple(range(n_splits)))]
    return [Unit("similarity", name, (split,)) for split in range(n_splits)]


def _ldmlt(protocol: Protocol, name: str) -> list[Unit]:
    n_splits = min(protocol.n_splits, dict(protocol.ldmlt_splits).get(name, protocol.n_splits))
    return [Unit("ldmlt", name, (split,)) for split in range(n_splits)]


def is_divided(name: str) -> bool:
    """Whether the set comes divided into training and test part."""
    return name in ("japanese_vowels", "arabic_digits")
