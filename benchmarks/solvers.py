"""Time the two solvers against their alternatives, agreement asserted first.

Arabic digits where `slts.datasets` finds them (4620 series against 100 landmarks, as in the paper's
tuning), else Japanese Vowels.

    python benchmarks/solvers.py --classes 0 3 7 --json bench-output/solvers.json
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from measure import describe_machine, load
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

import slts
from slts.alignment import AlignmentSettings
from slts.alignment.reductions import grouped_products, similarities
from slts.learning import (
    metric,
    one_vs_rest_features,
    solve_metric,
    solve_metric_path,
    solve_separator_path,
)
from slts.series import normalize_rows

GAMMAS = [1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0]
STRENGTHS = [1e3, 1e1, 1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9]


def timed(function: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result and its processor time, which other load does not inflate."""
    begin = time.process_time()
    result = function()
    return result, time.process_time() - begin


def full_program(K: np.ndarray, labels: np.ndarray, gamma: float) -> float:
    """Optimum (mean loss) of the whole linear program by HiGHS."""
    m, n = K.shape
    A = K * labels[:, None]
    upper = sp.bmat(
        [[sp.csr_matrix(np.hstack([-A, A])), -sp.eye(m)], [np.ones((1, 2 * n)), None]], "csr"
    )
    cost = np.append(np.zeros(2 * n), np.ones(m))
    right = np.append(-np.ones(m), 1.0 / gamma)
    return float(linprog(cost, A_ub=upper, b_ub=right, method="highs").fun) / m


def bench_separator(K: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
    """Solve the path of gammas here and, one by one, with HiGHS."""
    path, ours = timed(lambda: solve_separator_path(K, labels, gammas=GAMMAS))
    theirs, worst = [], 0.0
    for solution in path:
        expected, seconds = timed(lambda g=solution.gamma: full_program(K, labels, g))
        theirs.append(seconds)
        worst = max(worst, abs(solution.objective - expected) / max(expected, 1e-3))
        assert worst <= 1e-6, (solution.gamma, solution.objective, expected)
    return {
        "seconds": ours,
        "highs_seconds": sum(theirs),
        "ratio": sum(theirs) / ours,
        "worst_relative_difference": worst,
        "largest_gap": max(solution.gap for solution in path),
        "nonzero": [solution.n_nonzero for solution in path],
    }


def liblinear(Z: np.ndarray, labels: np.ndarray, strength: float, max_iter: int) -> float:
    """Objective reached by LIBLINEAR's dual coordinate descent."""
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
    """Solve the path of strengths warm, cold, without working sets, and with LIBLINEAR."""
    pairs = [(1.0, strength) for strength in STRENGTHS]
    path, warm = timed(lambda: solve_metric_path(Z, labels, pairs=pairs))
    assert all(solution.converged for solution in path)
    _, cold = timed(lambda: [solve_metric(Z, labels, gamma=g, lam=s) for g, s in pairs])
    size, metric._working_size = metric._working_size, lambda rows: rows.n_rows
    try:
        whole, all_rows = timed(lambda: solve_metric_path(Z, labels, pairs=pairs))
    finally:
        metric._working_size = size
    excess, seconds = [], []
    for solution, other in zip(path, whole, strict=True):
        assert abs(solution.primal - other.primal) <= 2e-6 * other.primal
        value, spent = timed(lambda s=solution.lam: liblinear(Z, labels, s, liblinear_iter))
        excess.append(value / solution.primal - 1.0)
        seconds.append(spent)
    return {
        "path_seconds": warm,
        "cold_seconds": cold,
        "all_rows_seconds": all_rows,
        "liblinear_seconds": seconds,
        "liblinear_relative_excess": excess,
        "largest_relative_gap": max(solution.gap / solution.primal for solution in path),
        "iterations": [solution.n_iter for solution in path],
    }


def paper_data(seed: int) -> tuple[str, dict[str, np.ndarray]]:
    """K and class sums of 70% of a training set against 100 random landmarks."""
    name = "arabic_digits"
    try:
        X, y = slts.datasets.load(name, "train")
    except FileNotFoundError:
        name = "japanese_vowels"
        X, y = slts.datasets.load(name, "train")
    rng = np.random.default_rng(seed)
    rows = normalize_rows(X)
    landmarks = slts.select_landmarks(X, 100, random_state=seed)
    train = np.sort(rng.permutation(len(X))[: round(0.7 * len(X))])
    settings = AlignmentSettings()
    classes, codes = np.unique(y, return_inverse=True)
    groups = (codes[landmarks] == np.arange(len(classes))[:, None]).astype(float)
    return name, {
        "K": similarities(rows[train], rows[landmarks], settings, n_jobs=-1),
        "S": grouped_products(rows[train], rows[landmarks], groups, settings, n_jobs=-1),
        "codes": codes[train],
    }


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--classes", type=int, nargs="*", default=[0, 3, 7])
    parser.add_argument("--liblinear-iter", type=int, default=1000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    name, data = paper_data(seed=0)
    K, codes = data["K"], data["codes"]
    report: dict[str, Any] = {"machine": describe_machine(), "load": load(), "classes": {}}
    report |= {"data": name, "rows": K.shape[0], "landmarks": K.shape[1]}
    print(f"{name}: {K.shape[0]} series x {K.shape[1]} landmarks; processor seconds")
    for index in options.classes:
        labels = np.where(codes == index, 1.0, -1.0)
        Z = one_vs_rest_features(data["S"], index, K.shape[1])
        entry = {
            "separator": bench_separator(K, labels),
            "metric": bench_metric(Z.reshape(len(Z), -1), labels, options.liblinear_iter),
        }
        report["classes"][index] = entry
        part, learn = entry["separator"], entry["metric"]
        print(
            f"class {index}: separator {part['seconds']:.2f} s, HiGHS {part['highs_seconds']:.2f} s"
            f" (x{part['ratio']:.1f}); metric path {learn['path_seconds']:.2f} s, cold"
            f" {learn['cold_seconds']:.2f} s, all rows {learn['all_rows_seconds']:.2f} s, LIBLINEAR"
            f" {sum(learn['liblinear_seconds']):.2f} s (worst excess"
            f" {max(learn['liblinear_relative_excess']):.1e})"
        )
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
