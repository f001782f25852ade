"""Other libraries behind one interface: all pairs, all paths, one pair, one path.

An adapter takes two lists of (time, channels) series and converts them to the best layout for its
library before anything is timed. It returns distances in the convention of the library, and
`squared` converts them to sums of squared Euclidean distances.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Series = Sequence[Array]
Path = Sequence[tuple[int, int]]


class Peer:
    """Interface of an adapter. `n_jobs` is 1 or -1."""

    name: ClassVar[str]
    has_paths: ClassVar[bool] = True
    returns_root: ClassVar[bool] = False

    def __init__(self, X: Series, Y: Series) -> None:
        self.X, self.Y = list(X), list(Y)

    @classmethod
    def takes(cls, X: Series, Y: Series) -> bool:
        """Whether the library can align these series."""
        return True

    def pairwise(self, n_jobs: int) -> Array:
        """Distances of all pairs, shape (len X, len Y), in the convention of the library."""
        raise NotImplementedError

    def one_distance(self) -> float:
        """Distance of the first pair, by the call for one pair."""
        raise NotImplementedError

    def one_path(self, p: int = 0, q: int = 0) -> Path:
        """Path of one pair."""
        raise NotImplementedError

    def paths(self) -> None:
        """Paths of all pairs, with one call per pair because no peer has a call for all."""
        for p in range(len(self.X)):
            for q in range(len(self.Y)):
                self.one_path(p, q)

    def squared(self, distances: Any) -> Array:
        """Convert to sums of squared Euclidean distances along the path."""
        values = np.asarray(distances, dtype=np.float64)
        return values**2 if self.returns_root else values


class Aeon(Peer):
    """aeon: numba, one call for all pairs, threads."""

    name = "aeon"

    def __init__(self, X: Series, Y: Series) -> None:
        from aeon.distances import dtw_alignment_path, dtw_distance, dtw_pairwise_distance

        super().__init__(X, Y)
        self._pairwise, self._one, self._path = (
            dtw_pairwise_distance,
            dtw_distance,
            dtw_alignment_path,
        )
        self._x = [np.ascontiguousarray(x.T) for x in X]
        self._y = [np.ascontiguousarray(y.T) for y in Y]

    def pairwise(self, n_jobs: int) -> Array:
        """Distances of all pairs."""
        return np.asarray(self._pairwise(self._x, self._y, n_jobs=n_jobs))

    def one_distance(self) -> float:
        """Distance of the first pair."""
        return float(self._one(self._x[0], self._y[0]))

    def one_path(self, p: int = 0, q: int = 0) -> Path:
        """Path of one pair."""
        path: Path = self._path(self._x[p], self._y[q])[0]
        return path


class DTAIDistance(Peer):
    """dtaidistance: C, one call for all pairs, OpenMP if the wheel has it."""

    name = "dtaidistance"
    returns_root = True

    def __init__(self, X: Series, Y: Series) -> None:
        from dtaidistance import dtw, dtw_ndim

        if dtw.dtw_cc is None:
            raise ImportError("dtaidistance was installed without its C library")
        super().__init__(X, Y)
        flat = self.X[0].shape[1] == 1
        self._module = dtw if flat else dtw_ndim
        self._path = dtw.warping_path_fast
        self._processes = dtw.dtw_cc_omp is None
        self._x = [np.ascontiguousarray(x[:, 0] if flat else x) for x in X]
        self._y = [np.ascontiguousarray(y[:, 0] if flat else y) for y in Y]

    def pairwise(self, n_jobs: int) -> Array:
        """Distances of all pairs."""
        n, m = len(self._x), len(self._y)
        several = n_jobs != 1
        distances = self._module.distance_matrix(
            self._x + self._y, block=((0, n), (n, n + m)), compact=True, use_c=True,
            parallel=several, use_mp=several and self._processes,
        )  # fmt: skip
        return np.asarray(distances, dtype=np.float64).reshape(n, m)

    def one_distance(self) -> float:
        """Distance of the first pair."""
        # Pruning returns inf if the straight path is optimal, because its bound is rounded.
        return float(self._module.distance_fast(self._x[0], self._y[0], use_pruning=False))

    def one_path(self, p: int = 0, q: int = 0) -> Path:
        """Path of one pair."""
        path: Path = self._path(self._x[p], self._y[q])
        return path


class TSLearn(Peer):
    """tslearn: numba, joblib over pairs, ragged series padded with NaN."""

    name = "tslearn"
    returns_root = True

    def __init__(self, X: Series, Y: Series) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from tslearn.metrics import cdist_dtw, dtw, dtw_path
            from tslearn.utils import to_time_series_dataset

        super().__init__(X, Y)
        self._pairwise, self._one, self._path = cdist_dtw, dtw, dtw_path
        self._x, self._y = to_time_series_dataset(self.X), to_time_series_dataset(self.Y)

    def pairwise(self, n_jobs: int) -> Array:
        """Distances of all pairs."""
        return np.asarray(self._pairwise(self._x, self._y, n_jobs=n_jobs))

    def one_distance(self) -> float:
        """Distance of the first pair."""
        return float(self._one(self.X[0], self.Y[0]))

    def one_path(self, p: int = 0, q: int = 0) -> Path:
        """Path of one pair."""
        path: Path = self._path(self.X[p], self.Y[q])[0]
        return path


class TSDistances(Peer):
    """tsdistances: Rust, one channel, equal lengths, no paths."""

    name = "tsdistances"
    has_paths = False

    def __init__(self, X: Series, Y: Series) -> None:
        from tsdistances import dtw_distance

        super().__init__(X, Y)
        self._distance = dtw_distance
        self._x = np.array([x[:, 0] for x in X])
        self._y = np.array([y[:, 0] for y in Y])

    @classmethod
    def takes(cls, X: Series, Y: Series) -> bool:
        """Whether there is one channel and one length."""
        return {x.shape for x in (*X, *Y)} == {(len(X[0]), 1)}

    def pairwise(self, n_jobs: int) -> Array:
        """Distances of all pairs."""
        distances = self._distance(self._x, self._y, band=1.0, par=n_jobs != 1)
        return np.asarray(distances, dtype=np.float64).reshape(len(self._x), len(self._y))

    def one_distance(self) -> float:
        """Distance of the first pair."""
        return float(self._distance(self._x[0], self._y[0], band=1.0, par=False))


PEERS: tuple[type[Peer], ...] = (Aeon, DTAIDistance, TSLearn, TSDistances)


def importable_peers() -> tuple[list[type[Peer]], list[str]]:
    """Installed peers, and a note for each missing one."""
    there, notes = [], []
    sample = [np.ones((2, 1))]
    for peer in PEERS:
        try:
            peer(sample, sample)
        except ImportError as error:
            notes.append(f"{peer.name} is not measured: {error}")
        else:
            there.append(peer)
    return there, notes


def peer_versions(peers: Sequence[type[Peer]]) -> dict[str, str]:
    """Installed versions."""
    return {peer.name: version(peer.name) for peer in peers}
