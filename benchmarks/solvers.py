"""Time of the two solvers and of HiGHS and LIBLINEAR on the same problems, agreement asserted.

Arabic digits if `$SLTS_DATA` has them (4620 series and 100 landmarks, as in the paper's
tuning), else Japanese Vowels.

    python benchmarks/solvers.py --classes 0 3 7 --json bench-output/solvers.json
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from inputs import paper_data
from measure import describe_machine, load, write_json
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

import slts
from slts.alignment import Aligner, AlignmentSettings
from slts.series import normalize_rows
from slts.solvers import (
    solve_metric_path,
    solve_separator_path,
)

GAMMAS = [1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0]
STRENGTHS = [1e3, 1e1, 1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9]


def timed(function: Callable[[], Any]) -> tuple[Any, float]:
    """Return a result and its processor time, which depends little on other load."""
    begin = time.process_time()
    result = function()
    return result, time.process_time() - begin


def full_program(K: np.ndarray, labels: np.ndarray, gamma: float) -> float:
    """Return the optimal mean loss of the whole linear program, from HiGHS."""
    m, n = K.shape
    A = K * labels[:, None]
    upper = sp.bmat(
        [[sp.csr_matrix(np.hstack([-A, A])), -sp.eye(m)], [np.ones((1, 2 * n)), None]], "csr"
    )
    cost = np.append(np.zeros(2 * n), np.ones(m))
    right = np.append(-np.ones(m), 1.0 / gamma)
    return float(linprog(cost, A_ub=upper, b_ub=right, method="highs").fun / m)


def bench_separator(K: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
    """Solve for a path of gammas; compare with HiGHS, which solves one gamma at a time."""
    path, ours = timed(lambda: solve_separator_path(K, labels, gammas=GAMMAS))
    theirs, worst = [], 0.0
    for solution in path:
        expected, seconds = timed(partial(full_program, K, labels, solution.gamma))
        theirs.append(seconds)
        worst = max(worst, abs(solution.objective - expected) / max(expected, 1e-3))
        assert worst <= 1e-6, (solution.gamma, solution.objective, expected)
    return {
        "seconds": ours,
        "highs_seconds": sum(theirs),
        "ratio": sum(theirs) / ours,
        "worst_relative_difference": worst,
        "largest_gap": max(solution.gap for solution in path),
        "nonzero": [int(np.count_nonzero(solution.coef)) for solution in path],
    }


def liblinear(Z: np.ndarray, labels: np.ndarray, strength: float, max_iter: int) -> float:
    """Return the objective that LIBLINEAR reaches by dual coordinate descent."""
    machine = LinearSVC(
        loss="hinge",
        C=1.0 / (2.0 * strength * len(Z)),
        fit_intercept=False,
        tol=1e-6,
        max_iter=max_iter,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        coef = machine.fit(Z, labels).coef_[0]
    loss = np.maximum(1.0 - labels * (Z @ coef), 0.0).mean()
    return float(loss + strength * (coef @ coef))


def bench_metric(Z: np.ndarray, labels: np.ndarray, liblinear_iter: int) -> dict[str, Any]:
    """Solve for a path of strengths, one by one, and with LIBLINEAR."""
    pairs = [(1.0, strength) for strength in STRENGTHS]
    path, warm = timed(lambda: solve_metric_path(Z, labels, pairs=pairs))
    _, cold = timed(lambda: [solve_metric_path(Z, labels, pairs=[pair]) for pair in pairs])
    excess, seconds = [], []
    for solution in path:
        assert solution.converged, solution
        value, spent = timed(partial(liblinear, Z, labels, solution.lam, liblinear_iter))
        assert value >= solution.dual * (1.0 - 1e-9), (value, solution)
        excess.append(value / solution.objective - 1.0)
        seconds.append(spent)
    return {
        "path_seconds": warm,
        "cold_seconds": cold,
        "liblinear_seconds": seconds,
        "liblinear_relative_excess": excess,
        "largest_relative_gap": max(solution.gap / solution.objective for solution in path),
        "iterations": [solution.n_iter for solution in path],
    }


def problems(X: slts.SeriesBatch, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return K, class sums and classes of 70% of the series, against 100 random landmarks."""
    rows = normalize_rows(X)
    landmarks = slts.select_landmarks(X, 100, random_state=0)
    train = np.sort(np.random.default_rng(0).permutation(len(X))[: round(0.7 * len(X))])
    classes, codes = np.unique(y, return_inverse=True)
    groups = (codes[landmarks] == np.arange(len(classes))[:, None]).astype(float)
    aligner = Aligner(rows[landmarks], AlignmentSettings(), n_jobs=-1)
    return (
        aligner.similarities(rows[train]),
        aligner.grouped(rows[train], groups)[:, :, 0],
        codes[train],
    )


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--classes", type=int, nargs="*", default=[0, 3, 7])
    parser.add_argument("--liblinear-iter", type=int, default=1000)
    parser.add_argument("--json", type=Path, help="write the results to this file")
    options = parser.parse_args()
    name, train, _ = paper_data()
    K, sums, codes = problems(*train)
    report: dict[str, Any] = {"machine": describe_machine(), "load": load(), "classes": {}}
    report |= {"data": name, "rows": K.shape[0], "landmarks": K.shape[1]}
    print(f"{name}: {K.shape[0]} series x {K.shape[1]} landmarks; processor seconds")
    for index in options.classes:
        labels = np.where(codes == index, 1.0, -1.0)
        Z = (2.0 * sums[:, index] - sums.sum(axis=1)) / K.shape[1]
        entry = {
            "separator": bench_separator(K, labels),
            "metric": bench_metric(Z.reshape(len(Z), -1), labels, options.liblinear_iter),
        }
        report["classes"][index] = entry
        part, learn = entry["separator"], entry["metric"]
        print(
            f"class {index}: separator {part['seconds']:.2f} s, HiGHS {part['highs_seconds']:.2f} s"
            f" (x{part['ratio']:.1f}); metric path {learn['path_seconds']:.2f} s, one by"
            f" one {learn['cold_seconds']:.2f} s, LIBLINEAR {sum(learn['liblinear_seconds']):.2f} s"
            f" (worst excess {max(learn['liblinear_relative_excess']):.1e})",
            flush=True,
        )
    write_json(options.json, report)


if __name__ == "__main__":
    main()
