"""Made-up families of series whose two classes differ in one thing only, the cue."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Series = npt.NDArray[np.float64]
Generator = np.random.Generator

# Noise is large enough that no method is perfect on 40 series.
_SHORTEST, _LONGEST = 80, 120


def _length(rng: Generator) -> int:
    return int(rng.integers(_SHORTEST, _LONGEST + 1))


def _noise(rng: Generator, n_channels: int, n_steps: int, size: float = 1.0) -> Series:
    """Return smooth noise: a moving average of white noise, of unit variance times `size`."""
    white = rng.normal(size=(n_channels, n_steps + 4))
    return size * sum(white[:, k : k + n_steps] for k in range(5)) / np.sqrt(5.0)


def _bump(n_steps: int, centre: float, width: float) -> Series:
    return np.exp(-0.5 * ((np.arange(n_steps) - centre) / width) ** 2)


def _level(rng: Generator, second: bool) -> Series:
    x = _noise(rng, 2, _length(rng))
    x[0] += 0.5 if second else -0.5
    return x


def _shape(rng: Generator, second: bool) -> Series:
    """A rise of the same height, straight or in a curve."""
    n = _length(rng)
    time = np.linspace(0.0, 1.0, n)
    x = _noise(rng, 2, n, 0.8)
    x[0] += 2.0 * (time**2 if second else np.sqrt(time))
    return x


def _order(rng: Generator, second: bool) -> Series:
    """Two events, one in each channel; the class is which comes first."""
    n = _length(rng)
    early, late = np.sort(rng.uniform(0.1, 0.9, 2))
    while late - early < 0.2:
        early, late = np.sort(rng.uniform(0.1, 0.9, 2))
    x = _noise(rng, 2, n, 0.5)
    x[int(second)] += 2.0 * _bump(n, early * n, 4.0)
    x[1 - int(second)] += 2.0 * _bump(n, late * n, 4.0)
    return x


def _motif(rng: Generator, second: bool) -> Series:
    """A short wave at a random place of one of five channels, upright or upside down."""
    n = _length(rng)
    x = _noise(rng, 5, n, 0.7)
    at = int(rng.integers(0, n - 20))
    x[2, at : at + 20] += (-2.5 if second else 2.5) * np.sin(np.linspace(0.0, 3.0 * np.pi, 20))
    return x


def _tempo(rng: Generator, second: bool) -> Series:
    n = _length(rng)
    period = rng.uniform(10.0, 13.0) if second else rng.uniform(13.5, 17.5)
    phase = rng.uniform(0.0, 2.0 * np.pi)
    wave = np.sin(2.0 * np.pi * np.arange(n) / period + phase)
    return _noise(rng, 2, n, 0.7) + np.array([[1.0], [0.5]]) * wave


def _amplitude(rng: Generator, second: bool) -> Series:
    n = _length(rng)
    wave = np.sin(2.0 * np.pi * np.arange(n) / 15.0 + rng.uniform(0.0, 2.0 * np.pi))
    return _noise(rng, 2, n, 0.8) + (1.5 if second else 0.9) * wave


def _duration(rng: Generator, second: bool) -> Series:
    """A plateau at a random place, long or short."""
    n = _length(rng)
    width = int(rng.integers(22, 30)) if second else int(rng.integers(13, 21))
    at = int(rng.integers(5, n - width - 5))
    x = _noise(rng, 2, n, 0.6)
    x[0, at : at + width] += 2.0
    return x


def _correlation(rng: Generator, second: bool) -> Series:
    n = _length(rng)
    shared, own = _noise(rng, 1, n)[0], _noise(rng, 1, n)[0]
    other = (0.6 if second else -0.6) * shared + 0.8 * own
    return np.stack([shared, other])


def _one_of_twenty(rng: Generator, second: bool) -> Series:
    """Twenty channels of noise; one has a slow wave in one of two phases."""
    n = _length(rng)
    x = _noise(rng, 20, n)
    x[7] += (-0.9 if second else 0.9) * np.sin(np.linspace(0.0, 2.0 * np.pi, n))
    return x


CUES: dict[str, Callable[[Generator, bool], Series]] = {
    "level": _level,
    "shape": _shape,
    "order of events": _order,
    "motif at a random place": _motif,
    "tempo": _tempo,
    "amplitude": _amplitude,
    "duration": _duration,
    "correlation of channels": _correlation,
    "one channel of twenty": _one_of_twenty,
}


def make_cue(name: str, n_series: int, seed: int) -> tuple[list[Series], npt.NDArray[np.int64]]:
    """Return series (channels, time) and labels 0 and 1 in turn."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n_series) % 2
    return [CUES[name](rng, bool(label)) for label in labels], labels
