"""Write the golden files of the current format: ``python -m tests.persistence.make_golden``.

Existing files stay, because they stand for the files of users. A new format or a new classifier
needs new files. The command prints the hashes that `test_golden.py` lists.
"""

import hashlib
import json
from pathlib import Path

import numpy as np
from sklearn.base import clone

import slts
from tests.persistence.small_models import make_series

FOLDER = Path(__file__).parent / "golden"

MODELS = {
    "v2-slts": (slts.SLTSClassifier(11, gamma=0.05, random_state=0), ("ant", "bee", "cat"), 2),
    "v2-slts-cv": (
        slts.SLTSClassifierCV([8, 10], gammas=(0.05, 0.1), lams=[0.1], random_state=0), (3, 1), 2,
    ),
    "v2-bbs": (
        slts.BBSClassifier(11, gamma=0.05, band=slts.Itakura(3.0), random_state=0),
        np.array(["x", "y", "z\u00e4"], dtype=object),
        2,
    ),
    "v2-bbs-cv": (slts.BBSClassifierCV(8, gammas=(0.05, 0.1), random_state=0), (False, True), 2),
    "v2-one-nn": (
        slts.OneNNClassifier(band=2, objective="cost", calibration_size=200), (7, -1, 30), 1,
    ),
    "v2-svc": (slts.SimilaritySVC(1.0, fit_intercept=True, random_state=0), (1.0, 2.0, 4.0), 2),
    "v2-ldmlt": (
        slts.LDMLTClassifier(
            n_cycles=2, triplets_per_series=3.0, calibration_size=200, random_state=0
        ), ("no", "yes"), 2,
    ),
    # With names and times of series, which the files above do not have.
    "v2-slts-names": (
        slts.SLTSClassifier(11, gamma=0.05, random_state=0), ("ant", "bee", "cat"), 2,
    ),
    # Written before there were snippets.
    "v2-local": (
        slts.LocalSLTSClassifier(
            6, n_snippets=0, representations=("values", "changes", "levels"),
            objective=("cost", "affinity"), n_phases=2, n_components=5, metric_rank=3,
            max_length=None, random_state=0,
        ),
        ("low", "mid", "top"),
        2,
    ),
    "v2-local-snippets": (
        slts.LocalSLTSClassifier(
            6, n_snippets=12, representations=("values", "changes"), objective="affinity",
            n_components=5, metric_rank=3, random_state=0,
        ),
        ("low", "mid", "top"),
        2,
    ),
}  # fmt: skip


def main():
    for name, (estimator, labels, channels) in MODELS.items():
        path = FOLDER / f"{name}.slts"
        if not path.exists():
            write(path, estimator, labels, channels)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        print(f'    "{name}": "{digest}",')  # noqa: T201


def write(path, estimator, labels, channels):
    """Fit a model, and write its file and its predictions for new series."""
    X, y = make_series(labels, per_class=6, channels=channels)
    batch = slts.as_series(X)
    dates = np.datetime64("2024-03-01", "ns") + np.arange(batch.n_steps) * np.timedelta64(20, "ms")
    named = slts.SeriesBatch(
        batch.values, batch.offsets, ["u", "v"][:channels],
        series_names=[f"recording {k}" for k in range(len(batch))], times=dates,
    )  # fmt: skip
    model = clone(estimator).fit(named, y)
    slts.save(model, path)
    new = make_series(labels, per_class=2, channels=channels, seed=1)[0]
    expected = {
        "classes": model.classes_.tolist(),
        "series": [x.tolist() for x in new],
        "predict": model.predict(new).tolist(),
        "decision_function": model.decision_function(new).tolist(),
        "predict_proba": model.predict_proba(new).tolist(),
    }
    text = json.dumps(expected, ensure_ascii=False)
    path.with_suffix(".json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
