"""Re-alignment under the learned metric: paths that maximise the sum of a_i' P b_j.

The kernel maximises inner products of rows. With rows (a, 0) of the series and (P b, b) of the
landmarks that product is a'P b, and the upper right block of the aligned product is the T of a and
b along the path it gives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from slts._typing import FloatArray, IntArray
from slts.alignment import AlignmentSettings
from slts.alignment.reductions import Result, grouped_products, products, projected_similarities
from slts.estimators.linear_form import LinearForm, Rows
from slts.estimators.splitting import Split
from slts.execution import Progress
from slts.learning.calibration import fit_scale
from slts.learning.landmark import LandmarkData, LandmarkModel
from slts.series import SeriesBatch

# Products of the wide rows held at once.
_BLOCK_BYTES = 64 * 2**20


@dataclass(frozen=True)
class PaddedRows:
    """Rows (a, 0): the first half is aligned with P b, the second meets b itself.

    Parameters
    ----------
    rows
        How the rows a are made.
    """

    rows: Rows

    def __call__(self, batch: SeriesBatch) -> SeriesBatch:
        """Rows ready for alignment."""
        return padded(self.rows(batch))

    def attribute(self, batch: SeriesBatch, slopes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Terms of steps and channels of one series, and of the constant; see `Rows`."""
        return self.rows.attribute(batch, slopes[:, :, : slopes.shape[2] // 2])


def padded(rows: SeriesBatch) -> SeriesBatch:
    """Rows (a, 0)."""
    values = np.concatenate([rows.values, np.zeros_like(rows.values)], axis=1)
    return SeriesBatch.from_checked(values, rows.offsets, None)


def seen_through(rows: SeriesBatch, metric: FloatArray) -> SeriesBatch:
    """Rows (P b, b) of landmarks."""
    values = np.concatenate([rows.values @ metric.T, rows.values], axis=1)
    return SeriesBatch.from_checked(values, rows.offsets, None)


def upper_right(metric: FloatArray) -> FloatArray:
    """M as it stands in a metric of the wide rows."""
    d = len(metric)
    wide = np.zeros((2 * d, 2 * d))
    wide[:d, d:] = metric
    return wide


def _unit(metric: FloatArray, before: FloatArray) -> FloatArray:
    """P of spectral norm 1, which gives the same paths; M = 0 says nothing of them."""
    norm = float(np.linalg.norm(metric, 2))
    return metric / norm if norm > 0.0 else before


@dataclass(frozen=True, eq=False)
class PathMetric:
    """Alignments under one metric, for the rows of one set of landmarks.

    Parameters
    ----------
    metric
        P, shape (d, d).
    landmarks
        Rows b.
    settings
        How paths are found; rows are taken as they are.
    n_jobs, device
        Threads, and what aligns: see `slts.similarity`.
    """

    metric: FloatArray
    landmarks: SeriesBatch
    settings: AlignmentSettings
    n_jobs: int | None = None
    device: str = "cpu"

    def products(self, series: SeriesBatch) -> Result:
        """T of every pair, shape (series, landmarks, d, d)."""
        n, m, d = len(series), len(self.landmarks), series.n_channels
        wide = seen_through(self.landmarks, self.metric)
        out = np.empty((n, m, d, d), dtype=self.settings.dtype)
        for part in _blocks(n, m, d):
            T = products(
                padded(series[part]), wide, self.settings, device=self.device, n_jobs=self.n_jobs
            )
            out[part] = T[:, :, :d, d:]
        return out

    def sums(self, series: SeriesBatch, coef: FloatArray) -> FloatArray:
        """Sum_j coef[j] T_ij, shape (series, d, d); landmarks without weight are not aligned."""
        n, d, used = len(series), series.n_channels, np.flatnonzero(coef)
        out = np.zeros((n, d, d))
        if len(used) == 0:
            return out
        wide = seen_through(self.landmarks[used], self.metric)
        weights = coef[np.newaxis, used]
        for part in _blocks(n, 1, d):
            T = grouped_products(
                padded(series[part]), wide, weights, self.settings,
                device=self.device, n_jobs=self.n_jobs,
            )  # fmt: skip
            out[part] = T[:, 0, :d, d:]
        return out

    def similarities(self, series: SeriesBatch, metric: FloatArray) -> FloatArray:
        """<M, T> of every pair, shape (series, landmarks)."""
        wide = seen_through(self.landmarks, self.metric)
        found = projected_similarities(
            padded(series), wide, upper_right(metric)[np.newaxis], self.settings,
            device=self.device, n_jobs=self.n_jobs,
        )  # fmt: skip
        return np.asarray(found[:, :, 0])


def realigned_forms(form: LinearForm, path_metrics: FloatArray) -> tuple[LinearForm, ...]:
    """A form for each problem, with its own paths; all have the landmarks of `form`.

    Parameters
    ----------
    form
        The model but for its paths.
    path_metrics
        P of each problem, shape (problems, d, d).
    """
    settings = replace(form.settings, normalize=False)
    forms = []
    for c, path_metric in enumerate(path_metrics):
        own = upper_right(form.metrics[c])
        coef, metrics = np.zeros_like(form.coef), np.zeros((len(form.coef), 1, 1, *own.shape))
        coef[c], metrics[c, 0, 0] = form.coef[c], own
        forms.append(
            replace(
                form,
                name=f"paths of {form.positives[c]}" if len(path_metrics) > 1 else "",
                landmarks=seen_through(form.landmarks, path_metric),
                coef=coef,
                local_metrics=metrics,
                rows=PaddedRows(form.rows),
                settings=settings,
            )
        )
    return tuple(forms)


def _blocks(n_series: int, n_sums: int, d: int) -> list[slice]:
    step = max(1, _BLOCK_BYTES // (8 * n_sums * 4 * d * d))
    return [slice(begin, begin + step) for begin in range(0, n_series, step)]


@dataclass(frozen=True, eq=False)
class Realigned:
    """What rounds of re-alignment give.

    Parameters
    ----------
    model
        Learned on the paths of the last round.
    path_metrics
        P of each problem in that round, shape (problems, d, d).
    scale
        Of probabilities; None without splits.
    """

    model: LandmarkModel
    path_metrics: FloatArray
    scale: float | None


def realign(
    data: LandmarkData,
    model: LandmarkModel,
    series: SeriesBatch,
    landmarks: SeriesBatch,
    settings: AlignmentSettings,
    *,
    rounds: int,
    solve: Callable[[LandmarkData], LandmarkModel],
    held_out: Callable[[LandmarkData, IntArray, IntArray], FloatArray],
    splits: Sequence[Split],
    device: str = "cpu",
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Realigned:
    """Find paths under the metrics of the round before, and learn anew, problem by problem.

    Parameters
    ----------
    data
        Classes and weights; alignments are found here, and need not be in it.
    model
        What was learned from the paths at M = I.
    series, landmarks
        Their rows.
    settings
        How paths are found.
    rounds
        How many; at least one.
    solve
        Learns one problem of two classes.
    held_out
        (data, train, test) -> decision values of one problem on `test`, learned on `train`.
    splits
        (train, test) pairs to calibrate probabilities on; perhaps none.
    device, n_jobs
        What aligns: see `slts.similarity`.
    progress
        Told after every problem.
    """
    settings = replace(settings, normalize=False)
    paths: FloatArray = np.broadcast_to(
        np.eye(series.n_channels), (len(data.positives), series.n_channels, series.n_channels)
    )
    columns: list[list[FloatArray]] = []
    for k in range(rounds):
        assert model.metrics is not None
        paths = np.stack([_unit(M, P) for M, P in zip(model.metrics, paths, strict=True)])
        found: list[LandmarkModel] = []
        for path_metric, positive in zip(paths, data.positives, strict=True):
            T = PathMetric(path_metric, landmarks, settings, n_jobs, device).products(series)
            problem = _one_against_rest(data, positive, T)
            found.append(solve(problem))
            if k == rounds - 1:
                columns.append([held_out(problem, train, test)[:, 0] for train, test in splits])
            if progress is not None:
                progress(k * len(paths) + len(found), rounds * len(paths))
        model = _joined(found)
    scale = None
    if splits:
        decisions = np.column_stack([np.concatenate(column) for column in columns])
        scale = fit_scale(decisions, np.concatenate([data.codes[test] for _, test in splits]))
    return Realigned(model, paths, scale)


def _one_against_rest(data: LandmarkData, positive: int, T: Result) -> LandmarkData:
    """The problem of one class, as a data set of two."""
    return replace(
        data,
        products=T,
        codes=(data.codes == positive).astype(np.int64),
        landmark_codes=(data.landmark_codes == positive).astype(np.int64),
        n_classes=2,
    )


def _joined(models: Sequence[LandmarkModel]) -> LandmarkModel:
    """Problems solved one by one, as one model."""
    return LandmarkModel(
        np.concatenate([model.coef for model in models]),
        np.concatenate([model.metrics for model in models if model.metrics is not None]),
        any(model.says_yes for model in models),
        tuple(separator for model in models for separator in model.separators),
        tuple(solution for model in models for solution in model.metric_solutions),
    )
