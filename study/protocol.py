"""The protocol of both studies: what is varied, and the units of work that follow from it."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from study.cues import CUES
from study.methods import (
    ADAPTERS,
    BY_NAME,
    CANDIDATES,
    CENTRE,
    CHOICES,
    CUE_METHODS,
    GROUPS,
    METHODS,
    POOL_METHODS,
)
from study.paper import SHARES, TABLE_1, TITLES
from study.pool import POOL_SETS
from study.runner import Unit

# Tables and figures of the paper's study.
PARTS = ("table1", "table2", "table3", "table4", "figure1", "figure2", "figure3", "tests")
# The data sets of the tables on selecting landmarks, and of Figures 1 and 3.
SELECTION_TABLES = {"table3": "japanese_vowels", "table4": "robot_lp1"}
EXAMPLE = "japanese_vowels"
# Data sets with one channel that come with aeon, by their names there.
UNIVARIATE = {
    "acsf1": "ACSF1",
    "osu_leaf": "OSULeaf",
    "arrow_head": "ArrowHead",
    "gun_point": "GunPoint",
    "italy_power_demand": "ItalyPowerDemand",
}
# Stands for all data sets of `study.pool` among the data sets of a selection.
POOL = "pool"
DATASET_TITLES = {**TITLES, **UNIVARIATE, **{name: name for name in POOL_SETS}, POOL: "Pool"}
# Data sets with a published split into training and test set.
PRESPLIT = ("japanese_vowels", "arabic_digits", *UNIVARIATE, *POOL_SETS)
# Stands for all synthetic families among the data sets of a selection.
SYNTHETIC = "cues"

_SPLIT = ("test_share", "most_train")
_TUNED = (*_SPLIT, "tuning_share")
_GRIDS = ("gammas", "lams")
# By kind of unit, the fields of the protocol that its results depend on.
_DEPENDENCIES = {
    "facts": (),
    "path": (),
    "landmarks": (*_TUNED, *_GRIDS, "shares"),
    "selection": (*_TUNED, *_GRIDS, "shares"),
    "pca": (*_TUNED, *_GRIDS, "pca_landmarks"),
    "similarity": (*_TUNED, "cs", "svm_rank"),
    "ldmlt": (*_SPLIT, "ldmlt_cycles", "ldmlt_ranking"),
    "heldout": (*_TUNED, *_GRIDS, "cs", "shares", "counts", "ldmlt_cycles", "ldmlt_ranking"),
    "model": _SPLIT,
    "cue": (*_SPLIT, "cue_test"),
    "choice": (*_SPLIT, "choice_folds", "choice_repeats", "choice_series"),
}
# Raise a number when units of this kind change their meaning or a method gives other results:
# kept results are then computed again.
_VERSIONS = dict.fromkeys(_DEPENDENCIES, 1)

# Rough seconds of one unit of the full protocol: by data set, for the kinds that are expensive.
_SECONDS = {"arabic_digits": 60.0, "auslan": 10.0, "japanese_vowels": 5.0}
_CHEAP = ("facts", "path")


@dataclass(frozen=True)
class Protocol:
    """What results depend on, besides data, method and split.

    Parameters
    ----------
    name
        "full" or "fast".
    n_splits
        Number of splits into training and test set. On data sets with a published split: number
        of seeds.
    fewer_splits
        (data set, kind of unit, method or group, number of splits) where a split is expensive.
        The first match counts.
    datasets
        Names of the data sets, in the order of Table 1.
    univariate
        Names of the data sets with one channel, for the comparison.
    cue_sizes, cue_test, cue_seeds
        Synthetic families: numbers of training series, number of test series, and number of seeds.
    pool, pool_seeds
        Names of the data sets of the pool, and number of seeds of the centre. Others run once.
    test_share
        Share of the series in the test set, where the split is random.
    most_train
        Largest training set: larger ones are replaced by a stratified draw. None sets no limit.
    tuning_share
        Share of the training series in the tuning set, on which parameters are chosen.
    gammas, lams, cs
        Grids of the margin, of the penalty of the metric and of the penalty of the SVM.
    shares
        Numbers of landmarks, as shares of the training set.
    counts
        (data set, numbers of landmarks) of the large data sets, instead of `shares`.
    pca_landmarks
        Number of landmarks of Figure 3.
    svm_rank
        With many training series, project the similarities on this many singular vectors.
    ldmlt_cycles, ldmlt_ranking
        Number of cycles of LDMLT, and of series that it ranks in each.
    choice_folds, choice_repeats
        Cross-validation of the configurations, inside the training set of the first split.
    choice_series
        Largest number of series in this cross-validation.
    """

    name: str = "full"
    n_splits: int = 10
    fewer_splits: tuple[tuple[str, str, int], ...] = (
        ("arabic_digits", "similarity", 3),
        ("arabic_digits", "ldmlt", 3),
        ("arabic_digits", "local", 3),
        ("arabic_digits", "minirocket", 3),
        ("arabic_digits", "slts", 3),
        ("arabic_digits", "main", 1),
        ("arabic_digits", "ablation", 1),
        ("arabic_digits", "option", 1),
        ("auslan", "ablation", 5),
        ("auslan", "option", 5),
    )
    datasets: tuple[str, ...] = tuple(TABLE_1)
    univariate: tuple[str, ...] = tuple(UNIVARIATE)
    cue_sizes: tuple[int, ...] = (40, 400)
    cue_test: int = 200
    cue_seeds: int = 5
    pool: tuple[str, ...] = POOL_SETS
    pool_seeds: int = 3
    test_share: float = 0.3
    most_train: int | None = None
    tuning_share: float = 0.3
    gammas: tuple[float, ...] = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
    lams: tuple[float, ...] = (0.1, 1.0, 10.0)
    cs: tuple[float, ...] = tuple(2.0**k for k in range(-6, 10))
    shares: tuple[float, ...] = SHARES
    counts: tuple[tuple[str, tuple[int, ...]], ...] = (
        ("auslan", (10, 25, 50, 75, 100)),
        ("arabic_digits", (10, 20, 30, 50, 75, 100)),
    )
    pca_landmarks: int = 10
    svm_rank: int = 500
    ldmlt_cycles: int = 8
    ldmlt_ranking: int = 1500
    choice_folds: int = 5
    choice_repeats: int = 2
    choice_series: int = 600

    @property
    def digest(self) -> str:
        """Short hash of all fields that results depend on."""
        names = {name for names in _DEPENDENCIES.values() for name in names}
        return _digest([_VERSIONS, {name: getattr(self, name) for name in names}])

    def counts_of(self, dataset: str) -> tuple[int, ...] | None:
        """Return the numbers of landmarks of a large data set; None where `shares` apply."""
        return dict(self.counts).get(dataset)

    def splits_of(self, dataset: str, *names: str) -> int:
        """Return the number of splits of a data set for a kind of unit, a method or its group."""
        for name, which, count in self.fewer_splits:
            if name == dataset and which in names:
                return min(count, self.n_splits)
        return self.n_splits

    def unit(
        self,
        kind: str,
        dataset: str,
        splits: Sequence[int] = (0,),
        detail: Sequence[int | str] = (),
        rank: int = 0,
    ) -> Unit:
        """Make a unit, with its digest and its cost."""
        depends = [_VERSIONS[kind], *(getattr(self, name) for name in _DEPENDENCIES[kind])]
        if kind in ("model", "choice", "cue"):
            method = BY_NAME[str(detail[0])]
            version = ADAPTERS[method.adapter].version
            depends += [version, method.adapter, method.parameters]
        cost = 0.1 if kind in _CHEAP else len(splits) * _SECONDS.get(dataset, 1.0)
        return Unit(kind, dataset, tuple(splits), tuple(detail), _digest(depends), cost, rank)


FULL = Protocol()
FAST = dataclasses.replace(
    FULL,
    name="fast",
    n_splits=2,
    fewer_splits=tuple(
        (dataset, name, 1)
        for dataset in ("arabic_digits", "auslan")
        for name in ("similarity", "ldmlt", "main", "ablation", "option")
    ),
    gammas=(1e-3, 1e-2),
    lams=(0.1,),
    cs=(0.125, 1.0, 8.0),
    shares=(0.03, 0.10, 0.50),
    counts=(("auslan", (10, 50)), ("arabic_digits", (10, 50))),
    ldmlt_cycles=2,
    ldmlt_ranking=300,
    most_train=300,
    univariate=("gun_point", "italy_power_demand"),
    cue_sizes=(20, 40),
    cue_test=50,
    cue_seeds=1,
    pool=("OliveOil", "SyntheticControl", "UMD", "Animals", "RacketSports"),
    pool_seeds=1,
    choice_folds=3,
    choice_repeats=1,
    choice_series=100,
)


def seed_of(*names: object) -> int:
    """Return a seed that depends only on the names."""
    return zlib.crc32("/".join(map(str, names)).encode()) % (2**31 - 1)


def _digest(content: object) -> str:
    text = json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Selection:
    """The data sets and the parts of a study that a run computes."""

    datasets: tuple[str, ...]
    parts: tuple[str, ...]


# What `--only` accepts besides data sets, and the parts that each word stands for.
REPRODUCTION_WORDS = {part: (part,) for part in PARTS}
ACCURACY_WORDS = {
    **{name: (name,) for name in BY_NAME},
    CHOICES: (CHOICES,),
    **{group: tuple(m.name for m in METHODS if m.group == group) for group in GROUPS},
}


def compared_datasets(protocol: Protocol) -> tuple[str, ...]:
    """Return the data sets of the comparison."""
    return (*protocol.datasets, *protocol.univariate, SYNTHETIC, POOL)


def parse_only(
    only: str | None,
    words: Mapping[str, tuple[str, ...]],
    datasets: tuple[str, ...] = FULL.datasets,
) -> Selection:
    """Read a list such as "auslan,table2"; None selects everything.

    Raises
    ------
    ValueError
        If a name is unknown. The message lists the known ones.
    """
    given = {word.strip().lower() for word in (only or "").split(",")} - {""}
    if (only is not None and not given) or not given <= {*datasets, *words}:
        raise ValueError(
            f"Expected a comma-separated list of data sets ({', '.join(datasets)}) and parts "
            f"({', '.join(words)}). Got {only!r} instead."
        )
    every = dict.fromkeys(part for parts in words.values() for part in parts)
    wanted = {part for word in given & words.keys() for part in words[word]} or every
    return Selection(
        tuple(name for name in datasets if name in given) or datasets,
        tuple(part for part in every if part in wanted),
    )


def plan_reproduction(
    protocol: Protocol, selection: Selection, absent: Collection[str] = ()
) -> list[Unit]:
    """List the units of the paper's study, without the data sets that are absent."""
    units = [
        unit
        for name in selection.datasets
        if name not in absent
        for part in selection.parts
        for unit in _paper_units(protocol, name, part)
    ]
    return list(dict.fromkeys(units))


