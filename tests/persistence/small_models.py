"""Small fitted models of every kind, comparison of models, and forged files."""

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
    slts.LocalSLTSClassifier(
        12,
        n_snippets=20,
        representations=("values", "changes", "levels"),
        objective=("cost", "affinity"),
        random_state=0,
    ),
]
METHODS = ("predict", "predict_proba", "decision_function", "transform")


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


def fit(estimator, labels=("a", "b", "c"), *, channels=2, **parameters):
    X, y = make_series(labels, channels=channels)
    known = {k: v for k, v in parameters.items() if k in estimator.get_params()}
    return clone(estimator).set_params(**known).fit(X, y)


def new_series(channels=2):
    return make_series(("a", "b", "c"), per_class=3, channels=channels, seed=1)[0]


def assert_same_value(first, second, where=""):
    """Same type, same dtype, same bits, all the way down."""
    assert type(first) is type(second), where
    if isinstance(first, np.ndarray):
        assert first.dtype == second.dtype, where
        np.testing.assert_array_equal(first, second, err_msg=where)
        if first.dtype == object:
            assert [type(v) for v in first.flat] == [type(v) for v in second.flat], where
    elif isinstance(first, list | tuple):
        assert len(first) == len(second), where
        for i, (a, b) in enumerate(zip(first, second, strict=True)):
            assert_same_value(a, b, f"{where}[{i}]")
    elif isinstance(first, dict):
        assert list(first) == list(second), where
        for key in first:
            assert_same_value(first[key], second[key], f"{where}[{key!r}]")
    elif dataclasses.is_dataclass(first):
        for field in dataclasses.fields(first):
            a, b = getattr(first, field.name), getattr(second, field.name)
            assert_same_value(a, b, f"{where}.{field.name}")
    elif isinstance(first, np.generic):
        assert first.dtype == second.dtype, where
        assert first == second, where
    else:
        assert first == second, where


def assert_same_model(first, second, X):
    """Equal parameters, attributes and predictions."""
    assert type(first) is type(second)
    # Aligners are made again when they are needed.
    names = first.__dict__.keys() - {"_prepared"}
    assert names == second.__dict__.keys() - {"_prepared"}
    for name in names:
        assert_same_value(getattr(first, name), getattr(second, name), name)
    for method in METHODS:
        assert hasattr(first, method) == hasattr(second, method)
        if hasattr(first, method):
            assert_same_value(getattr(first, method)(X), getattr(second, method)(X), method)


def parts(content):
    """Header (as dict), document (as dict) and payload of a file."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    return header, json.loads(header["__metadata__"]["slts"]), content[8 + length :]


def forged(header, document, payload):
    """Bytes of a file with a valid hash and any content, made without code of the library."""
    text = document if isinstance(document, str) else compact(document)
    return sealed(compact({**header, "__metadata__": {"slts": text}}).encode(), payload)


def sealed(header, payload):
    """Put the correct hash into a header that has a place for it."""
    begin = header.find(rb"\"sha256\":\"")
    if begin < 0:
        return len(header).to_bytes(8, "little") + header + payload
    begin += len(rb"\"sha256\":\"")
    blank = header[:begin] + b"0" * 64 + header[begin + 64 :]
    length = len(header).to_bytes(8, "little")
    digest = hashlib.sha256(length + blank + payload).hexdigest().encode()
    return length + header[:begin] + digest + header[begin + 64 :] + payload


def compact(value):
    return json.dumps(value, separators=(",", ":"))
