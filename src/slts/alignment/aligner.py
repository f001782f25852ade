"""`Aligner`: aligns any series with a fixed set of landmarks."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from slts._typing import FloatArray, IntArray
from slts.alignment.cpu import CpuBackend, native, require_moves
from slts.alignment.cuda.backend import CudaBackend
from slts.alignment.settings import (
    FAR_SPREADS,
    AlignmentSettings,
    Band,
    LandmarkLayouts,
    band_limits,
    largest_norm,
    moved,
    runs_on_cuda,
)
from slts.execution import Progress, silent
from slts.series import SeriesBatch

Result: TypeAlias = npt.NDArray[np.floating[Any]]


class Alignment(NamedTuple):
    """The optimal path between two series.

    Attributes
    ----------
    path
        Aligned steps (i of a, j of b), shape (length, 2), from (0, 0) to the last steps. Steps at
        which nothing is observed are left out.
    length
        Number of aligned pairs of steps, t.
    similarity
        K_I: the mean affinity along the path.
    """

    path: IntArray
    length: int
    similarity: float


class Aligner:
    """Aligns series with a fixed set of landmarks.

    All methods take prepared rows (`AlignmentSettings.prepare`, or a row map). Results have the
    precision of `settings`. A call needs memory for its result and, per thread, for one grid of
    2-bit moves. Threads may share an aligner.

    Parameters
    ----------
    landmarks
        Prepared rows.
    settings
        Objective, band and precision.
    device
        ``"cpu"``, ``"cuda"`` or ``"auto"``.
    n_jobs
        Number of CPU threads, by joblib's convention.
    basis
        Directions of the landmarks' rows, shape (channels, directions): `grouped` returns products
        with them, T basis. None returns T.
    layouts
        The landmarks as laid out for the kernels, which the first call of each makes.
    """

    def __init__(
        self,
        landmarks: SeriesBatch,
        settings: AlignmentSettings,
        device: str = "cpu",
        n_jobs: int | None = None,
        basis: FloatArray | None = None,
        *,
        layouts: LandmarkLayouts | None = None,
    ) -> None:
        self.landmarks, self.settings, self.basis = landmarks, settings, basis
        self.device, self.n_jobs = device, n_jobs
        self._layouts = layouts or LandmarkLayouts(landmarks, settings, basis)

    def on(self, device: str, n_jobs: int | None) -> Aligner:
        """Return the same aligner for another device and number of threads; both share layouts."""
        return Aligner(
            self.landmarks, self.settings, device, n_jobs, self.basis, layouts=self._layouts
        )

    def similarities(self, series: SeriesBatch, *, progress: Progress = silent) -> Result:
        """K_I: mean affinity along the path, shape (series, landmarks)."""
        if self.settings.objective == "distance":
            # The score is a sum of distances, so the affinities need the path itself.
            identity = np.eye(series.n_channels)[np.newaxis]
            return self.projected(series, identity, progress=progress)[:, :, 0]
        out = self._empty(len(series), len(self.landmarks))
        self._backend(series, progress).scores(out, mean=True)
        return out

    def distances(self, series: SeriesBatch, *, progress: Progress = silent) -> Result:
        """Sum of |a - b|^2 along the path, shape (series, landmarks): the usual DTW distance.

        For `objective` ``"distance"``, or ``"cost"``, which is the same on unit rows.
        """
        layouts, centre = self._layouts.centred()
        if centre is not None:
            series = moved(series, centre)
        out = self._empty(len(series), len(self.landmarks))
        self._backend(series, progress, layouts).scores(out, mean=False)
        out *= -2
        return out

    def products(self, series: SeriesBatch, *, progress: Progress = silent) -> Result:
        """T = A'YB/t of every pair, shape (series, landmarks, channels, channels)."""
        d = series.n_channels
        out = self._empty(len(series), len(self.landmarks), d, d)
        self._backend(series, progress).products(out)
        return out

    def grouped(
        self,
        series: SeriesBatch,
        weights: npt.ArrayLike,
        *,
        n_phases: int = 1,
        on_device: bool = False,
    ) -> Result:
        """Sum_j weights[g, j] T_ij, shape (series, groups, phases, channels, channels).

        Step s of a landmark of m steps belongs to phase floor(s * n_phases / m), and a pair of
        aligned steps counts for the phase of its landmark step. With a basis, products with its
        directions replace those with the landmarks' channels.

        The products of single pairs are never formed: aligned rows are first summed over the
        landmarks of a group, so a zero weight costs nothing. With `on_device`, what a GPU has
        computed stays there, as an array of CuPy.
        """
        shares = np.ascontiguousarray(weights, dtype=self.settings.dtype)
        d = series.n_channels
        columns = d if self.basis is None else self.basis.shape[1]
        backend = self._backend(series, silent)
        arrays = backend.arrays if on_device else np
        shape = len(series), len(shares), n_phases, d, columns
        out: Result = arrays.empty(shape, dtype=self.settings.dtype)
        backend.grouped(shares, out)
        return out

    def sums(self, series: SeriesBatch, *, n_phases: int = 1) -> Result:
        """Landmark rows aligned with each step of one series, summed, over the length of the path.

        Shape (landmarks, phases, steps, channels), or directions instead of channels with a basis.
        Their products with the rows of the series, summed over the steps, are T. On the CPU.
        """
        return CpuBackend(series, self._layouts, n_jobs=self.n_jobs).sums(n_phases)

    def projected(
        self, series: SeriesBatch, metrics: npt.ArrayLike, *, progress: Progress = silent
    ) -> Result:
        """K_M = <M_c, T_ij> for a stack of metrics, shape (series, landmarks, metrics)."""
        stack = np.ascontiguousarray(metrics, dtype=self.settings.dtype)
        out = self._empty(len(series), len(self.landmarks), len(stack))
        self._backend(series, progress).projected(stack, out)
        return out

    def path(self, series: SeriesBatch, landmark: int) -> Alignment:
        """Path of one series (a batch of one) with one landmark, in float64 and on the CPU."""
        alignment = align_pair(
            series[0], self.landmarks[landmark],
            self.settings.objective, self.settings.band, normalize=False,
        )  # fmt: skip
        if alignment is None:
            self.settings.check_rows(series)
            self.settings.check_rows(self.landmarks)
            raise self._layouts.no_path(series, 0, landmark)
        return alignment

    def _empty(self, *shape: int) -> Result:
        return np.empty(shape, dtype=self.settings.dtype)

    def _backend(
        self,
        series: SeriesBatch,
        progress: Progress,
        layouts: LandmarkLayouts | None = None,
    ) -> CpuBackend | CudaBackend:
        layouts = self._layouts if layouts is None else layouts
        cells = float(series.n_steps) * float(self.landmarks.n_steps)
        if self.device != "cpu" and runs_on_cuda(self.device, cells * (series.n_channels + 4)):
            return CudaBackend(series, layouts, progress=progress)
        return CpuBackend(series, layouts, n_jobs=self.n_jobs, progress=progress)


def align_pair(a: Any, b: Any, objective: str, band: Band, *, normalize: bool) -> Alignment | None:
    """Align two series: arrays of float64, (channels, time) or (time,).

    Returns None if a series, the objective or the band makes this impossible. The caller finds out
    why, because checks in advance would take longer than the alignment of short series.
    """
    radius, slope = band_limits(band)
    norm = largest_norm(objective, "float64")
    return native.align_pair(
        a, b, objective, normalize, radius, slope, norm, FAR_SPREADS, require_moves, Alignment
    )
