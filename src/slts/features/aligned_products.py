"""Aligned products with whole landmarks, summed over banks of landmarks.

For a series A and a landmark B with path Y of length t, the aligned product is T = A'YB / t. Paths
are found once, without a metric, so every function <M, T> is linear in the features.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np

from slts._typing import FloatArray, IntArray
from slts.alignment import Aligner, Alignment, AlignmentSettings
from slts.features.feature_map import Attribution, PlainState, Resources
from slts.features.row_map import RowMap, RowTrace, leading_directions, require
from slts.series import SeriesBatch
from slts.series.keys import series_digests
from slts.solvers.ridge import matmul, on_device_of, on_host

# Bytes of aligned products that are held at once.
_CHUNK_BYTES = 64 * 2**20


class AlignedSeries(NamedTuple):
    """The rows of one series, and the landmark rows that are aligned with each of them.

    `sums` has the sums of these rows, over the length of the path, shape (landmarks, phases, rows,
    directions).
    """

    trace: RowTrace
    sums: FloatArray


@dataclass(frozen=True, eq=False)
class AlignedProducts(PlainState):
    """Sums sum_j weights[b, j] T(x, landmark j) over the landmarks of every bank b.

    Coefficients have the shape (outputs, banks, phases, d, r), and those of bank b and phase f are
    the factor F of a metric M = F basis': output c is sum_bf <coef[c, b, f], T_bf basis>. A step of
    a landmark belongs to one of `n_phases` equal parts of it.

    Parameters
    ----------
    name
        What is compared, for people.
    landmarks
        The landmarks, as series.
    row_map
        Maps series and landmarks to the rows that are aligned.
    settings
        How rows are aligned.
    weights
        Weights of the landmarks in each bank, shape (banks, landmarks).
    basis
        Directions of the landmarks' rows, shape (d, r); None is the identity.
    n_phases
        Number of equal parts of a landmark.
    bank_per_output
        Whether output c uses bank c alone: coefficients then have one bank.
    """

    name: str
    landmarks: SeriesBatch
    row_map: RowMap
    settings: AlignmentSettings
    weights: FloatArray
    basis: FloatArray | None = None
    n_phases: int = 1
    bank_per_output: bool = False

    def __post_init__(self) -> None:
        require(self.weights.ndim == 2, "weights")
        require(self.weights.shape[1] == len(self.landmarks), "weights")
        require(self.n_phases >= 1, "n_phases")
        require(self.basis is None or self.basis.ndim == 2, "basis")
        require(not self.bank_per_output or (self.basis is None and self.n_phases == 1), "basis")

    @classmethod
    def in_banks(
        cls,
        name: str,
        landmarks: SeriesBatch,
        row_map: RowMap,
        settings: AlignmentSettings,
        banks: IntArray,
        *,
        rank: int,
        n_phases: int,
    ) -> AlignedProducts:
        """Take means over banks, where `banks` has the bank of each landmark.

        The basis holds the `rank` principal directions of the landmarks' rows.
        """
        rows = row_map(landmarks)
        basis = None if rank >= rows.n_channels else leading_directions(rows.values, rank)
        members = banks == np.arange(int(banks.max()) + 1)[:, np.newaxis]
        weights = members / members.sum(axis=1, keepdims=True)
        return cls(name, landmarks, row_map, settings, weights, basis, n_phases)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the features of a series, and of the coefficients of an output."""
        n_banks = 1 if self.bank_per_output else len(self.weights)
        d = self._rows_of_landmarks.n_channels
        r = d if self.basis is None else self.basis.shape[1]
        return (n_banks, self.n_phases, d, r)

    @property
    def n_landmarks(self) -> int:
        """Number of landmarks, the columns of `by_landmark`."""
        return len(self.landmarks)

    @cached_property
    def used(self) -> IntArray:
        """Positions of the landmarks that have a weight."""
        return np.flatnonzero(self.weights.any(axis=0))

    @property
    def banks(self) -> IntArray:
        """The bank of each landmark, if banks have no landmark in common."""
        return np.asarray(self.weights.argmax(axis=0))

    def metrics(self, coef: FloatArray) -> FloatArray:
        """Return the metrics of coefficients, shape (outputs, banks, phases, d, d)."""
        return coef if self.basis is None else coef @ self.basis.T

    def rows(self, batch: SeriesBatch, n_jobs: int | None = None) -> SeriesBatch:
        """Return the rows of series, ready for alignment."""
        rows = self.row_map(batch, n_jobs)
        if not self.row_map.normalize:
            self.settings.check_rows(rows)
        return rows

    def __call__(self, batch: SeriesBatch, resources: Resources) -> FloatArray:
        """Return the features of series, shape (series, banks, phases, d, r)."""
        rows = self.rows(batch, resources.n_jobs)
        aligner = self._used_aligner.on(*resources)
        features = aligner.grouped(rows, self.weights[:, self.used], n_phases=self.n_phases)
        return cast(FloatArray, features)

    def leave_out_selves(
        self, features: FloatArray, series: SeriesBatch, resources: Resources
    ) -> None:
        """Leave landmarks that are among the series out of the means that are their own features.

        A new series is no landmark: training must not see similarities of a series to itself.
        """
        own, digests = series_digests(series), series_digests(self.landmarks)
        sizes = np.bincount(self.banks)
        for digest, bank in set(zip(digests.tolist(), self.banks.tolist(), strict=True)):
            # Equal series of several groups or classes may be several landmarks, and several rows.
            rows = np.flatnonzero(own == digest)
            equal = np.flatnonzero((digests == digest) & (self.banks == bank))
            n_others = sizes[bank] - len(equal)
            if len(rows) and n_others:
                landmark = self.landmarks[equal[:1]]
                alone = replace(self, landmarks=landmark, weights=np.ones((1, 1)))
                means = features[rows, bank]
                change = means - alone(landmark, resources)[0, 0]
                features[rows, bank] = means + len(equal) / n_others * change

    def decide(self, batch: SeriesBatch, coef: FloatArray, resources: Resources) -> FloatArray:
        """Return the outputs of linear functions of the features, shape (series, outputs)."""
        rows = self.rows(batch, resources.n_jobs)
        if len(self.used) == 0:
            return np.zeros((len(rows), len(coef)))
        aligner = self._used_aligner.on(*resources)
        if self.bank_per_output and _are_identities(coef):
            # <I, T> is the similarity, which needs no path.
            return np.asarray(np.dot(aligner.similarities(rows), self.weights[:, self.used].T))
        values = np.empty((len(rows), len(coef)))
        flat = coef.reshape(len(coef), -1)
        functions, weights = flat.T, self.weights[:, self.used]
        step = max(1, _CHUNK_BYTES // (8 * len(self.weights) * self.n_phases * coef[0, 0, 0].size))
        for begin in range(0, len(rows), step):
            part = slice(begin, begin + step)
            T = aligner.grouped(rows[part], weights, n_phases=self.n_phases, on_device=True)
            T = cast(FloatArray, T.reshape(len(T), -1, flat.shape[1]))
            if self.bank_per_output:
                values[part] = np.einsum("icf,cf->ic", on_host(T), flat)
            else:
                functions = on_device_of(T, functions)
                values[part] = on_host(matmul(T[:, 0], functions))
        return values

    def by_landmark(self, batch: SeriesBatch, coef: FloatArray, resources: Resources) -> FloatArray:
        """Return the part of each landmark in the outputs, shape (series, outputs, landmarks)."""
        rows = self.rows(batch, resources.n_jobs)
        aligner = self._all_aligner.on(*resources)
        if self.bank_per_output:
            K = aligner.projected(rows, coef[:, 0, 0])
            return np.asarray((K * self.weights.T).swapaxes(1, 2))
        T = aligner.grouped(rows, np.eye(self.n_landmarks), n_phases=self.n_phases)
        parts = np.einsum("ijfdr,cjfdr->icj", T, coef[:, self.banks], optimize=True)
        return np.asarray(parts * self.weights.max(axis=0))

    def attribute(
        self, series: SeriesBatch, coef: FloatArray, landmark: int | None = None
    ) -> Attribution:
        """Send linear functions of the features of one series back to its steps and channels.

        In float64, on the CPU. `landmark` restricts the sums to one landmark.
        """
        return self.attribute_aligned(self.align(series), coef, landmark)

    def align(self, series: SeriesBatch) -> AlignedSeries:
        """Align one series with the landmarks that have a weight, in float64, on the CPU."""
        trace = self.row_map.trace(series)
        sums = self._exact_aligner.sums(trace.rows, n_phases=self.n_phases)
        return AlignedSeries(trace, np.asarray(sums, np.float64))

    def attribute_aligned(
        self, series: AlignedSeries, coef: FloatArray, landmark: int | None = None
    ) -> Attribution:
        """Return what `attribute` does, of a series that is aligned already."""
        which = slice(None) if landmark is None else self.used == landmark
        by_bank = np.tensordot(self.weights[:, self.used][:, which], series.sums[which], axes=1)
        if self.bank_per_output:
            slopes = by_bank[:, 0] @ coef[:, 0, 0].swapaxes(1, 2)
        else:
            factors = coef.swapaxes(3, 4).reshape(len(coef), -1, coef.shape[3])
            slopes = by_bank.transpose(2, 0, 1, 3).reshape(by_bank.shape[2], -1) @ factors
        return Attribution(*series.trace.attribute(slopes))

    def by_landmark_aligned(self, series: AlignedSeries, coef: FloatArray) -> FloatArray:
        """Return the part of each landmark that has a weight, shape (outputs, landmarks)."""
        products = np.einsum("nd,jfnr->jfdr", series.trace.rows.values, series.sums)
        if self.bank_per_output:
            parts = np.tensordot(coef[:, 0, 0], products[:, 0], axes=((1, 2), (1, 2)))
            return np.asarray(parts * self.weights[:, self.used])
        factors = coef[:, self.banks[self.used]].reshape(len(coef), len(self.used), -1)
        parts = np.einsum("cjf,jf->cj", factors, products.reshape(len(self.used), -1))
        return np.asarray(parts * self.weights.max(axis=0)[self.used])

    def attribute_pairs(
        self, series: AlignedSeries, coef: FloatArray, outputs: IntArray, landmarks: IntArray
    ) -> Attribution:
        """Send parts of landmarks back to steps and channels.

        Row k of the result is the part of landmark ``used[landmarks[k]]`` in output ``outputs[k]``.
        """
        places = self.used[landmarks]
        banks = np.zeros_like(places) if self.bank_per_output else self.banks[places]
        weights = self.weights[outputs if self.bank_per_output else banks, places]
        slopes = np.einsum("kfnr,kfdr->knd", series.sums[landmarks], coef[outputs, banks])
        return Attribution(*series.trace.attribute(weights[:, np.newaxis, np.newaxis] * slopes))

    def similarities(
        self, batch: SeriesBatch, metrics: FloatArray | None, resources: Resources
    ) -> FloatArray:
        """Return K_I to all landmarks, or K_M under metrics: (series, landmarks[, metrics])."""
        aligner = self._all_aligner.on(*resources)
        rows = self.rows(batch, resources.n_jobs)
        if metrics is None:
            return np.asarray(aligner.similarities(rows))
        return np.asarray(aligner.projected(rows, metrics))

    def path(self, series: AlignedSeries, landmark: int) -> Alignment:
        """Return the path of one series to landmark ``used[landmark]``."""
        return self._exact_aligner.path(series.trace.rows, landmark)

    def exact_similarities(self, series: SeriesBatch) -> FloatArray:
        """Return K_I of one series to each landmark that has a weight, in float64."""
        return np.asarray(self._exact_aligner.similarities(self.rows(series))[0])

    @cached_property
    def _rows_of_landmarks(self) -> SeriesBatch:
        return self.rows(self.landmarks)

    @cached_property
    def _all_aligner(self) -> Aligner:
        return Aligner(self._rows_of_landmarks, self.settings, basis=self.basis)

    @cached_property
    def _used_aligner(self) -> Aligner:
        if len(self.used) == self.n_landmarks:
            return self._all_aligner
        return Aligner(self._rows_of_landmarks[self.used], self.settings, basis=self.basis)

    @cached_property
    def _exact_aligner(self) -> Aligner:
        if self.settings.dtype == "float64":
            return self._used_aligner.on("cpu", 1)
        settings = replace(self.settings, dtype="float64")
        return Aligner(self._rows_of_landmarks[self.used], settings, "cpu", 1, self.basis)


def _are_identities(coef: FloatArray) -> bool:
    d, r = coef.shape[-2:]
    return d == r and bool((coef == np.eye(d)).all())
