"""Bounds from training series: ``python -m study.bounds --markdown docs/bounds.md``.

slts certifies on held-out series. This study computes bounds that need none for Spoken Arabic
Digits, and writes them into the last section of the page, which states their formulas.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import qr
from scipy.special import gammaln, ndtr

import slts
from slts.guarantees import bounds
from slts.series.keys import series_digests
from slts.solvers import solve_separator_path
from study.markdown import Element, Grid, number, to_markdown
from study.problems import LabelledSeries, Loader, load_published

Values = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

DELTA = 0.05
HEADING = "## Figures for Spoken Arabic Digits"
# Grids of the PAC-Bayes bound: scales of the posterior mean, and margins.
_N_SCALES, _MARGINS = 24, np.linspace(0.0, 3.0, 13)
# Number of radii of the norm bound. Each is sqrt(2) times smaller than the one before.
_N_RADII = 20
# Margins and weights that differ by less are equal.
_TOLERANCE = 1e-6
# Series whose aligned products are held at once.
_BLOCK = 200

_TEXT = """{heading}

This command writes this section:

```
{command}
```

All bounds hold with probability 95% for the ten digits together. **Hold-out**: SLTS with
{n_landmarks} landmarks learned from {n} different training series ($\\gamma = 10^{{-4}}$,
$\\lambda = 0.1$). It is wrong on {errors} of {n_test} test series, so its error is at most
{error:.1%}, and that of each of the ten one-vs-rest classifiers at most {signs:.1%}. A constant
prediction has an error of 10%."""
_ERRORS = (
    "Errors of the one-vs-rest classifiers, from the smallest to the largest of the ten digits. "
    "Landmarks and metrics come from 30% of the training series, separators from the next 50% "
    "($\\gamma = 10^{-3}$, $\\lambda = 0.1$). Hold-out is for the same separators."
)
_RISKS = (
    "Hinge risk of the metrics learned from all training series, mean over the digits. With M = 0 "
    "it is 1."
)


def norm_bound(
    risk: float, radius: float, m: int, delta: float, *, mean_square: float = 1.0
) -> float:
    """Bound on the hinge risk that holds for all M with ||M||_F/gamma <= `radius` at once.

    `mean_square` is an upper bound on the mean of ||Z_i||_F^2.
    """
    deviation = math.sqrt(math.log(1.0 / delta) / (2.0 * m))
    mean = 2.0 * radius * math.sqrt(mean_square / m)
    return risk + mean + bounds.loss_range(radius) * deviation


def metric_norm_bound(
    risk: float, norm: float, mean_square: float, m: int, largest: float, delta: float
) -> float:
    """Norm bound with the smallest radius of a grid that ||M||_F/gamma = `norm` allows.

    `largest` is the largest radius, `mean_square` the mean of ||Z_i||_F^2.
    """
    radii = largest * 2.0 ** (-0.5 * np.arange(_N_RADII))
    radius = float(radii[radii * (1 + _TOLERANCE) >= norm][-1])
    square = float(bounds.kl_inverse(mean_square, math.log(2.0 / delta) / m))
    return norm_bound(risk, radius, m, delta / (2.0 * _N_RADII), mean_square=square)


def pac_bayes_bound(cosines: Values, delta: float, *, choices: float = 0.0) -> float:
    """PAC-Bayes bound on the error of sgn <w, x>.

    The posterior is N(mu w/||w||, I), the prior N(0, I). Where the sign is wrong, the margin under
    the posterior is below s with probability at least Phi(s); s = 0 gives the classic factor 2.
    `cosines` are l_i <w, x_i>/(||w|| ||x_i||) of at least 8 examples, `choices` the logarithm of
    the number of feature spaces to choose from.
    """
    m = len(cosines)
    scales = np.geomspace(0.5, math.sqrt(2.0 * m), _N_SCALES)
    losses = np.stack([ndtr(_MARGINS[:, np.newaxis] - mu * cosines).mean(axis=1) for mu in scales])
    price = math.log(2.0 * math.sqrt(m) * losses.size / delta) + choices
    budget = (0.5 * scales[:, np.newaxis] ** 2 + price) / m
    return min(1.0, float(np.min(bounds.kl_inverse(losses, budget) / ndtr(_MARGINS))))


def log_choices(n: int, k: int) -> float:
    """Logarithm of the price for choosing k of n landmarks on the sample."""
    return _log_binomial(n, k) + math.log(n)


def _log_binomial(n: int, k: int) -> float:
    return float(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


@dataclass(frozen=True)
class Compression:
    """A separator as a function of a few examples.

    Parameters
    ----------
    coef
        The rebuilt weights of all landmarks.
    tight
        Examples with margin one that determine the nonzero weights, with their signs if
        ||coef||_1 = 1/gamma.
    errors
        Errors on the other examples. A decision value of zero is an error.
    """

    coef: Values
    tight: Indices
    errors: int

    def bound(self, m: int, delta: float) -> float:
        """Bound on the error of the separator, learned on m examples."""
        n, n_used, n_tight = len(self.coef), int(np.count_nonzero(self.coef)), len(self.tight)
        choices = log_choices(n, n_used) + _log_binomial(m, n_tight) + math.log(2.0)
        choices += n_used * math.log(2.0) if n_tight < n_used else 0.0
        return bounds.clopper_pearson(self.errors, m - n_tight, delta * math.exp(-choices))


def compress(K: Values, labels: Values, coef: Values, gamma: float) -> Compression | None:
    """Find examples that determine the weights, and rebuild the weights from them.

    The weights must be a vertex of the linear program of the separator; the result is None if they
    cannot be rebuilt.
    """
    used, norm = np.flatnonzero(coef), float(np.abs(coef).sum())
    if len(used) == 0:
        return None
    signs, binds = np.sign(coef[used]), norm * gamma >= 1.0 - 1e-9
    rows = labels[:, np.newaxis] * K[:, used]
    near = np.flatnonzero(np.abs(rows @ coef[used] - 1.0) <= _TOLERANCE)
    # Rows that are linearly independent of each other, and of the signs if these are an equation.
    projected = rows[near]
    if binds:
        projected = projected - np.outer(projected @ signs, signs) / len(signs)
    n_tight = len(used) - binds
    if len(near) < n_tight:
        return None
    tight = np.sort(near[qr(projected.T, mode="r", pivoting=True)[1][:n_tight]])
    equations, right = rows[tight], np.ones(n_tight)
    if binds:
        equations, right = np.vstack([equations, gamma * signs]), np.ones(len(used))
    scale = np.abs(equations).max(axis=1)
    weights = np.linalg.lstsq(equations / scale[:, np.newaxis], right / scale, rcond=None)[0]
    if np.abs(weights - coef[used]).max() > _TOLERANCE * norm:
        return None
    rebuilt = np.zeros_like(coef)
    rebuilt[used] = weights
    wrong = np.delete(rows @ weights, tight) <= 0.0
    return Compression(rebuilt, tight, int(np.count_nonzero(wrong)))


def _signs(labels: npt.NDArray[Any], classes: npt.NDArray[Any]) -> Values:
    """+1 or -1, shape (problems, series)."""
    return np.where(labels == classes[:, np.newaxis], 1.0, -1.0)


def separator_bounds(
    train: LabelledSeries, test: LabelledSeries, n_landmarks: int, *, gamma: float, lam: float
) -> dict[str, list[float]]:
    """Bounds by class on separators whose landmarks and metrics are independent of the sample."""
    order = np.random.RandomState(0).permutation(len(train.batch))
    first, second, _ = np.split(order, np.round([0.3 * len(order), 0.8 * len(order)]).astype(int))
    model = _fit(train.batch[first], train.labels[first], n_landmarks, gamma, lam)
    shape = -1, len(model.positive_classes_), n_landmarks
    similarities = model.transform(train.batch[second]).reshape(shape)
    test_similarities = model.transform(test.batch).reshape(shape)
    signs = _signs(train.labels[second], model.positive_classes_)
    test_signs = _signs(test.labels, model.positive_classes_)
    m, share = len(second), DELTA / len(signs)
    values: dict[str, list[float]] = {
        "landmarks used": [], "hold-out": [], "compression": [], "PAC-Bayes": [],
    }  # fmt: skip
    for c, labels in enumerate(signs):
        K = similarities[:, c]
        coef = solve_separator_path(K, labels, gammas=[gamma])[0].coef
        scheme = compress(K, labels, coef, gamma)
        coef = coef if scheme is None else scheme.coef
        used = np.flatnonzero(coef)
        sizes = np.linalg.norm(coef) * np.linalg.norm(K[:, used], axis=1)
        choices = log_choices(n_landmarks, len(used))
        errors = int(np.count_nonzero(test_signs[c] * (test_similarities[:, c] @ coef) <= 0.0))
        row = (
            float(len(used)),
            bounds.clopper_pearson(errors, len(test.labels), share),
            1.0 if scheme is None else scheme.bound(m, share),
            pac_bayes_bound(labels * (K @ coef) / sizes, share, choices=choices),
        )
        for name, value in zip(values, row, strict=True):
            values[name].append(value)
    return values


def metric_bounds(train: LabelledSeries, n_landmarks: int, strength: float) -> dict[str, float]:
    """Mean over the classes of the bounds on the hinge risk, where lam gamma^2 = strength."""
    model = _fit(train.batch, train.labels, n_landmarks, 1.0, strength)
    certificate = slts.certify(model, train.batch, train.labels, sample="training", delta=DELTA)
    rest = np.delete(np.arange(len(train.batch)), model.landmark_indices_)
    landmark_signs = _signs(train.labels[model.landmark_indices_], model.positive_classes_)
    squares = np.zeros(len(landmark_signs))
    for begin in range(0, len(rest), _BLOCK):
        T = slts.aligned_products(train.batch[rest[begin : begin + _BLOCK]], model.landmarks_)
        Z = np.einsum("cj,ijde->cide", landmark_signs / n_landmarks, T, optimize=True)
        squares += np.sum(Z**2, axis=(1, 2, 3)) / len(rest)
    risks = list(certificate["stability"].details["risk_by_class"].values())
    norms, share = np.linalg.norm(model.metrics_, axis=(1, 2)), DELTA / len(squares)
    m, radius = len(rest), bounds.margin_radius(1.0, strength)
    sized = [
        metric_norm_bound(risk, norm, min(square, 1.0), m, radius, share)
        for risk, norm, square in zip(risks, norms, squares, strict=True)
    ]
    return {
        "mean loss": float(np.mean(risks)),
        "norm of M": float(np.mean(sized)),
        "norm": float(np.mean([norm_bound(risk, radius, m, share) for risk in risks])),
        **{bound.name: bound.details["mean"] for bound in certificate.bounds},
    }


def _fit(batch: Any, labels: Any, n_landmarks: int, gamma: float, lam: float) -> Any:
    model = slts.SLTSClassifier(
        n_landmarks, gamma=gamma, lam=lam, calibration_cv=None, random_state=0
    )
    return model.fit(batch, labels)


def document(
    data: LabelledSeries, command: str, *, n_landmarks: tuple[int, ...] = (100, 30),
    strengths: tuple[float, ...] = (0.01, 0.1, 1.0, 10.0),
) -> list[Element]:  # fmt: skip
    """Compute the figures, and build the section."""
    # Some recordings are in the training data twice.
    batch = data.batch[: data.n_train]
    distinct = np.sort(np.unique(series_digests(batch), return_index=True)[1])
    train = LabelledSeries(batch[distinct], data.labels[distinct])
    test = LabelledSeries(data.batch[data.n_train :], data.labels[data.n_train :])
    most = n_landmarks[0]
    model = _fit(train.batch, train.labels, most, 1e-4, 0.1)
    held_out = slts.certify(model, test.batch, test.labels, delta=DELTA)
    text = _TEXT.format(
        heading=HEADING, command=command, n_landmarks=most, n=len(distinct),
        errors=held_out.headline.details["errors"], n_test=held_out.n,
        error=held_out.headline.value, signs=held_out.bounds[-1].value,
    )  # fmt: skip
    by_landmarks = {n: separator_bounds(train, test, n, gamma=1e-3, lam=0.1) for n in n_landmarks}
    error_rows = tuple(
        (
            str(n),
            "{:.0f} to {:.0f}".format(*_ends(values["landmarks used"])),
            *("{:.1%} to {:.1%}".format(*_ends(v)) for v in list(values.values())[1:]),
        )
        for n, values in by_landmarks.items()
    )
    risks = {strength: metric_bounds(train, most, strength) for strength in strengths}
    risk_rows = tuple(
        (f"{strength:g}", *(number(value, 2) for value in row.values()))
        for strength, row in risks.items()
    )
    names = tuple(by_landmarks[most])
    return [
        text,
        Grid("errors", _ERRORS, ("landmarks", *names), error_rows),
        Grid("risks", _RISKS, ("$\\lambda\\gamma^2$", *risks[strengths[0]]), risk_rows),
    ]


def _ends(values: Sequence[float]) -> tuple[float, float]:
    return min(values), max(values)


def write_section(page: Path, elements: Sequence[Element]) -> None:
    """Replace the last section of a page."""
    before, _, _ = page.read_text(encoding="utf-8").partition(HEADING)
    page.write_text(before + to_markdown(elements), encoding="utf-8")


def main(arguments: Sequence[str] | None = None, loader: Loader = load_published) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m study.bounds", description=__doc__)
    parser.add_argument("--markdown", type=Path, required=True, help="page whose section to write")
    options = parser.parse_args(arguments)
    command = f"python -m study.bounds --markdown {options.markdown}"
    write_section(options.markdown, document(loader("arabic_digits"), command))
    return 0


if __name__ == "__main__":
    sys.exit(main())