def _paper_units(protocol: Protocol, name: str, part: str) -> list[Unit]:
    def each_split(kind: str, *detail: int | str) -> list[Unit]:
        splits = range(protocol.splits_of(name, kind))
        return [protocol.unit(kind, name, (split,), detail) for split in splits]

    # BBS and SLTS: one unit per split; on a large data set, per number of landmarks and split.
    by_count = [each_split("landmarks", n) for n in protocol.counts_of(name) or ()]
    by_count = by_count or [each_split("landmarks")]
    landmarks = [unit for units in by_count for unit in units]
    # The literal reading differs only where the split is random.
    heldout = name not in PRESPLIT
    if part == "table1":
        return [protocol.unit("facts", name)]
    if part == "figure1" and name == EXAMPLE:
        return [protocol.unit("path", name)]
    if part == "figure3" and name == EXAMPLE:
        return each_split("pca")
    if part == "figure2":
        return landmarks
    if SELECTION_TABLES.get(part) == name:
        # Random landmarks are those of Figure 2.
        units = each_split("selection", "dselect") + each_split("selection", "kmedoids") + landmarks
        return units + (each_split("heldout", "selection") if heldout else [])
    if part in ("table2", "tests"):
        units = each_split("similarity")
        if name in PRESPLIT:
            # All splits share one matrix of similarities.
            units = [protocol.unit("similarity", name, range(len(units)))]
        units += each_split("ldmlt") + (landmarks if part == "tests" else by_count[-1])
        return units + (each_split("heldout", "methods") if heldout and part == "table2" else [])
    return []


