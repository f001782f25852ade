"""Small data sets under the names of the paper's, and a protocol to match."""

import dataclasses
import os
import time
from pathlib import Path

import numpy as np

from slts.series import as_series
from slts.study.problems import Dataset
from slts.study.protocol import FULL, Unit, seed_of

HERE = ("japanese_vowels", "auslan", "arabic_digits", "robot_lp1")
MISSING = {name: "not here" for name in FULL.datasets if name not in HERE}
TINY = dataclasses.replace(
    FULL,
    name="tiny",
    n_splits=2,
    gammas=(1e-3, 1e-1),
    lams=(0.1,),
    cs=(0.1, 1.0),
    shares=(0.1, 0.5),
    counts=(("auslan", (3, 8)), ("arabic_digits", (3, 8))),
    pca_landmarks=4,
    svm_splits=(("arabic_digits", 1),),
    ldmlt_splits=(("arabic_digits", 1),),
    ldmlt_cycles=1,
)


def load(name: str) -> Dataset:
    rng = np.random.default_rng(seed_of(name))
    labels = np.tile(np.arange(3), 14)
    series = [
        rng.normal(size=(3, rng.integers(5, 9))) + 1.2 * np.eye(3)[:, [label]] for label in labels
    ]
    divided = name in ("japanese_vowels", "arabic_digits")
    return Dataset(as_series(series), labels, 24 if divided else None)


def units(count: int, *, unlucky: bool = False) -> list[Unit]:
    wrong = [Unit("landmarks", "robot_lp5", cost=1.5)] if unlucky else []
    return wrong + [Unit("landmarks", "auslan", (k,), (5,), cost=1.0 + k % 3) for k in range(count)]


@dataclasses.dataclass(frozen=True)
class Tally:
    """Work that leaves a line in a file each time it is done; `fuse` units, then it breaks."""

    path: Path
    fuse: int | None = None
    seconds: float = 0.0

    def __call__(self, unit: Unit) -> dict:
        if self.fuse is not None and len(self.done()) >= self.fuse:
            raise KeyboardInterrupt
        if unit.dataset == "robot_lp5":
            raise ValueError("unlucky")
        time.sleep(self.seconds)
        with self.path.open("a") as file:
            file.write(f"{unit.key}\n")
        return {"value": seed_of(unit.key), "process": os.getpid()}

    def done(self) -> list[str]:
        return self.path.read_text().split() if self.path.exists() else []
