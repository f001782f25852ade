"""Learning from similarities to all training series: a linear SVM, and nearest neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.svm import LinearSVC

from slts._typing import AnyArray, FloatArray, IntArray
from slts.errors import DataError
from slts.learning.calibration import Validation
from slts.training.first_pass import FirstPass, class_weights
from slts.training.options import SvmOptions
from slts.training.search import HeldOutDecisions, search
from slts.training.splits import Split, make_splits

# Folds that C is chosen on if nothing is held out for calibration.
_FOLDS = 3


@dataclass(frozen=True)
class SvmFit:
    """What was learned.

    `held_out` is None if probabilities are not calibrated, `validation` if nothing was held out.
    """

    C: float
    coef: FloatArray
    intercept: FloatArray
    held_out: HeldOutDecisions | None
    validation: Validation | None


def fit_svm(
    first_pass: FirstPass,
    classes: AnyArray,
    options: SvmOptions,
    similarities: Callable[[], FloatArray],
    *,
    in_memory: bool,
) -> SvmFit:
    """Choose C on held-out series, calibrate on its held-out decisions, train on all series.

    Parameters
    ----------
    first_pass
        All training series.
    classes
        Their labels.
    options
        Parameters.
    similarities
        Aligns all series with each other. It is called when everything else has been checked.
    in_memory
        Whether splits may name series by their position in X.
    """
    codes = first_pass.codes
    by_class = class_weights(options.class_weight, classes, first_pass.totals)
    weights = first_pass.sample.weights * by_class[codes]
    splits = _splits(first_pass, options, in_memory)
    for train, _ in splits:
        _require_all_classes(classes, codes[train])
    K = similarities()

    def learn(rows: IntArray | slice, C: float) -> tuple[FloatArray, FloatArray]:
        # The primal solver needs no seed and does not slow down as C grows.
        svm = LinearSVC(C=C, dual=False, fit_intercept=options.fit_intercept)
        svm.fit(K[rows], codes[rows], sample_weight=weights[rows])
        return svm.coef_, np.broadcast_to(svm.intercept_, len(svm.coef_)).astype(np.float64)

    def decide(train: IntArray, test: IntArray) -> Iterator[FloatArray]:
        for C in options.C:
            coef, intercept = learn(train, C)
            yield K[test] @ coef.T + intercept

    C, held_out, validation = options.C[0], None, None
    if splits:
        with options.bar("Training on parts") as progress:
            best = search(
                (decide(*split) for split in splits), [{"C": C} for C in options.C], splits, codes,
                weights, first_pass.sample.weights, groups=first_pass.sample.groups,
                progress=progress,
            )  # fmt: skip
        C, validation = best.best_params["C"], best.validation
        held_out = None if options.calibration_cv is None else best.held_out
    return SvmFit(C, *learn(slice(None), C), held_out, validation)


def _splits(first_pass: FirstPass, options: SvmOptions, in_memory: bool) -> list[Split]:
    """Return what is held out: for calibration, or else for the choice of C alone."""
    calibrates = options.calibration_cv is not None or len(options.C) == 1
    return make_splits(
        options.calibration_cv if calibrates else _FOLDS, first_pass.codes, first_pass.sample.keys,
        name="calibration_cv" if calibrates else "C='auto'", groups=first_pass.sample.groups,
        indices=first_pass.indices if in_memory else None, n_series=first_pass.n_series,
    )  # fmt: skip


def _require_all_classes(classes: AnyArray, codes: IntArray) -> None:
    missing = np.setdiff1d(np.arange(len(classes)), codes)
    if len(missing):
        raise DataError(
            f"calibration_cv leaves class {classes.tolist()[missing[0]]!r} out of a training part: "
            f"every training part must have all classes."
        )


def nearest_decisions(nearness: FloatArray, codes: IntArray, n_classes: int) -> FloatArray:
    """Return the nearness of the nearest series of each class; with two, the difference."""
    nearest = np.column_stack([nearness[:, codes == c].max(axis=1) for c in range(n_classes)])
    return nearest if n_classes > 2 else nearest[:, 1:] - nearest[:, :1]


def left_out_decisions(
    nearness: Callable[[IntArray], FloatArray], codes: IntArray, n_classes: int, size: int
) -> tuple[HeldOutDecisions | None, Validation | None]:
    """Decide on up to `size` training series, each left out in turn; None if there are none.

    `nearness` returns the nearness of some training series to all of them. Also returns the
    accuracy on these series, None if there are none.
    """
    # The only series of a class has no neighbour of its class. Training series are in random
    # order, so the first ones are a random choice.
    held_out = np.flatnonzero(np.bincount(codes)[codes] > 1)[:size]
    if len(held_out) == 0:
        return None, None
    found = nearness(held_out)
    found[np.arange(len(held_out)), held_out] = -np.inf
    decisions = nearest_decisions(found, codes, n_classes), codes[held_out], np.ones(len(held_out))
    return decisions, Validation.of("leave-one-out", *decisions, series=held_out)
