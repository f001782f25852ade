from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_matrix, hstack, identity, vstack

from slts.learning import solve_metric, solve_separator, solve_separator_path
from slts.learning.hinge import HingeRows, Regularizer
from slts.learning.l1ball import L1Ball
from slts.learning.ridge import Ridge
from slts.learning.working_set import Certified, WorkingSet

TERMS: list[Regularizer] = [L1Ball(4.0), L1Ball(1e3), Ridge(1e-2), Ridge(1e-5)]


@pytest.fixture
def let_few_be_many(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[int]]:
    """Treat thousands of rows as millions are; the list counts the rows of every guess."""

    def switch() -> list[int]:
        guessed: list[int] = []
        improve = WorkingSet._improve

        def spy(self: WorkingSet, coef: np.ndarray, margins: np.ndarray) -> Any:
            guessed.append(margins.size)
            return improve(self, coef, margins)

        monkeypatch.setattr(WorkingSet, "_improve", spy)
        monkeypatch.setattr("slts.learning.separator.working_size", lambda n_columns: 60)
        monkeypatch.setattr("slts.learning.metric.working_size", lambda n_rows, n_columns: 60)
        return guessed

    return switch


def problem(
    kind: str, rng: np.random.Generator, m: int, p: int = 4
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X = np.tanh(rng.normal(size=(m, p)))
    y = np.where(X @ rng.normal(size=p) + 0.5 * rng.normal(size=m) > 0.0, 1.0, -1.0)
    w = np.ones(m)
    if kind == "separable":
        y = np.where(X @ np.arange(1, p + 1) > 0.0, 1.0, -1.0)
    elif kind == "weights":
        w = 10.0 ** rng.uniform(-4, 0, size=m)
    elif kind == "heavy row":
        w[17] = 0.6 * m
    elif kind == "few values":
        X = np.round(2.0 * X) + 1e-9 * rng.normal(size=(m, p))
    return X, y, w / w.sum()


KINDS = ["noisy", "separable", "weights", "heavy row", "few values"]


def full_program(X: np.ndarray, y: np.ndarray, w: np.ndarray, gamma: float) -> float:
    (m, p), A = X.shape, X * y[:, None]
    upper = vstack(
        [
            hstack([csr_matrix(-A), csr_matrix(A), -identity(m)]),
            csr_matrix(np.append(np.ones(2 * p), np.zeros(m))),
        ]
    )
    # In units of the mean weight: the tolerances of HiGHS are absolute.
    cost, right = np.append(np.zeros(2 * p), m * w), np.append(-np.ones(m), 1.0 / gamma)
    return float(linprog(cost, A_ub=upper, b_ub=right, method="highs").fun) / m


@pytest.mark.parametrize("kind", KINDS)
def test_separators_of_many_rows_are_those_of_the_full_program(
    rng: np.random.Generator, let_few_be_many: Callable[[], list[int]], kind: str
) -> None:
    guessed = let_few_be_many()
    X, y, w = problem(kind, rng, m=3000)
    gammas = [1.0, 0.2, 1e-3]
    path = solve_separator_path(X, y, gammas=gammas, sample_weight=w)
    for solution, gamma in zip(path, gammas, strict=True):
        expected = full_program(X, y, w, gamma)
        margins = y * (X @ solution.coef)
        assert solution.converged
        assert solution.vertex
        assert solution.objective == pytest.approx(w @ np.maximum(1.0 - margins, 0.0), abs=1e-12)
        assert abs(solution.objective - expected) <= 1e-6 * max(expected, 1e-2)
        assert solution.dual <= expected + 1e-9
        assert solution.gap <= 1e-6 * max(solution.objective, 1e-2)
        alone = solve_separator(X, y, gamma=gamma, sample_weight=w)
        assert alone.objective == pytest.approx(solution.objective, rel=1e-6, abs=1e-8)
    assert 3000 in guessed


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lam", [1e-1, 1e-3, 1e-6])
def test_metrics_of_many_rows_are_those_of_all_rows_at_once(
    rng: np.random.Generator, let_few_be_many: Callable[[], list[int]], kind: str, lam: float
) -> None:
    X, y, w = problem(kind, rng, m=1990)
    whole = solve_metric(X, y, gamma=1.0, lam=lam, sample_weight=w)
    guessed = let_few_be_many()
    found = solve_metric(X, y, gamma=1.0, lam=lam, sample_weight=w)
    assert guessed == [1990]
    assert found.converged
    assert abs(found.primal - whole.primal) <= 1e-6 * whole.primal
    assert found.dual <= whole.primal * (1.0 + 1e-12)
    np.testing.assert_allclose(found.metric, whole.metric, atol=3e-2 * np.abs(whole.metric).max())


def solved(rows: HingeRows, term: Regularizer, **options: Any) -> tuple[WorkingSet, Certified]:
    solver = WorkingSet(rows, term, max_iter=500, **options)
    return solver, solver.reach(1e-6)


@pytest.mark.parametrize("term", TERMS, ids=str)
def test_few_rows_decide(rng: np.random.Generator, term: Regularizer) -> None:
    rows = HingeRows.build(*problem("noisy", rng, m=40_000))
    _, whole = solved(rows, term, start=None, size=rows.n_rows)
    for start in (None, -whole.coef, whole.coef):
        solver, found = solved(rows, term, start=start, size=100)
        assert found.converged
        assert found.primal_value == pytest.approx(whole.primal_value, rel=2e-6)
        assert solver.working.size < 2500
        # The bound is that of multipliers of all rows.
        assert np.all((found.dual >= 0.0) & (found.dual <= rows.weights))
        bound = found.dual.sum() - term.conjugate(rows.combine(found.dual))
        assert found.dual_value == pytest.approx(bound, rel=1e-9)


@pytest.mark.parametrize("term", TERMS, ids=str)
def test_after_a_bad_guess_rows_at_most_double(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, term: Regularizer
) -> None:
    rows = HingeRows.build(*problem("noisy", rng, m=40_000))
    _, whole = solved(rows, term, start=None, size=rows.n_rows)
    monkeypatch.setattr(WorkingSet, "_improve", lambda _, coef, margins: (coef, margins, 100))
    sizes: list[int] = []
    restrict = WorkingSet._restrict

    def spy(self: WorkingSet, coef: np.ndarray) -> None:
        restrict(self, coef)
        sizes.append(self.working.size)

    monkeypatch.setattr(WorkingSet, "_restrict", spy)
    _, found = solved(rows, term, start=-whole.coef, size=100)
    assert found.primal_value == pytest.approx(whole.primal_value, rel=2e-6)
    assert sizes[0] == 100
    assert len(sizes) > 2
    assert all(before < after <= 2 * before for before, after in pairwise(sizes))
