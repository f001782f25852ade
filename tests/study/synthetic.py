"""Small data sets under the names of the paper's, and a protocol to match."""

import dataclasses

import numpy as np

import slts
from study.problems import LabelledSeries
from study.protocol import FULL, PRESPLIT, seed_of

HERE = ("japanese_vowels", "auslan", "arabic_digits", "robot_lp1", "gun_point", "Car", "AReM")
TINY = dataclasses.replace(
    FULL,
    name="tiny",
    n_splits=2,
    gammas=(1e-3, 1e-1),
    lams=(0.1,),
    cs=(0.1, 1.0),
    shares=(0.1, 0.5),
    counts=(("auslan", (3, 8)), ("arabic_digits", (3, 8))),
    fewer_splits=(("arabic_digits", "similarity", 1), ("arabic_digits", "ldmlt", 1)),
    pca_landmarks=4,
    ldmlt_cycles=1,
    choice_folds=2,
    choice_repeats=1,
    choice_series=20,
    cue_sizes=(10, 20),
    cue_test=10,
    cue_seeds=1,
    pool=("Car", "AReM"),
    pool_seeds=2,
)


def load(name: str) -> LabelledSeries:
    if name not in HERE:
        raise FileNotFoundError("not here")
    rng = np.random.default_rng(seed_of(name))
    labels = np.tile(np.arange(3), 14)
    series = [rng.normal(size=(3, rng.integers(5, 9))) + 1.2 * np.eye(3)[:, [y]] for y in labels]
    return LabelledSeries(slts.as_series(series), labels, 24 if name in PRESPLIT else None)