def plan_accuracy(
    protocol: Protocol, selection: Selection, absent: Collection[str] = ()
) -> list[Unit]:
    """List the units of the comparison, without the data sets and methods that are absent.

    The compared methods come first, then synthetic families, the pool, ablations, choices and
    options, so that an interrupted run already answers the main question. Choices and options are
    not run on data sets with one channel.
    """
    units = []
    ranks = {"main": 0, SYNTHETIC: 1, POOL: 2, "ablation": 3, CHOICES: 4, "option": 5}
    for dataset in selection.datasets:
        for name in selection.parts:
            if dataset in absent or name in absent:
                continue
            if dataset == SYNTHETIC:
                units += _cue_units(protocol, name, ranks[SYNTHETIC])
                continue
            if dataset == POOL:
                units += _pool_units(protocol, name, ranks[POOL])
                continue
            if dataset in UNIVARIATE and (name == CHOICES or BY_NAME[name].group == "option"):
                continue
            if name == CHOICES:
                rank = ranks[CHOICES]
                units += [protocol.unit("choice", dataset, (0,), (n,), rank) for n in CANDIDATES]
                continue
            method = BY_NAME[name]
            once = dataset in PRESPLIT and not method.seeded
            splits = range(1 if once else protocol.splits_of(dataset, name, method.group))
            rank = ranks[method.group]
            units += [protocol.unit("model", dataset, (split,), (name,), rank) for split in splits]
    return units


def cue_dataset(name: str, n_train: int) -> str:
    """Return the name of a synthetic data set: a family and its number of training series."""
    return f"{name}-{n_train}"


def _cue_units(protocol: Protocol, method: str, rank: int) -> list[Unit]:
    if method not in CUE_METHODS:
        return []
    seeds = range(min(protocol.cue_seeds, protocol.n_splits))
    return [
        protocol.unit("cue", cue_dataset(name, size), (seed,), (method,), rank)
        for name in CUES
        for size in protocol.cue_sizes
        for seed in seeds
    ]


def _pool_units(protocol: Protocol, method: str, rank: int) -> list[Unit]:
    if method not in POOL_METHODS:
        return []
    seeds = range(min(protocol.pool_seeds, protocol.n_splits) if method == CENTRE else 1)
    return [
        protocol.unit("model", name, (seed,), (method,), rank)
        for name in protocol.pool
        for seed in seeds
    ]
