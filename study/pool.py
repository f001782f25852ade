"""Public data sets with a fixed split, from the archive `pool.tar.gz` in the folder `$SLTS_POOL`.

A member of the archive is the npz file of a data set: `values` (channels x steps of all series, one
after another), `lengths`, the labels `y`, and `n_train`, the number of series in the training part,
which comes first.
"""

from __future__ import annotations

import functools
import io
import os
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import slts

ONE = (
    "Car", "Computers", "CricketX", "DistalPhalanxOutlineCorrect", "DodgerLoopDay",
    "DodgerLoopGame", "FaceFour", "GestureMidAirD1", "HouseTwenty", "InsectEPGSmallTrain",
    "Lightning2", "Meat", "MelbournePedestrian", "MiddlePhalanxTW", "OliveOil", "PigAirwayPressure",
    "PigArtPressure", "PowerCons", "ProximalPhalanxTW", "ScreenType", "ShakeGestureWiimoteZ",
    "ShapeletSim", "SmallKitchenAppliances", "SonyAIBORobotSurface1", "SyntheticControl",
    "ToeSegmentation1", "ToeSegmentation2", "UMD",
)  # fmt: skip
SEVERAL = (
    "AReM", "Animals", "ArticularyWordRecognition", "FaciesRocks", "Florence3D", "HMP",
    "Hurricanes", "MuvrExercises", "MyoEMG", "OdourUMA", "RacketSports", "UTKinect",
    "UWaveGestureLibrary",
)  # fmt: skip
# The data sets by group, with the titles of the groups.
GROUPS = {"one channel": ONE, "several channels": SEVERAL, "all": (*ONE, *SEVERAL)}
POOL_SETS = GROUPS["all"]
ARCHIVE = "pool.tar.gz"


def load(name: str) -> tuple[slts.SeriesBatch, npt.NDArray[Any], int]:
    """Load a data set of the pool: series, labels and the number of training series.

    Raises
    ------
    FileNotFoundError
        If the archive is not in `$SLTS_POOL`, or has no such data set.
    """
    folder = os.environ.get("SLTS_POOL")
    path = Path(folder or "") / ARCHIVE
    if not folder or not path.is_file():
        raise FileNotFoundError(
            f"{ARCHIVE} is not on this machine: set SLTS_POOL to the folder that has it"
        )
    members = _members(path)
    if name not in members:
        raise FileNotFoundError(f"{ARCHIVE} in SLTS_POOL has no member {name}.npz")
    with np.load(io.BytesIO(members[name])) as content:
        values = content["values"].astype(np.float64)
        series = np.split(values, np.cumsum(content["lengths"])[:-1], axis=1)
        labels, n_train = content["y"], int(content["n_train"])
    return slts.as_series(series, layout="channels_first"), labels, n_train


@functools.lru_cache(maxsize=1)
def _members(path: Path) -> dict[str, bytes]:
    """Decompress the archive once per process."""
    with tarfile.open(path) as archive:
        return {
            Path(member.name).stem: content.read()
            for member in archive
            if (content := archive.extractfile(member)) is not None
        }
