"""Pairs to align, a check that all libraries agree on them, and the contenders."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import environ
from typing import Any

import numpy as np
from measure import Contender, seconds_of
from peers import Array, Peer

import slts

_PRODUCTS_BYTES = 128 * 2**20


@dataclass(frozen=True, slots=True)
class Problem:
    """Series (time, channels) with unit rows. All series of X are aligned with all of Y."""

    X: Sequence[Array]
    Y: Sequence[Array]

    @property
    def n_channels(self) -> int:
        """Number of channels."""
        return int(self.X[0].shape[1])

    @property
    def pairs(self) -> int:
        """Number of pairs."""
        return len(self.X) * len(self.Y)

    @property
    def cells(self) -> float:
        """Number of grid cells of all pairs."""
        return float(sum(map(len, self.X)) * sum(map(len, self.Y)))

    def part(self, rows: int, columns: int) -> Problem:
        """Take the first series of both sides."""
        return Problem(self.X[:rows], self.Y[:columns])

    def channels_first(self) -> tuple[list[Array], list[Array]]:
        """Both sides as lists of arrays for slts, so that its checks are timed as well."""
        return [np.ascontiguousarray(x.T) for x in self.X], [
            np.ascontiguousarray(y.T) for y in self.Y
        ]


def random_problem(n: int, m: int, d: int, low: int, high: int) -> Problem:
    """Random walks with lengths in [low, high] and unit rows (signs, if d = 1)."""
    rng = np.random.default_rng([n, m, d, low, high])

    def series() -> Array:
        rows = rng.standard_normal((int(rng.integers(low, high + 1)), d)).cumsum(axis=0)
        unit: Array = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit

    return Problem([series() for _ in range(n)], [series() for _ in range(m)])


def sized_problem(d: int, length: int, seconds: float, cores: int) -> Problem:
    """Make as many pairs as a fast peer aligns in `seconds` on one core."""
    pairs = seconds / (length**2 * (5e-9 + 0.7e-9 * d))
    m = 16 * max(1, min(10, round(math.sqrt(pairs) / 16)))
    return random_problem(max(4, cores, int(pairs / m)), m, d, length, length)


def for_products(problem: Problem) -> Problem:
    """Reduce the pairs so that their d x d products take little memory."""
    fit = _PRODUCTS_BYTES // (8 * problem.n_channels**2 * len(problem.Y))
    return problem.part(max(1, min(len(problem.X), fit)), len(problem.Y))


def applicable(peers: Sequence[type[Peer]], problem: Problem) -> list[type[Peer]]:
    """Return the peers that can align these series."""
    return [peer for peer in peers if peer.takes(problem.X, problem.Y)]


def assert_agreement(problem: Problem, peers: Sequence[type[Peer]]) -> None:
    """Check that all path costs agree: on unit rows, half the squared Euclidean DTW."""
    rows = max(1, min(len(problem.X), 4, int(4e6 // len(problem.X[0]) ** 2)))
    few = problem.part(rows, min(len(problem.Y), 9))
    X, Y = few.channels_first()
    similarity = slts.similarity(X, Y, objective="cost")
    products = slts.aligned_products(X, Y, objective="cost")
    _close(np.trace(products, axis1=2, axis2=3), similarity, "slts.aligned_products")
    costs = np.empty_like(similarity)
    for p, q in np.ndindex(costs.shape):
        alignment = slts.align(X[p], Y[q], objective="cost")
        costs[p, q] = _path_cost(few, p, q, alignment.path)
        _close(np.array(similarity[p, q]), np.array(alignment.similarity), "slts.align")
    for kind in applicable(peers, few):
        peer = kind(few.X, few.Y)
        distances = peer.pairwise(1)
        _close(peer.squared(distances) / 2, costs, f"{peer.name}, all pairs")
        ours = slts.distance(X, Y, squared=not peer.returns_root)
        _close(ours, distances, f"slts.distance, and {peer.name},")
        _close(peer.squared(peer.one_distance()) / 2, costs[0, 0], f"{peer.name}, one pair")
        if peer.has_paths:
            cost = _path_cost(few, 0, 0, peer.one_path())
            _close(np.array(cost), costs[0, 0], f"{peer.name}, one path")


def _path_cost(problem: Problem, p: int, q: int, path: Any) -> float:
    i, j = np.asarray(path, dtype=np.int64).T
    return float(np.sum(1.0 - np.einsum("td,td->t", problem.X[p][i], problem.Y[q][j])))


def _close(actual: Any, wanted: Any, what: str) -> None:
    np.testing.assert_allclose(
        actual, wanted, rtol=1e-9, atol=1e-11, err_msg=f"{what} disagrees, so nothing is timed"
    )


@contextmanager
def instruction_set(name: str | None) -> Iterator[None]:
    """Select an instruction set for slts; None is the best."""
    before = environ.get("SLTS_ISA")
    if name is not None:
        environ["SLTS_ISA"] = name
    try:
        yield
    finally:
        if before is None:
            environ.pop("SLTS_ISA", None)
        else:
            environ["SLTS_ISA"] = before


def slts_contenders(
    problem: Problem, what: str, n_jobs: int, *, objective: str, isa: str | None = None
) -> dict[str, Contender]:
    """Calls of slts in float64 and float32. ``what`` is "score" or "products"."""
    X, Y = problem.channels_first()
    function = slts.similarity if what == "score" else slts.aligned_products

    def contender(dtype: str) -> Contender:
        def call() -> object:
            with instruction_set(isa):
                return function(X, Y, objective=objective, dtype=dtype, n_jobs=n_jobs)

        return Contender(call, problem.cells)

    return {"slts": contender("float64"), "slts f32": contender("float32")}


def peer_contenders(
    problem: Problem, peers: Sequence[type[Peer]], what: str, n_jobs: int, seconds: float
) -> dict[str, Contender]:
    """Calls of the peers, on as many pairs as take about `seconds`. Paths use one core."""
    contenders = {}
    for kind in applicable(peers, problem):
        if what == "products" and not (kind.has_paths and n_jobs == 1):
            continue
        rows = max(1, min(4, int(2e6 // len(problem.X[0]) ** 2)))
        trial = problem.part(rows, min(4, len(problem.Y)))
        took = seconds_of(_peer_call(kind, trial, what, n_jobs))
        pairs = int(seconds / (took / trial.pairs))
        if n_jobs == 1:
            columns = max(1, min(len(problem.Y), pairs))
            part = problem.part(max(1, min(len(problem.X), pairs // columns)), columns)
        else:  # peers distribute rows over cores, so keep all rows
            columns = max(1, min(len(problem.Y), pairs // len(problem.X)))
            part = problem.part(len(problem.X), columns)
        contenders[kind.name] = Contender(_peer_call(kind, part, what, n_jobs), part.cells)
    return contenders


def _peer_call(kind: type[Peer], problem: Problem, what: str, n_jobs: int) -> Any:
    peer = kind(problem.X, problem.Y)
    return peer.paths if what == "products" else lambda: peer.pairwise(n_jobs)


def one_pair_contenders(
    problem: Problem, peers: Sequence[type[Peer]], what: str
) -> dict[str, Contender]:
    """Calls for one pair. ``what`` is "one score" or "one path"."""
    (a, *_), (b, *_) = problem.channels_first()
    cells = float(a.shape[1] * b.shape[1])
    contenders: dict[str, Contender] = {}
    # `align` returns both the path and the similarity.
    contenders["slts"] = Contender(lambda: slts.align(a, b, objective="cost"), cells)
    for kind in applicable(peers, problem):
        peer = kind(problem.X[:1], problem.Y[:1])
        if what == "one score":
            contenders[kind.name] = Contender(peer.one_distance, cells)
        elif kind.has_paths:
            contenders[kind.name] = Contender(peer.one_path, cells)
    return contenders
