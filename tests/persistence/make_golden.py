"""Writes the golden files of a format, once: ``python -m tests.persistence.make_golden``.

Files that are there stay: they stand for models that people have. A new format, or a new
classifier, gets new files; see `test_golden.py`.
"""

import json
from pathlib import Path

import numpy as np
from sklearn.base import clone

import slts
from tests.persistence.zoo import make_series

FOLDER = Path(__file__).parent / "golden"

MODELS = {
    "v1-slts": (slts.SLTSClassifier(11, gamma=0.05, random_state=0), ("ant", "bee", "cat"), 2),
    "v1-slts-cv": (
        slts.SLTSClassifierCV([8, 10], gammas=(0.05, 0.1), lams=[0.1], random_state=0), (3, 1), 2,
    ),
    "v1-bbs": (
        slts.BBSClassifier(11, gamma=0.05, band=slts.Itakura(3.0), random_state=0),
        np.array(["x", "y", "z\u00e4"], dtype=object),
        2,
    ),
    "v1-bbs-cv": (slts.BBSClassifierCV(8, gammas=(0.05, 0.1), random_state=0), (False, True), 2),
    "v1-one-nn": (slts.OneNNClassifier(band=2, objective="cost"), (7, -1, 30), 1),
    "v1-svc": (slts.SimilaritySVC(fit_intercept=True, random_state=0), (1.0, 2.0, 4.0), 2),
    "v1-ldmlt": (
        slts.LDMLTClassifier(n_cycles=2, triplets_per_series=3.0, random_state=0), ("no", "yes"), 2,
    ),
    "v1-local": (
        slts.LocalSLTSClassifier(6, n_phases=2, n_components=5, metric_rank=3, random_state=0),
        ("low", "mid", "top"),
        2,
    ),
}  # fmt: skip


def main():
    for name, (estimator, labels, channels) in MODELS.items():
        path = FOLDER / f"{name}.slts"
        if path.exists():
            print(f"{path.name} is there and stays")  # noqa: T201
            continue
        X, y = make_series(labels, per_class=6, channels=channels)
        batch = slts.as_series(X)
        named = slts.SeriesBatch(batch.values, batch.offsets, ["u", "v"][:channels])
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
