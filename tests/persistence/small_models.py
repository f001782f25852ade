"""Small fitted models of every kind, comparison of models, and edited files with a valid digest."""

import dataclasses
import hashlib
import json

import numpy as np
from sklearn.base import clone

import slts

SMALL = [
    slts.SLTSClassifier(10, random_state=0),
    slts.SLTSClassifierCV([10, 14], gammas=[1e-3, 1e-2], lams=[0.1], random_state=0),
    slts.BBSClassifier(10, random_state=0),
    slts.BBSClassifierCV([10, 14], gammas=[1e-3, 1e-2], cv=2, random_state=0),
    slts.OneNNClassifier(random_state=0),
    slts.SimilaritySVC(random_state=0),
    slts.LDMLTClassifier(n_cycles=2, triplets_per_series=3.0, random_state=0),
    slts.LocalSLTSClassifier(12, n_snippets=20, random_state=0),
]


def by_name(estimator):
    return type(estimator).__name__


def make_series(labels, *, per_class=8, channels=2, seed=0, noise=0.5):
    """Series of 4 to 9 steps whose rows scatter around a direction of their class."""
    rng = np.random.default_rng(seed)
    angles = 2 * np.pi * np.arange(len(labels)) / len(labels)
    centers = np.column_stack([np.cos(angles), np.sin(angles)])[:, :channels]
    codes = np.tile(np.arange(len(labels)), per_class)
    X = [
        centers[c][:, None] + noise * rng.normal(size=(channels, rng.integers(4, 10)))
        for c in codes
    ]
    return X, np.asarray(labels)[codes]


def with_identifiers(X):
    """The same series with names of channels and series, and dates."""
    batch = slts.as_series(X)
    return slts.SeriesBatch(
        batch.values, batch.offsets, ["u", "v"],
        series_names=[f"recording {k}" for k in range(len(batch))],
        times=np.datetime64("2024-03-01", "ns") + np.arange(batch.n_steps),
    )  # fmt: skip


def fit(estimator, labels=("a", "b", "c"), *, channels=2, **parameters):
    X, y = make_series(labels, channels=channels)
    accepted = {k: v for k, v in parameters.items() if k in estimator.get_params()}
    return clone(estimator).set_params(**accepted).fit(X, y)


def new_series(channels=2):
    return make_series(("a", "b", "c"), per_class=3, channels=channels, seed=1)[0]


def assert_same_value(first, second, where=""):
    """Same type, same dtype, same bits, all the way down."""
    assert type(first) is type(second), where
    if isinstance(first, np.ndarray):
        assert first.dtype == second.dtype, where
        np.testing.assert_array_equal(first, second, err_msg=where)
        if first.dtype == object:
            assert_same_value(first.tolist(), second.tolist(), where)
    elif isinstance(first, list | tuple):
        for i, (a, b) in enumerate(zip(first, second, strict=True)):
            assert_same_value(a, b, f"{where}[{i}]")
    elif isinstance(first, dict):
        assert_same_value(list(first.items()), list(second.items()), where)
    elif dataclasses.is_dataclass(first):
        for field in dataclasses.fields(first):
            a, b = getattr(first, field.name), getattr(second, field.name)
            assert_same_value(a, b, f"{where}.{field.name}")
    else:
        # NaN is not equal to itself.
        assert first == second or (first != first and second != second), where


def assert_same_model(first, second, X):
    """Equal parameters, attributes and outputs; what is private is made when it is needed."""
    assert type(first) is type(second)
    names, others = ({n for n in vars(m) if not n.startswith("_")} for m in (first, second))
    assert names == others
    for name in names:
        assert_same_value(getattr(first, name), getattr(second, name), name)
    for method in ("predict", "predict_proba", "decision_function", "transform"):
        if hasattr(first, method) or hasattr(second, method):
            assert_same_value(getattr(first, method)(X), getattr(second, method)(X), method)


def parts(content):
    """Header (as dict), document (as dict) and payload of a file."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    return header, json.loads(header["__metadata__"]["slts"]), content[8 + length :]


def forged(header, document, payload):
    """Bytes of a file with a valid digest and any content, made without code of the library."""
    text = json.dumps({**document, "sha256": "0" * 64})
    entries = json.dumps({**header, "__metadata__": {"slts": text}}).encode()
    blank = len(entries).to_bytes(8, "little") + entries + payload
    return blank.replace(b"0" * 64, hashlib.sha256(blank).hexdigest().encode(), 1)
