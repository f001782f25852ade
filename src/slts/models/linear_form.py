"""Decisions of landmark classifiers as linear forms of aligned products."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from slts._typing import FloatArray, IntArray
from slts.alignment import Aligner
from slts.series import SeriesBatch
from slts.series.channels import mean_shares


class RowMapping(Protocol):
    """A map from series to the rows that are aligned."""

    def __call__(self, batch: SeriesBatch) -> SeriesBatch:
        """Return rows ready for alignment."""
        ...

    def traced(self, series: SeriesBatch) -> TracedRows:
        """Return the rows of one series, and the way back to its steps and channels."""
        ...


@dataclass(frozen=True, eq=False)
class TracedRows:
    """Rows of one series, and the way back to its steps and channels.

    Parameters
    ----------
    series
        The series.
    rows
        Its rows: ``features @ basis``, then the constant if there is one.
    features
        Blocks of one feature per channel, shape (rows, blocks * channels).
    basis
        None is the identity.
    max_length
        Longer series are averaged; see `pool_steps`.
    """

    series: SeriesBatch
    rows: SeriesBatch
    features: FloatArray
    basis: FloatArray | None = None
    max_length: int | None = None

    def attribute(self, slopes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Attribute sum_iu rows[i, u] slopes[c, i, u] to steps and channels.

        Parameters
        ----------
        slopes
            Shape (problems, rows, row channels).

        Returns
        -------
        contributions : ndarray of shape (problems, steps, channels)
            The contribution of an average is divided evenly among its observed values. Missing
            values have none.
        rest : ndarray of shape (problems,)
            The contribution of the constant.
        """
        n = self.features.shape[1] if self.basis is None else self.basis.shape[1]
        own, rest = slopes[:, :, :n], slopes[:, :, n:] * self.rows.values[:, n:]
        if self.basis is not None:
            own = own @ self.basis.T
        blocks = (self.features * own).reshape(*own.shape[:2], -1, self.series.n_channels)
        row, share = self._origins
        return blocks.sum(axis=2)[:, row] * share, rest.sum(axis=(1, 2))

    @cached_property
    def _origins(self) -> tuple[IntArray, FloatArray]:
        """The row of each step, and the share of each value in it, shape (steps, channels)."""
        mean, share = mean_shares(self.series, self.max_length)
        # Steps at which nothing is observed have no row, and no share.
        observed = np.bincount(mean, weights=share.any(axis=1)) > 0.0
        return (np.cumsum(observed) - 1)[mean], share


