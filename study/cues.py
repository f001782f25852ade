"""Synthetic families of series whose two classes differ in one property only, the cue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Series = npt.NDArray[np.float64]
Generator = np.random.Generator

# Lengths of series. They are the same in both classes, and so are all amplitudes of noise.
_SHORTEST, _LONGEST = 80, 120


def _length(rng: Generator) -> int:
    return int(rng.integers(_SHORTEST, _LONGEST + 1))


def _noise(rng: Generator, n_channels: int, n_steps: int, size: float = 1.0) -> Series:
    """Return smooth noise: moving averages of white noise, with standard deviation `size`."""
    white = rng.normal(size=(n_channels, n_steps + 4))
    windows = np.lib.stride_tricks.sliding_window_view(white, 5, axis=1)
    smooth: Series = size * windows.sum(axis=2) / np.sqrt(5.0)
    return smooth


def _bump(n_steps: int, centre: float, width: float) -> Series:
    bump: Series = np.exp(-0.5 * ((np.arange(n_steps) - centre) / width) ** 2)
    return bump


def _wave(rng: Generator, n_steps: int, period: float) -> Series:
    """Return a sine of unit amplitude with a random phase."""
    phase = rng.uniform(0.0, 2.0 * np.pi)
    wave: Series = np.sin(2.0 * np.pi * np.arange(n_steps) / period + phase)
    return wave


def _level(rng: Generator, second: bool) -> Series:
    x = _noise(rng, 10, _length(rng))
    x[0] += 0.4 if second else -0.4
    return x


def _shape(rng: Generator, second: bool) -> Series:
    """One slow cycle with the same mean and variance, triangular or square."""
    n = _length(rng)
    sine = np.sin(2.0 * np.pi * (np.arange(n) + 0.5) / n)
    x = _noise(rng, 2, n, 0.8)
    x[0] += 1.2 * (np.sign(sine) if second else np.sqrt(3.0) * 2.0 / np.pi * np.arcsin(sine))
    return x


def _order(rng: Generator, second: bool) -> Series:
    """Two events, one in each channel; the class is which comes first."""
    n = _length(rng)
    early = rng.uniform(0.1, 0.7)
    late = rng.uniform(early + 0.2, 0.9)
    x = _noise(rng, 2, n, 0.5)
    x[int(second)] += 2.0 * _bump(n, early * n, 4.0)
    x[1 - int(second)] += 2.0 * _bump(n, late * n, 4.0)
    return x


def _motif(rng: Generator, second: bool) -> Series:
    """A short wave at a random place in one of five channels: up and down, or down and up."""
    n = _length(rng)
    x = _noise(rng, 5, n, 0.7)
    at = int(rng.integers(0, n - 20))
    wave = np.sin(2.0 * np.pi * (np.arange(20) + 0.5) / 20)
    x[2, at : at + 20] += (-2.5 if second else 2.5) * wave
    return x


def _tempo(rng: Generator, second: bool) -> Series:
    n = _length(rng)
    period = rng.uniform(11.0, 13.0) if second else rng.uniform(13.5, 16.0)
    x = _noise(rng, 2, n)
    x += np.array([[1.0], [0.5]]) * _wave(rng, n, period)
    return x


def _amplitude(rng: Generator, second: bool) -> Series:
    n = _length(rng)
    x = _noise(rng, 10, n, 0.7)
    x[0] += (1.6 if second else 0.9) * _wave(rng, n, 15.0)
    return x


def _duration(rng: Generator, second: bool) -> Series:
    """A plateau at a random place, long or short. The level of a series says nothing."""
    n = _length(rng)
    width = int(rng.integers(22, 30)) if second else int(rng.integers(13, 21))
    at = int(rng.integers(5, n - width - 5))
    x = _noise(rng, 2, n, 0.45) + rng.normal(size=(2, 1))
    x[0, at : at + width] += 2.0
    return x


def _correlation(rng: Generator, second: bool) -> Series:
    n = _length(rng)
    x = _noise(rng, 4, n)
    x[1] = (0.35 if second else -0.35) * x[0] + np.sqrt(1.0 - 0.35**2) * x[1]
    return x


def _one_of_twenty(rng: Generator, second: bool) -> Series:
    """Twenty channels of noise; one has a slow wave in one of two phases."""
    n = _length(rng)
    x = _noise(rng, 20, n)
    x[7] += (-0.8 if second else 0.8) * np.sin(np.linspace(0.0, 2.0 * np.pi, n))
    return x


@dataclass(frozen=True)
class Cue:
    """A family: its name in documents, what its classes differ in, and how a series is made."""

    title: str
    difference: str
    make: Callable[[Generator, bool], Series]


CUES = {
    "level": Cue("level", "mean of one of ten channels", _level),
    "shape": Cue("shape", "a slow cycle is triangular or square", _shape),
    "order": Cue("order of events", "which of two channels has its event first", _order),
    "motif": Cue(
        "motif at a random place", "20 steps go up and down, or down and up; five channels", _motif
    ),
    "tempo": Cue("tempo", "a wave has a period of 11-13 or 13.5-16 steps", _tempo),
    "amplitude": Cue("amplitude", "a wave in one of ten channels is small or large", _amplitude),
    "duration": Cue(
        "duration", "a plateau lasts 13-20 or 22-29 steps, at a random place", _duration
    ),
    "correlation": Cue(
        "correlation", "sign of the correlation of two of four channels", _correlation
    ),
    "channel": Cue(
        "one channel of twenty", "sign of a slow wave in one of twenty channels", _one_of_twenty
    ),
}


def make_cue(name: str, n_series: int, seed: int) -> tuple[list[Series], npt.NDArray[np.int64]]:
    """Return series (channels, time) and labels 0 and 1 in turn."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n_series) % 2
    return [CUES[name].make(rng, bool(label)) for label in labels], labels
