"""Snippets: short landmarks, compared with a series at every step.

A snippet is a window of a training series: a few values, `dilation` steps apart, in some channels.
Half of the snippets are averaged: each value is the mean of as many neighbouring steps as the
dilation. Around every step of a series, as many values are compared with it by their squared
distance; beyond its ends a series keeps its first and last value, and gaps are interpolated. Some
snippets are compared by their values, some by their shape, some by how strongly the steps follow
them. A snippet occurs at a step if the distance is below a threshold, of which it has several. Its
features are how often it occurs: the share of the steps, and the count relative to the longest
training series.

In the terms of alignments: a landmark of one step is aligned with every step of a series, and its
aligned product is the mean of the series' rows. Here a row says which snippets occur at the step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from slts._typing import FloatArray, IntArray
from slts.alignment import array_module
from slts.alignment.cpu import native
from slts.execution import Block, check_stopped, map_blocks, partition, thread_count
from slts.features.feature_map import Attribution, PlainState, Resources
from slts.features.row_map import ChannelScale, require
from slts.series import SeriesBatch
from slts.series.values import fill_gaps
from slts.solvers.ridge import matmul, on_host

# Values of a snippet, in each channel.
_LENGTH = 9
# Thresholds are these quantiles of the distances to a series of the same class.
_QUANTILES = (0.02, 0.1, 0.35, 0.75)
# Most channels of a snippet, and of one that is compared by strength: strengths add up, and noise
# of other channels hides that of one.
_MOST_CHANNELS, _MOST_STRENGTH_CHANNELS = 9, 3
# The steps nearest to a snippet that is so much larger are those that follow it most, whatever else
# they do.
_STRENGTH_FACTOR = 100.0
# Channels that a description names.
_MOST_NAMED = 4
# About 10 ms of work: long enough to hide the call, short enough for progress, balance and Ctrl-C.
_BLOCK_OPERATIONS = 5e7
# Parts of the snippets that threads work on, if there are few series.
_PARTS = 8
# Functions of the features that are worth sending them to a GPU.
_MANY_FUNCTIONS = 200
# Bytes of distances, or of met thresholds, that are held at once.
_HELD = 2**19


@dataclass(frozen=True, eq=False)
class Snippets(PlainState):
    """Windows of training series, in ascending order of their dilations.

    Parameters
    ----------
    values
        Values in the units of the data, shape (channels of all snippets, values).
    first
        Snippet k has the rows first[k], ..., first[k + 1] - 1 of `values`; shape (snippets + 1,).
    channels
        The channel of each row of `values`.
    dilations
        Steps from one value of each snippet to the next.
    averaged
        Whether each value is the mean of as many neighbouring steps as the dilation.
    shape_only
        Whether only second differences are compared, scaled to unit mean square: level, slope and
        amplitude do not count.
    by_strength
        Whether a snippet occurs where steps follow it strongly: they are compared with a
        hundredfold exaggeration of how it moves around its mean, so that level hardly counts.
    thresholds
        Largest squared distances at which a snippet occurs, shape (snippets, thresholds).
    shares
        Mean share of the steps of a training series that are within each threshold.
    series, starts
        The training series of each snippet and its first step, which is negative if the series
        is shorter than the snippet.
    scale
        Scale of the channels.
    longest
        Length of the longest training series; None if all have the same length, so that counts
        say no more than shares.
    """

    values: FloatArray
    first: IntArray
    channels: IntArray
    dilations: IntArray
    averaged: npt.NDArray[np.bool_]
    shape_only: npt.NDArray[np.bool_]
    by_strength: npt.NDArray[np.bool_]
    thresholds: FloatArray
    shares: FloatArray
    series: IntArray
    starts: IntArray
    scale: ChannelScale
    longest: int | None

    def __post_init__(self) -> None:
        # The kernel trusts these arrays.
        n, n_rows, n_steps = len(self.dilations), *self.values.shape
        require(len(self.first) == n + 1 and self.first[0] == 0, "first")
        require(bool((np.diff(self.first) > 0).all()) and self.first[-1] == n_rows, "first")
        require(n > 0 and n_steps % 2 == 1 and n_steps >= 3, "values")
        in_range = (self.channels >= 0) & (self.channels < len(self.scale.centre))
        require(self.channels.shape == (n_rows,) and bool(in_range.all()), "channels")
        require(bool((self.dilations >= 1).all()), "dilations")
        require(bool((np.diff(self.dilations) >= 0).all()), "dilations")
        require(self.thresholds.shape == self.shares.shape, "thresholds")
        for name in ("averaged", "shape_only", "by_strength", "thresholds", "series", "starts"):
            require(len(getattr(self, name)) == n, name)
        require(self.longest is None or self.longest > 0, "longest")

    @classmethod
    def draw(cls, batch: SeriesBatch, codes: IntArray, count: int, seed: int) -> Snippets:
        """Draw snippets equally from all classes.

        Dilations are log-uniform up to the longest series, and so are numbers of channels. A third
        of the snippets are compared by their shape only, and a third by strength; half of them are
        averaged. `series` are positions in the batch, and `shares` are not known yet.
        """
        rng = np.random.default_rng(seed)
        scale = ChannelScale.fit(batch, "standard")
        batch = fill_gaps(batch, scale.centre)
        lengths, longest = batch.lengths, int(batch.lengths.max())
        octaves = np.log2(max(1.0, (longest - 1) / (_LENGTH - 1)))
        dilations = np.sort(2.0 ** rng.uniform(0.0, octaves, count)).astype(np.int64)
        kinds = rng.integers(0, 3, count)
        most = np.where(kinds == 2, _MOST_STRENGTH_CHANNELS, _MOST_CHANNELS).clip(
            max=batch.n_channels
        )
        widths = (2.0 ** rng.uniform(0.0, np.log2(most + 1))).astype(np.int64)
        members = [np.flatnonzero(codes == c) for c in range(int(codes.max()) + 1)]
        # Classes in random order, each as often as the others.
        order = rng.permutation(np.arange(count) % len(members))
        series = np.array([rng.choice(members[c]) for c in order])
        others = np.array([rng.choice(members[c]) for c in order])
        span = (_LENGTH - 1) * dilations
        room = lengths[series] - span
        starts = np.where(room > 0, rng.integers(0, np.maximum(room, 1)), (room - 1) // 2)
        channels = [np.sort(rng.permutation(batch.n_channels)[:width]) for width in widths]
        averaged = rng.random(count) < 0.5
        middles = starts + span // 2
        values = [
            _window(batch.values[batch.offsets[p] : batch.offsets[p + 1], own].T, *window)
            for p, own, *window in zip(series, channels, middles, dilations, averaged, strict=True)
        ]
        drawn = cls(
            values=np.concatenate(values),
            first=np.append(0, np.cumsum(widths)),
            channels=np.concatenate(channels),
            dilations=dilations,
            averaged=averaged,
            shape_only=kinds == 1,
            by_strength=kinds == 2,
            thresholds=np.zeros((count, len(_QUANTILES))),
            shares=np.zeros((count, len(_QUANTILES))),
            series=series,
            starts=starts,
            scale=scale,
            longest=None if (lengths == longest).all() else longest,
        )
        thresholds = np.empty_like(drawn.thresholds)
        for p in np.unique(others):
            for which, distances in drawn.distances(batch[p : p + 1], np.flatnonzero(others == p)):
                thresholds[which] = _row_quantiles(distances)
        return replace(drawn, thresholds=thresholds)

    def __len__(self) -> int:
        """Return the number of snippets."""
        return len(self.dilations)

    @property
    def n_steps(self) -> int:
        """Number of values of a snippet in each channel."""
        return int(self.values.shape[1])

    def channels_of(self, snippet: int) -> IntArray:
        """Return the channels of one snippet."""
        return self.channels[self.first[snippet] : self.first[snippet + 1]]

    def values_of(self, snippet: int) -> FloatArray:
        """Return the values of one snippet in the units of the data, shape (channels, values)."""
        return self.values[self.first[snippet] : self.first[snippet + 1]]

    def compared(self, snippet: int) -> str:
        """Return what of one snippet is compared: "values", "shape only" or "by strength"."""
        if self.shape_only[snippet]:
            return "shape only"
        return "by strength" if self.by_strength[snippet] else "values"

    def reach(self, snippet: int) -> IntArray:
        """Return the distances of the steps that one snippet sees from its middle step."""
        gap, half = int(self.dilations[snippet]), self.n_steps // 2
        if self.averaged[snippet]:
            return np.arange(-half * gap - (gap - 1) // 2, half * gap + gap // 2 + 1)
        return gap * np.arange(-half, half + 1)

    def prominent_rows(self, snippet: int, most: int) -> IntArray:
        """Return the rows of `values_of` to show first, in ascending order of their channels.

        They are farthest from the mean of their channel, bend most if only the shape counts, or
        move most if strength counts.
        """
        spread = self.scale.spread[self.channels_of(snippet), np.newaxis]
        if self.shape_only[snippet]:
            shown = np.diff(self.values_of(snippet), 2, axis=1)
        elif self.by_strength[snippet]:
            shown = _around_mean(self.values_of(snippet))
        else:
            centre = self.scale.centre[self.channels_of(snippet), np.newaxis]
            shown = self.values_of(snippet) - centre
        size = np.square(shown / spread).sum(axis=1)
        return np.sort(np.argsort(-size, kind="stable")[:most])

    def describe(
        self, snippet: int, channel_names: Sequence[str] | None = None, series: str | None = None
    ) -> str:
        """Return where a snippet comes from: "steps 30 to 38 of recording 17, channel x".

        One that is averaged has "means of 4 steps around 30, 34, ..., 62 of recording 17".

        Parameters
        ----------
        snippet
            Its position.
        channel_names
            Names of all channels; None numbers them. The only channel of a series is not named.
        series
            Name of its training series; None numbers it.
        """
        start, gap = int(self.starts[snippet]), int(self.dilations[snippet])
        last = start + gap * (self.n_steps - 1)
        steps = f"steps {start} to {last}"
        if gap > 1:
            steps = f"steps {start}, {start + gap}, ..., {last}"
        if gap > 1 and self.averaged[snippet]:
            steps = f"means of {gap} steps around {start}, {start + gap}, ..., {last}"
        if start < 0:
            # It is longer than its series.
            each = f"means of {gap} steps" if self.averaged[snippet] else f"every {gap} steps"
            steps = "all steps" if gap == 1 else each
        text = f"{steps} of {series or f'training series {self.series[snippet]}'}"
        if len(self.scale.centre) == 1:
            return text
        rows = self.prominent_rows(snippet, _MOST_NAMED)
        own = self.channels_of(snippet)
        names = [str(k) if channel_names is None else channel_names[k] for k in own[rows]]
        if len(own) > len(names):
            names.append(f"{len(own) - len(names)} more")
        listed = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
        return f"{text}, channel{'s' if len(own) > 1 else ''} {listed}"

    @property
    def name(self) -> str:
        """Name among the maps of a model."""
        return "snippets"

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the features of a series: (snippets, thresholds, kinds).

        The kinds are the share of the steps and, if lengths differ, the relative count.
        """
        return (*self.thresholds.shape, 1 if self.longest is None else 2)

    @property
    def n_landmarks(self) -> int:
        """Number of snippets."""
        return len(self)

    def __call__(self, batch: SeriesBatch, resources: Resources) -> FloatArray:
        """Return the features of series, shape (series, snippets, thresholds, kinds)."""
        counts = np.empty((len(batch), *self.thresholds.shape), dtype=np.int32)
        features = np.empty((len(batch), *self.shape))
        divisors = self._divisors(batch.lengths)[:, np.newaxis, np.newaxis]
        batch = fill_gaps(batch, self.scale.centre)
        target, token = native.selected_target(), native.CancelToken()
        workers, (parts, costs) = thread_count(resources.n_jobs), self._parts

        def task(block: Block) -> None:
            rows = slice(block.row_begin, block.row_end)
            begin, end = parts[block.column_begin], parts[block.column_end]
            native.window_counts(
                self._windows, batch.values, batch.offsets, rows.start, rows.stop, begin, end,
                counts, target, token,
            )  # fmt: skip
            some = counts[rows, begin:end, :, np.newaxis]
            np.divide(some, divisors[rows], out=features[rows, begin:end])

        blocks = partition(batch.lengths, costs, block_cost=_BLOCK_OPERATIONS, workers=workers)
        map_blocks(task, blocks, n_jobs=workers, cancel=token.cancel)
        return features

    def decide(self, batch: SeriesBatch, coef: FloatArray, resources: Resources) -> FloatArray:
        """Return the outputs <coef[c], features>, shape (series, outputs)."""
        flat = self(batch, resources).reshape(len(batch), coef[0].size)
        functions = coef.reshape(len(coef), -1).T
        if len(coef) < _MANY_FUNCTIONS:
            # It takes longer to send the features to a GPU.
            return matmul(flat, functions)
        arrays = array_module(resources.device, 2.0 * len(coef) * flat.size)
        return on_host(matmul(arrays.asarray(flat), arrays.asarray(functions)))

    def by_landmark(self, batch: SeriesBatch, coef: FloatArray, resources: Resources) -> FloatArray:
        """Return the part of each snippet in the outputs, shape (series, outputs, snippets)."""
        features = self(batch, resources)
        return np.asarray(np.einsum("ikqm,ckqm->ick", features, coef, optimize=True))

    def usual(self, lengths: IntArray, coef: FloatArray) -> FloatArray:
        """Return the part of each snippet if all steps were mean training steps.

        Shape (series, outputs, snippets).
        """
        steps = lengths[:, np.newaxis] / self._divisors(lengths)
        return np.asarray(np.tensordot(steps, self._step_terms(coef)[1], axes=1).swapaxes(1, 2))

    def step_weights(self, n_steps: int, coef: FloatArray) -> FloatArray:
        """Return what a step that meets some thresholds adds, compared with a mean training step.

        Shape (snippets, thresholds + 1, outputs), by the number of thresholds that are met.
        """
        shares = 1.0 / self._divisors(np.array([n_steps]))[0]
        return np.asarray(np.tensordot(shares, self._step_terms(coef)[0], axes=1))

    def _step_terms(self, coef: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return `step_weights` and the part of a mean training step, by the kind of the features.

        Shapes (kinds, snippets, thresholds + 1, outputs) and (kinds, snippets, outputs). Those of
        the last coefficients are kept: they are most of the work of an explanation.
        """
        last = self.__dict__.get("_last")
        if last is None or last[0] is not coef:
            per_step = coef.transpose(3, 1, 2, 0)
            usual = np.einsum("mkqc,kq->mkc", per_step, self.shares)
            # Thresholds ascend: a step that meets k of them meets the k largest.
            sums = np.cumsum(per_step[:, :, ::-1], axis=2)
            sums = np.concatenate([np.zeros_like(sums[:, :, :1]), sums], axis=2)
            more = np.ascontiguousarray(sums - usual[:, :, np.newaxis])
            last = coef, more, np.ascontiguousarray(usual)
            self.__dict__["_last"] = last
        return last[1], last[2]

    def attribute(
        self, series: SeriesBatch, coef: FloatArray, landmark: int | None = None
    ) -> Attribution:
        """Send linear functions of the features of one series back to its steps and channels.

        What a snippet adds at a step, compared with a mean training step, is divided among the
        values that it is compared with, in proportion to the squares of its own compared values,
        and evenly among the steps of a mean. The rest is what mean training steps add, and what
        belongs to missing values or beyond the ends. `landmark` restricts the sums to one snippet.
        """
        which = np.arange(len(self)) if landmark is None else np.array([landmark])
        weights, target = self.step_weights(series.n_steps, coef), native.selected_target()
        terms = np.zeros((series.n_channels, series.n_steps, len(coef)))
        totals = np.zeros((len(self), len(coef)))
        for part, met in self._rows(native.window_met, np.uint8, series, which):
            native.window_attribution(self._windows, part, met, weights, terms, totals, target)
        usual = self.usual(series.lengths, coef)[0][:, which]
        contributions = terms.transpose(2, 1, 0)
        contributions[:, np.isnan(series.values)] = 0.0
        rest = totals.sum(axis=0) + usual.sum(axis=1) - contributions.sum(axis=(1, 2))
        return Attribution(contributions, rest)

    def occurrences(self, series: SeriesBatch, which: IntArray) -> npt.NDArray[np.uint8]:
        """Return how many thresholds of some snippets each step of one series meets.

        Shape (snippets, steps). `which` is in ascending order.
        """
        parts = self._rows(native.window_met, np.uint8, series, which)
        return np.concatenate([np.empty((0, series.n_steps), np.uint8), *(met for _, met in parts)])

    def _divisors(self, lengths: IntArray) -> FloatArray:
        """Return what counts are divided by, shape (series, kinds)."""
        steps = lengths.astype(np.float64)[:, np.newaxis]
        if self.longest is None:
            return steps
        return np.hstack([steps, np.full_like(steps, self.longest)])

    def distances(
        self, series: SeriesBatch, which: IntArray
    ) -> Iterator[tuple[IntArray, FloatArray]]:
        """Yield some snippets and their squared distances to every step of one series.

        Shape (snippets, steps). `which` is in ascending order.
        """
        return self._rows(native.window_distances, np.float64, series, which)

    def _rows(
        self, kernel: Any, dtype: type[np.generic], series: SeriesBatch, which: IntArray
    ) -> Iterator[tuple[IntArray, npt.NDArray[Any]]]:
        """Yield some snippets and a row of what a kernel computes for each."""
        if len(which) and not 0 <= which[0] <= which[-1] < len(self):
            raise IndexError(f"There are {len(self)} snippets, 0 to {len(self) - 1}. Got {which}.")
        series = fill_gaps(series, self.scale.centre)
        target = native.selected_target()
        step = max(1, _HELD // (series.n_steps * np.dtype(dtype).itemsize))
        for begin in range(0, len(which), step):
            check_stopped()
            part = which[begin : begin + step]
            out = np.empty((len(part), series.n_steps), dtype)
            kernel(self._windows, part, series.values, out, target)
            yield part, out

    @cached_property
    def _windows(self) -> Any:
        """The snippets as the kernel takes them: scaled as the series they are compared with."""
        centre, spread, flat = self.scale.centre, self.scale.spread, native.WINDOW_FLATNESS
        own = ChannelScale(centre[self.channels], spread[self.channels], squash=False)
        rows = np.ascontiguousarray(own(self.values.T).T)
        shapes, far = np.repeat([self.shape_only, self.by_strength], np.diff(self.first), axis=1)
        bends = np.diff(rows[shapes], 2, axis=1)
        rows[shapes] = 0.0
        rows[shapes, 1:-1] = bends / np.sqrt(np.mean(bends**2, axis=1, keepdims=True) + flat)
        moves = _around_mean(rows[far])
        size = np.sqrt(np.sum(moves**2, axis=1, keepdims=True) + flat)
        rows[far] = _STRENGTH_FACTOR * moves / size
        return native.Windows(
            rows, self.first, self.channels, self.dilations, self.averaged, self.shape_only,
            self.thresholds, centre, spread,
        )  # fmt: skip

    @cached_property
    def _parts(self) -> tuple[list[int], FloatArray]:
        """Bounds of a few parts of the windows, and the operations of each for one step.

        Threads share a single series, and rarely read it again.
        """
        bounds = np.unique(np.linspace(0, len(self), _PARTS + 1).astype(np.int64))
        costs = np.diff(np.array(self._windows.first)[bounds]) * float(self.n_steps)
        return bounds.tolist(), costs


def _window(x: FloatArray, middle: int, dilation: int, averaged: bool) -> FloatArray:
    """Return what the kernel compares around a step of a series, shape (channels, steps).

    No dilation is larger than the series, and beyond its ends edge values repeat.
    """
    n_steps = x.shape[1]
    dilation = min(dilation, n_steps)
    steps = middle + dilation * (np.arange(_LENGTH) - _LENGTH // 2)
    if averaged:
        steps = steps[:, np.newaxis] + np.arange(dilation) - (dilation - 1) // 2
    values = x[:, np.clip(steps, 0, n_steps - 1)]
    return np.asarray(values.mean(axis=2) if averaged else values)


def _around_mean(values: FloatArray) -> FloatArray:
    """Return each row minus its mean."""
    return np.asarray(values - values.mean(axis=1, keepdims=True))


def _row_quantiles(values: FloatArray) -> FloatArray:
    """Return the quantiles of each row, as `np.quantile`, which takes longer than to sort a row."""
    ordered, places = np.sort(values, axis=1), np.multiply(_QUANTILES, values.shape[1] - 1)
    below = places.astype(np.int64)
    low, high = ordered[:, below], ordered[:, np.minimum(below + 1, values.shape[1] - 1)]
    return np.asarray(low + (places - below) * (high - low))
