"""Learning of SLTS and BBS.

choose landmarks -> align once -> choose parameters on held-out series -> metrics -> separators

Alignments are computed once. Every class, parameter and split is learned from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from slts._typing import AnyArray, FloatArray, IntArray
from slts.alignment import Aligner
from slts.errors import warn
from slts.execution import Progress, map_threads, memory_limit, silent
from slts.features.aligned_products import AlignedProducts
from slts.features.models import LinearModel, Origins
from slts.features.row_map import RowMap
from slts.quantities import format_bytes
from slts.solvers import (
    MetricSolution,
    SeparatorSolution,
    problem_strength,
    solve_metric_path,
    solve_separator_path,
)
from slts.solvers.hinge import Solution, SolveReport
from slts.training.held_out import SearchResult, Split, make_splits, search
from slts.training.landmarks import (
    landmark_count,
    landmark_positions,
    resolve_count,
    warn_about_missing_classes,
)
from slts.training.training_set import Fit, LandmarkOptions, TrainingSet

# The paper's rule: half of a small training set, 100 landmarks of a large one.
_MOST_LANDMARKS, _LANDMARK_SHARE = 100, 0.5
# Share of the memory for alignments, and the fewest series that are learned from.
_ALIGNMENT_SHARE, _FEWEST = 1 / 2, 100
# Series that parameters are chosen on.
_MOST_TUNING = 10_000
# Bytes of products that a thread reads at once, and of similarities that are held at once.
_BLOCK_BYTES, _HELD_BYTES = 2**24, 2**28


@dataclass(frozen=True, kw_only=True)
class LandmarkFit(Fit):
    """What was learned by SLTS or BBS, and reports of the solves behind it.

    `chosen` are gamma and lam; `search` is None if nothing was held out; `n_sampled` is the number
    of distinct series that were learned from.
    """

    reports: tuple[SolveReport, ...]
    chosen: dict[str, float]
    search: SearchResult | None
    n_sampled: int


def fit_landmarks(data: TrainingSet, options: LandmarkOptions) -> LandmarkFit:
    """Learn metrics and separators from the series that fit in memory with their alignments."""
    counts = _landmark_counts(data, options)
    row_map = RowMap.fit(
        data.series, scale=options.scale, homogeneous=options.homogeneous,
        normalize=options.settings.normalize,
    )  # fmt: skip
    data = _that_fit(data, counts[-1], row_map, options)
    weights = data.loss_weights(options.class_weight)
    tuning, series = data.first(_MOST_TUNING), data.named_series
    tuned = data if len(tuning) == len(data) else data.take(tuning)
    # Alignments take longest: an error about cv comes first.
    splits = make_splits(options.cv, tuned, options.cv_name)
    rows = row_map(series, options.n_jobs)
    if not row_map.normalize:
        options.settings.check_rows(rows)
    positions = landmark_positions(data, rows, counts[-1], options)

    with options.bar("Aligning with landmarks") as progress:
        aligner = Aligner(rows[positions], options.settings, options.device, options.n_jobs)
        align = aligner.products if options.learns_metric else aligner.similarities
        values = align(rows, progress=progress)
    alignments = Alignments(
        values, data.codes, data.codes[positions], weights, len(data.classes),
        options.regularizer, options.n_jobs,
    )  # fmt: skip

    some = alignments
    if tuned is not data:
        some = alignments.take(tuning, tuned.loss_weights(options.class_weight))
    chosen, result = _choose_parameters(tuned, some, splits, counts, options)
    alignments = alignments.first_landmarks(int(chosen.pop("n_landmarks")))
    positions = positions[: alignments.n_landmarks]
    with options.bar("Learning metrics and separators") as progress:
        metrics, separators, any_positive = alignments.solve(
            chosen["gamma"], chosen.get("lam", 0.0), progress
        )
    positives = data.classes[list(alignments.positives)]
    solved: dict[str, Sequence[Solution]] = {"metric": metrics, "separator": separators}
    reports = tuple(
        solutions[k].report(label, stage)
        for k, label in enumerate(positives)
        for stage, solutions in solved.items()
        if solutions
    )
    warn_about_missing_classes(data.classes, data.codes[positions])
    _warn_if_nothing_was_learned(positives, metrics, any_positive)

    coef = np.stack([separator.coef for separator in separators])
    landmarks, indices = data.series[positions], data.indices[positions]
    if not isinstance(options.landmarks, str):
        # Of equal series, the one that the user named.
        indices = np.asarray(options.landmarks, dtype=np.int64)[: len(positions)]
    feature_map = AlignedProducts(
        "similarity", landmarks, row_map, options.settings, coef, bank_per_output=True
    )
    d = feature_map.shape[-1]
    M = np.stack([m.metric for m in metrics]) if metrics else np.tile(np.eye(d), (len(coef), 1, 1))
    return LandmarkFit(
        model=LinearModel((feature_map,), (M[:, np.newaxis, np.newaxis],), np.zeros(len(coef))),
        landmark_indices=indices, origins=Origins.of(landmarks, indices, data.codes[positions]),
        held_out=None if result is None else result.held_out,
        validation=None if result is None else result.validation,
        reports=reports, chosen={name: float(value) for name, value in chosen.items()},
        search=result, n_sampled=len(data),
    )  # fmt: skip


def _landmark_counts(data: TrainingSet, options: LandmarkOptions) -> list[int]:
    """Return the numbers of landmarks to try, ascending."""
    several = isinstance(options.n_landmarks, Sequence | np.ndarray)
    wanted = options.n_landmarks if several else [options.n_landmarks]
    if not isinstance(options.landmarks, str):
        # The first of those that are named.
        most = len(options.landmarks)
        return sorted({most if n is None else resolve_count(n, most) for n in wanted})
    if options.n_landmarks is None:
        most = min(_MOST_LANDMARKS, len(data))
        return [min(most, max(1, round(_LANDMARK_SHARE * data.n_distinct)))]
    return sorted({landmark_count(data, n, options.owner) for n in wanted})


def _that_fit(
    data: TrainingSet, n_landmarks: int, row_map: RowMap, options: LandmarkOptions
) -> TrainingSet:
    """Return the first series whose alignments fit in memory, and some of every class."""
    limit = memory_limit(options.memory_limit, options.owner)
    d = data.series.n_channels + (row_map.constant is not None)
    item = np.dtype(options.settings.dtype).itemsize
    # One number, or T and its sums over the landmarks of each class.
    n_numbers = n_landmarks
    if options.learns_metric:
        n_numbers = d * d * (n_landmarks + 3 * len(data.classes))
    most = int(_ALIGNMENT_SHARE * limit / (item * n_numbers))
    if most >= len(data):
        return data
    rows = data.first(most)
    fewest = max(_FEWEST, n_landmarks)
    if most < fewest or len(rows) > 2 * most:
        fewest = max(fewest, len(rows) if most >= fewest else 0)
        # A little more, because it is rounded.
        needed = 1.06 * fewest * item * n_numbers / _ALIGNMENT_SHARE
        raise ValueError(
            f"The 'memory_limit' parameter of {options.owner} is too small: {format_bytes(limit)}. "
            f"Learning from {fewest} series needs {format_bytes(needed)}. Raise it, or lower "
            f"n_landmarks."
        )
    return data.take(rows)


def _choose_parameters(
    data: TrainingSet,
    alignments: Alignments,
    splits: list[Split],
    counts: Sequence[int],
    options: LandmarkOptions,
) -> tuple[dict[str, Any], SearchResult | None]:
    """Return the parameters with the best held-out accuracy, and all scores if there are any."""
    if not splits:
        return {"n_landmarks": counts[0], **options.parameters[0]}, None
    candidates = [{"n_landmarks": n, **p} for n in counts for p in options.parameters]
    by_count: list[list[FloatArray]] = []
    for count in counts:
        first = alignments.first_landmarks(count)
        with options.bar("Trying parameters on held-out series") as progress:
            by_count.append(first.held_out_decisions(splits, options.parameters, progress))
    decisions = [np.concatenate(of_split) for of_split in zip(*by_count, strict=True)]
    weights = data.weights / data.weights.mean()
    result = search(decisions, candidates, splits, data, alignments.weights, weights)
    return dict(candidates[result.best]), result


def _warn_if_nothing_was_learned(
    positives: AnyArray, metrics: Sequence[MetricSolution], any_positive: bool
) -> None:
    """Warn if M is almost zero, or if no decision is positive."""
    for label, solution in zip(positives.tolist(), metrics, strict=False):
        if solution.loss > 1 - 1e-3:
            warn(
                f"The metric of class {label!r} collapsed to almost zero (training hinge "
                f"{solution.loss:.4f}): lower lam or gamma.",
            )
    if len(positives) > 1 and not any_positive:
        warn(
            "Every one-vs-rest problem predicts the negative class for all training series: lower "
            "gamma or lam, and centre and scale the channels if they have offsets.",
        )


# ---- one-vs-rest problems

# Series to learn from, series to decide on, and the positive class.
Problem: TypeAlias = tuple[IntArray | slice, IntArray | slice, int]


@dataclass(frozen=True, eq=False)
class Alignments:
    """Series in memory, seen through their alignments with landmarks.

    Parameters
    ----------
    values
        T, shape (series, landmarks, d, d), if metrics are learned; else K_I, (series, landmarks).
    codes, landmark_codes
        Classes of series and landmarks, 0 to n_classes - 1.
    weights
        Weight of each series in the loss.
    n_classes
        Number of classes, two or more.
    regularizer
        Penalty of the metrics.
    n_jobs
        Threads for the problems of the classes.
    """

    values: npt.NDArray[np.floating[Any]]
    codes: IntArray
    landmark_codes: IntArray
    weights: FloatArray
    n_classes: int
    regularizer: str
    n_jobs: int | None

    @property
    def learns_metric(self) -> bool:
        """Whether each problem has a metric; otherwise M = I."""
        return self.values.ndim == 4

    @property
    def n_landmarks(self) -> int:
        """Number of landmarks."""
        return len(self.landmark_codes)

    @property
    def positives(self) -> range:
        """Positive class of each problem: every class, or the second of two."""
        return range(1, 2) if self.n_classes == 2 else range(self.n_classes)

    def first_landmarks(self, count: int) -> Alignments:
        """Return the same data with the first `count` landmarks only."""
        return replace(
            self, values=self.values[:, :count], landmark_codes=self.landmark_codes[:count]
        )

    def take(self, rows: IntArray, weights: FloatArray) -> Alignments:
        """Return the same data with some of the series only, and their weights."""
        return replace(self, values=self.values[rows], codes=self.codes[rows], weights=weights)

    def solve(
        self, gamma: float, lam: float, progress: Progress = silent
    ) -> tuple[list[MetricSolution], list[SeparatorSolution], bool]:
        """Learn the metric and the separator of every problem; say if a decision is positive."""
        problems: list[Problem] = [(slice(None), slice(None), c) for c in self.positives]
        metrics: list[MetricSolution] = []
        if self.learns_metric:
            paths = self._metric_paths(problems, [(gamma, lam)], progress)
            metrics = [metric for (metric,) in paths]
        solved = self._separate(problems, [m.metric for m in metrics], [gamma])
        separators = [separator for ((separator, _),) in solved]
        return metrics, separators, any((values > 0.0).any() for ((_, values),) in solved)

    def held_out_decisions(
        self,
        splits: Sequence[Split],
        parameters: Sequence[dict[str, float]],
        progress: Progress = silent,
    ) -> list[FloatArray]:
        """Learn on the first part of each split, decide on the second, for all parameters.

        Shape (parameters, test, problems) for each split. Problems of all classes and splits are
        solved side by side.
        """
        problems: list[Problem] = [(*split, c) for split in splits for c in self.positives]
        if self.learns_metric:
            values = self._decide_with_metrics(problems, parameters, progress)
        else:
            gammas = [p["gamma"] for p in parameters]
            paths = self._separate(problems, [], gammas, progress)
            values = [np.stack([decided for _, decided in path]) for path in paths]
        n = len(self.positives)
        return [np.stack(values[k : k + n], axis=-1) for k in range(0, len(values), n)]

    def _decide_with_metrics(
        self,
        problems: Sequence[Problem],
        parameters: Sequence[dict[str, float]],
        progress: Progress,
    ) -> list[FloatArray]:
        """Return the decisions of each problem, shape (parameters, test)."""
        pairs = [(p["gamma"], p["lam"]) for p in parameters]
        paths = self._metric_paths(problems, pairs, lambda done, of: progress(done, 2 * of))
        # With one gamma in both stages only the strength of the penalty matters (lam gamma^2, or
        # lam gamma for a norm), so separators for equal strengths are solved once.
        strengths = [problem_strength(gamma, lam, self.regularizer) for gamma, lam in pairs]
        decisions = dict[float, list[FloatArray]]()
        n = len(set(strengths))
        for k, (strength, (gamma, _)) in enumerate(zip(strengths, pairs, strict=True)):
            if strength not in decisions:
                solved = self._separate(problems, [path[k].metric for path in paths], [gamma])
                decisions[strength] = [values for ((_, values),) in solved]
                progress(n + len(decisions), 2 * n)
        return [np.stack([decisions[s][k] for s in strengths]) for k in range(len(problems))]

    def _metric_paths(
        self,
        problems: Sequence[Problem],
        pairs: Sequence[tuple[float, float]],
        progress: Progress = silent,
    ) -> list[list[MetricSolution]]:
        """Learn the metrics of each problem for all gamma and lam."""
        sums = self._sum_by_class()
        total = sums.sum(axis=1)

        def path(problem: Problem) -> list[MetricSolution]:
            rows, _, positive = problem
            # Mean signed products: landmarks of the positive class count +1, others -1.
            Z = (2.0 * sums[rows, positive] - total[rows]) / self.n_landmarks
            return solve_metric_path(
                Z, self._labels(problem), pairs=pairs, regularizer=self.regularizer,
                sample_weight=self.weights[rows],
            )  # fmt: skip

        return map_threads(path, problems, n_jobs=self.n_jobs, progress=progress)

    def _separate(
        self,
        problems: Sequence[Problem],
        metrics: Sequence[FloatArray],
        gammas: Sequence[float],
        progress: Progress = silent,
    ) -> list[list[tuple[SeparatorSolution, FloatArray]]]:
        """Learn the separators of each problem for all gammas; return them with their decisions.

        There are no metrics if M = I.
        """

        def separate(
            problem: Problem, K: npt.NDArray[np.floating[Any]]
        ) -> list[tuple[SeparatorSolution, FloatArray]]:
            rows, test, _ = problem
            path = solve_separator_path(
                K[rows], self._labels(problem), gammas=gammas, sample_weight=self.weights[rows]
            )
            return [(solution, np.asarray(K @ solution.coef)[test]) for solution in path]

        if not metrics:
            pairs = [(problem, self.values) for problem in problems]
            return map_threads(
                lambda pair: separate(*pair), pairs, n_jobs=self.n_jobs, progress=progress
            )
        results = []
        # Few similarities are in memory.
        step = max(1, _HELD_BYTES // (8 * len(self.codes) * self.n_landmarks))
        for begin in range(0, len(metrics), step):
            K = self._project(np.stack(metrics[begin : begin + step]))
            pairs = list(zip(problems[begin : begin + step], K, strict=True))
            results += map_threads(lambda pair: separate(*pair), pairs, n_jobs=self.n_jobs)
        return results

    def _labels(self, problem: Problem) -> FloatArray:
        """Return +1 for the positive class and -1 for the rest, of the series to learn from."""
        rows, _, positive = problem
        return np.where(self.codes[rows] == positive, 1.0, -1.0)

    def _sum_by_class(self) -> FloatArray:
        """Return T summed over the landmarks of each class, shape (series, classes, d, d)."""
        T = self.values
        sums = np.zeros((len(T), self.n_classes, *T.shape[2:]))
        members = [np.flatnonzero(self.landmark_codes == k) for k in range(self.n_classes)]

        def add(rows: slice) -> None:
            for k, of_class in enumerate(members):
                if len(of_class):
                    T[rows, of_class].sum(axis=1, dtype=np.float64, out=sums[rows, k])

        map_threads(add, self._row_blocks(), n_jobs=self.n_jobs)
        return sums

    def _project(self, metrics: FloatArray) -> list[FloatArray]:
        """Return K_M, shape (series, landmarks), for each of a stack of metrics."""
        T = self.values
        m, n, d, _ = T.shape
        flat = metrics.reshape(len(metrics), d * d).astype(T.dtype, copy=False)
        K = [np.empty((m, n)) for _ in metrics]

        def project(rows: slice) -> None:
            some = T[rows]
            for out, values in zip(K, flat @ some.reshape(-1, d * d).T, strict=True):
                out[rows] = values.reshape(len(some), n)

        map_threads(project, self._row_blocks(), n_jobs=self.n_jobs)
        return K

    def _row_blocks(self) -> list[slice]:
        """Cut the series into blocks, which do not depend on the number of threads."""
        step = max(1, _BLOCK_BYTES * len(self.codes) // max(1, self.values.nbytes))
        return [slice(start, start + step) for start in range(0, len(self.codes), step)]
