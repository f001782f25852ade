"""`certify`: bounds on the risk of a trained classifier."""

from __future__ import annotations

import numbers
from typing import Any

from sklearn.utils.validation import check_is_fitted

from slts.errors import DataError
from slts.guarantees.bounds import check_probability
from slts.guarantees.certificate import Certificate
from slts.guarantees.held_out import HeldOut
from slts.guarantees.theorem import certify_metrics
from slts.series.source import SeriesSource

# Largest number of compared models: delta is divided by it.
_MOST_MODELS = 10**100


def certify(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    groups: Any = None,
    delta: float = 0.05,
    n_models: int = 1,
    sample: str = "holdout",
    copies: str = "error",
) -> Certificate:
    """Bound the risk of a trained classifier.

    Parameters
    ----------
    model
        Any fitted classifier. Bounds from the training sample need `SLTSClassifier` or
        `SLTSClassifierCV`.
    X
        Series in memory, or for held-out series a scan with labels
        (``slts.scan_series(..., label=...)``). With ``sample="holdout"`` they must be independent
        of everything that was done to get the model; with ``sample="training"`` they are the
        series that it was fitted on.
    y
        Labels of series in memory; None for a scan.
    groups
        Group of each held-out series, such as the subject. The groups, not the series, are then
        the independent draws, and the bounds are on the mean error in a new group. None for a
        scan, which contains them (``slts.scan_series(..., groups="subject")``).
    delta
        Probability of failure of each bound.
    n_models
        Number of models (parameters, estimators) compared on the same series. The bounds hold for
        all of them. The candidates of a CV variant are counted automatically.
    sample
        ``"holdout"`` gives exact bounds on the error. ``"training"`` bounds the hinge risk of the
        metrics from the training series alone, by the paper's theorem, corrected and as printed.
    copies
        ``"error"`` raises an error if more than one of a hundred held-out series equals a training
        series; fewer are counted as new, and the certificate names them. ``"allow"`` counts any
        number as new. Constant series are never copies.

    Returns
    -------
    Certificate
        The headline and all bounds that apply.

    Raises
    ------
    DataError
        If many held-out series are equal to training series, or if y has labels that the model was
        not trained on. With ``sample="training"``, if X and y are not the training sample, or if
        the theorem does not hold for the way in which the model was fitted.

    Examples
    --------
    >>> import numpy as np, slts
    >>> from slts.guarantees import certify
    >>> rng = np.random.default_rng(0)
    >>> y = np.tile(["left", "right"], 60)
    >>> X = [rng.normal(size=(2, 15)) + (c == "right") * np.array([[4.0], [0.0]]) for c in y]
    >>> model = slts.SLTSClassifier(random_state=0).fit(X[:40], y[:40])
    >>> certificate = certify(model, X[40:], y[40:])
    >>> round(certificate.headline.value, 3)
    0.037
    """
    check_probability("delta", delta)
    is_int = isinstance(n_models, numbers.Integral) and not isinstance(n_models, bool)
    if not is_int or not 1 <= n_models <= _MOST_MODELS:
        raise ValueError(
            f"The 'n_models' parameter must be an int from 1 to 10**100. Got {n_models!r} instead."
        )
    if sample not in ("holdout", "training"):
        raise ValueError(
            f"The 'sample' parameter must be 'holdout' or 'training'. Got {sample!r} instead."
        )
    check_is_fitted(model)
    if sample == "holdout":
        return HeldOut.of(model, X, y, groups).certificate(delta, n_models, copies)
    if groups is not None or isinstance(X, SeriesSource):
        raise DataError(
            "sample='training' needs the training series in memory, without groups: its bounds "
            "hold for independent series only. Certify on held-out series instead."
        )
    return certify_metrics(model, X, y, delta, n_models)
