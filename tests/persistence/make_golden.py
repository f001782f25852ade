"""Write the golden files of the current format: ``python -m tests.persistence.make_golden``.

Run it only for a new format. Its files stand for the files of users, which must stay readable.
"""

import json
from pathlib import Path

import numpy as np
from sklearn.base import clone

import slts
from slts.persistence import describe
from tests.persistence.small_models import make_series, with_identifiers

FOLDER = Path(__file__).parent / "golden"
MODELS = {
    "v4-slts": (
        slts.SLTSClassifier(11, gamma=0.05, band=slts.Itakura(3.0), random_state=0),
        np.array(["x", "y", "z\u00e4"], dtype=object),
    ),
    "v4-local": (slts.LocalSLTSClassifier(6, n_snippets=12, random_state=0), ("low", "high")),
}


def write(path, estimator, labels):
    """Fit a model, and write its file and its predictions for new series."""
    X, y = make_series(labels, per_class=6)
    model = clone(estimator).fit(with_identifiers(X), y)
    slts.save(model, path)
    new, facts = make_series(labels, per_class=2, seed=1)[0], describe(path)
    expected = {
        "facts": {key: facts[key] for key in ("sha256", "channel_names", "classes")},
        "landmark": model.series_name(int(model.landmark_indices_[0])),
        "series": [x.tolist() for x in new],
        "predict": model.predict(new).tolist(),
        "decision_function": model.decision_function(new).tolist(),
        "predict_proba": model.predict_proba(new).tolist(),
    }
    text = json.dumps(expected, ensure_ascii=False)
    path.with_suffix(".json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    for name, (estimator, labels) in MODELS.items():
        write(FOLDER / f"{name}.slts", estimator, labels)