@dataclass(frozen=True)
class LinearForm:
    """Sums sum_j coef[c, j] sum_f <metrics[c, group(j), f], T_f(x, landmark j)>.

    T_f is the part of the aligned product in phase f of the landmark. A model's decision values
    are the sums of its forms, plus their intercepts. Metrics of low rank are products of `factors`
    and the transposed basis of the aligner.

    Parameters
    ----------
    name
        Name of the comparison; empty if there is one form only.
    positives
        The positive class of each problem, shape (problems,).
    aligner
        Aligns with the rows of the landmarks that have a weight in some problem.
    landmark_indices
        Positions of the landmarks among the training series.
    coef
        Shape (problems, landmarks).
    factors
        Shape (problems, groups, phases, d, r): the metrics, if the aligner has no basis.
    groups
        Group of each landmark, shape (landmarks,).
    group_names
        Names of the groups.
    intercept
        Shape (problems,).
    rows
        Map from series to rows.
    """

    name: str
    positives: npt.NDArray[Any]
    aligner: Aligner
    landmark_indices: IntArray
    coef: FloatArray
    factors: FloatArray
    groups: IntArray
    group_names: tuple[str, ...]
    intercept: FloatArray
    rows: RowMapping

    @property
    def landmarks(self) -> SeriesBatch:
        """Rows of the landmarks."""
        return self.aligner.landmarks

    @cached_property
    def exact_aligner(self) -> Aligner:
        """The aligner of explanations: float64, on the CPU."""
        settings = replace(self.aligner.settings, dtype="float64")
        return replace(self.aligner, settings=settings, device="cpu")

    @cached_property
    def local_metrics(self) -> FloatArray:
        """The metrics, shape (problems, groups, phases, d, d)."""
        basis = self.aligner.basis
        return self.factors if basis is None else self.factors @ basis.T

    @property
    def n_phases(self) -> int:
        """Number of parts of a landmark with metrics of their own."""
        return int(self.factors.shape[2])

    @property
    def has_one_metric(self) -> bool:
        """Whether all groups and phases of a problem share one metric."""
        return self.local_metrics.shape[1:3] == (1, 1)

    @property
    def has_components(self) -> bool:
        """Whether rows are principal components, so that metrics do not name channels."""
        return getattr(self.rows, "components", None) is not None

    def own_group(self, problem: int) -> int:
        """The group of landmarks of the positive class; else the group of the largest metrics."""
        label = str(self.positives[problem])
        if label in self.group_names:
            return self.group_names.index(label)
        return int(np.square(self.local_metrics[problem]).sum(axis=(1, 2, 3)).argmax())

    @property
    def metrics(self) -> FloatArray:
        """The metric of each problem, shape (problems, d, d), if there is one only."""
        if not self.has_one_metric:
            raise ValueError("There are several metrics per class: use local_metrics.")
        metrics: FloatArray = self.local_metrics[:, 0, 0]
        return metrics

    def slopes(self, sums: FloatArray) -> FloatArray:
        """Derivatives of the decision values with respect to the rows of a series.

        Parameters
        ----------
        sums
            What `Aligner.sums` returns for the series: (landmarks, phases, steps, r).

        Returns
        -------
        ndarray
            Shape (problems, steps, d).
        """
        groups = self._members
        n_phases, n, r = sums.shape[1:]
        own = sums[groups.landmarks].reshape(*groups.landmarks.shape, n_phases * n * r)
        # Shape (groups, problems, phases, steps, r), then (problems, steps, groups * phases * r).
        weighted = (groups.coef @ own).reshape(*groups.coef.shape[:2], n_phases, n, r)
        weighted = weighted.transpose(1, 3, 0, 2, 4).reshape(len(self.coef), n, -1)
        return np.asarray(weighted @ self._stacked_factors)

    def by_landmark(self, rows: FloatArray, sums: FloatArray) -> FloatArray:
        """Part of each landmark in the decision values of one series, (problems, landmarks).

        `rows` are the rows of the series, and `sums` is what `Aligner.sums` returns for it.
        """
        groups, n_problems = self._members, len(self.coef)
        # The products T: landmarks x phases x d x r.
        products = np.tensordot(sums, rows, axes=(2, 0)).swapaxes(2, 3)
        size = math.prod(products.shape[1:])
        own = products[groups.landmarks].reshape(*groups.landmarks.shape, size)
        factors = self.factors.swapaxes(0, 1).reshape(len(own), n_problems, size)
        # Shape (groups, problems, members).
        parts = (factors @ own.swapaxes(1, 2)) * groups.coef
        values = np.zeros(self.coef.shape)
        values[:, groups.landmarks[groups.real]] = parts.swapaxes(0, 1)[:, groups.real]
        return values

    @cached_property
    def _members(self) -> _Members:
        """The landmarks of each group, in tables of equal length."""
        n_groups = self.factors.shape[1]
        counts = np.bincount(self.groups, minlength=n_groups)
        real = np.arange(int(counts.max(initial=0))) < counts[:, np.newaxis]
        landmarks = np.zeros(real.shape, dtype=np.int64)
        landmarks[real] = np.argsort(self.groups, kind="stable")
        coef = np.where(real[:, np.newaxis], self.coef[:, landmarks].swapaxes(0, 1), 0.0)
        return _Members(landmarks, real, coef)

    @cached_property
    def _stacked_factors(self) -> FloatArray:
        """`factors` with all groups and phases in one axis: (problems, groups * phases * r, d)."""
        d = self.factors.shape[3]
        return np.ascontiguousarray(self.factors.swapaxes(3, 4)).reshape(len(self.coef), -1, d)


class _Members(NamedTuple):
    """Landmarks of each group, which entries of the table are real, and their coefficients.

    Shapes (groups, members), (groups, members) and (groups, problems, members).
    """

    landmarks: IntArray
    real: npt.NDArray[np.bool_]
    coef: FloatArray


def decision_of(classes: npt.NDArray[Any], label: Any) -> tuple[int, float]:
    """Return the position of the decision value of a class, and its sign: 1 or -1.

    Two classes share one decision value, which supports the second class. Multiplied by -1, it
    supports the first class.
    """
    known = classes.tolist()
    if label not in known:
        names = ", ".join(map(repr, known))
        raise ValueError(f"The 'label' parameter must be one of {names}. Got {label!r} instead.")
    position = known.index(label)
    return (position, 1.0) if len(known) > 2 else (0, 1.0 if position else -1.0)
