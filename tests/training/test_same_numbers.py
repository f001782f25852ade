"""Training and prediction compute the same features, to the last bit.

Paths of periodic series nearly tie, so that a rounding changes a path, and with it the features.
"""

import numpy as np
import pytest
from slts.models import comparisons
from slts.models.comparisons import Comparison
from slts.models.snippets import Snippets

import slts
from slts.training import local_metrics, snippet_features


def periodic(n=10, seed=0):
    """Sines of period 40 with a random phase, noise of 1e-4, and 300 to 900 steps."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = []
    for c in y:
        steps = np.arange(rng.integers(300, 901)) + rng.uniform(0, 40)
        x = np.sin(2 * np.pi * steps / 40) * (1 + 0.01 * c)
        X.append((x + 1e-4 * rng.normal(size=len(x)))[np.newaxis])
    return X, y


@pytest.fixture
def seen(monkeypatch):
    """Features by kind and series, of the calls since it was last cleared."""
    log = {}

    def keep(kind, batch, found):
        for x, row in zip(batch, found, strict=True):
            log.setdefault(kind, {}).setdefault(x.tobytes(), []).append(row)

    aligned, counted = Comparison.features, Snippets.counts

    def features(self, rows, *args):
        for part, found in aligned(self, rows, *args):
            keep(self.name, rows, found)
            yield part, found

    def counts(self, batch, *args):
        found = counted(self, batch, *args)
        keep("snippets", batch, found)
        return found

    chosen = local_metrics._choose

    def choose(*args):
        found = chosen(*args)
        # Most of what was counted belongs to snippets that are not kept.
        log.pop("snippets")
        return found

    monkeypatch.setattr(Comparison, "features", features)
    monkeypatch.setattr(Snippets, "counts", counts)
    monkeypatch.setattr(local_metrics, "_choose", choose)
    return log


def joined(log):
    return {
        kind: {x: np.concatenate(parts) for x, parts in series.items()}
        for kind, series in log.items()
    }


@pytest.mark.parametrize("n_phases", [1, 3])
@pytest.mark.parametrize("chunk", [2**20, 1])
def test_training_and_prediction_see_the_same_numbers(n_phases, chunk, seen, monkeypatch):
    X, y = periodic()
    model = slts.LocalSLTSClassifier(
        6, n_snippets=40, objective=("affinity", "cost"), n_phases=n_phases, random_state=0
    )
    with monkeypatch.context() as patched:
        for part in (comparisons, snippet_features):
            patched.setattr(part, "CHUNK_BYTES", chunk)
        model.fit(X, y)
    in_training = joined(seen)
    seen.clear()
    model.set_params(n_jobs=2)
    for x in X:
        model.decision_function([x])
    in_prediction = joined(seen)
    assert in_prediction.keys() == in_training.keys()
    assert len(in_training) == len(model.comparisons_) + 1
    for kind, series in in_training.items():
        assert len(series) == len(X)
        for x, features in series.items():
            np.testing.assert_array_equal(in_prediction[kind][x], features, err_msg=kind)


def test_phases_that_were_added_up_differ_by_rounding_alone(seen):
    """A model of one phase was chosen on sums of three."""
    X, y = periodic()
    model = slts.LocalSLTSClassifier(6, n_snippets=40, random_state=0).fit(X, y)
    in_training = joined(seen)
    seen.clear()
    model.decision_function(X)
    in_prediction = joined(seen)
    n_phases = model.local_metrics_[0].shape[2]
    for kind, series in in_training.items():
        for x, features in series.items():
            if kind != "snippets":
                groups, phases, *shape = features.shape
                features = features.reshape(groups, n_phases, phases // n_phases, *shape).sum(
                    axis=2
                )
            np.testing.assert_allclose(
                in_prediction[kind][x], features, rtol=0, atol=1e-14, err_msg=kind
            )
