"""Whoever edits a file and sets its hash right is refused all the same, or gets a sound model."""

import copy
import struct
import time
import tracemalloc
import warnings

import numpy as np
import pytest

import slts
from tests.persistence.zoo import (
    SMALL,
    assert_same_model,
    by_name,
    forged,
    new_series,
    parts,
)

# A hang, not a slow machine, is what must not be.
MOST_SECONDS = 60.0
MOST_BYTES = 256 * 2**20


def refuse(content, path, reason=""):
    path.write_bytes(content)
    tracemalloc.start()
    begin = time.perf_counter()
    with pytest.raises(slts.ModelFileError, match=reason):
        slts.load(path)
    seconds, (_, peak) = time.perf_counter() - begin, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert seconds < MOST_SECONDS
    assert peak < MOST_BYTES


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m.slts"


def place(document, key):
    """Container and last key of a place such as "state.coef_"."""
    *way, last = key.split(".")
    for step in way:
        document = document[int(step) if isinstance(document, list) else step]
    return document, int(last) if isinstance(document, list) else last


def put(document, key, value):
    container, last = place(document, key)
    container[last] = value


def tensor(header, payload, name):
    """Comparison of a tensor inside a bytearray."""
    kinds = {"F64": np.float64, "I64": np.int64, "I32": np.int32}
    begin, end = header[name]["data_offsets"]
    flat = np.frombuffer(payload, np.uint8)[begin:end].view(kinds[header[name]["dtype"]])
    return flat.reshape(header[name]["shape"])


def test_a_resealed_file_loads(saved, path):
    """The forger's tools work, so what follows is refused for its content."""
    for model, content in saved.values():
        path.write_bytes(forged(*parts(content)))
        assert_same_model(slts.load(path), model, new_series())


VIEW = "state.comparisons_.tuple.0.record.1"
EDITS = [
    # (classifier, place, value, reason)
    ("SLTSClassifier", "estimator", "os.system", "does not know"),
    ("SLTSClassifier", "estimator", "Pipeline", "does not know"),
    ("SLTSClassifier", "estimator", "BBSClassifier", "parameters that the BBSClassifier"),
    ("SLTSClassifier", "estimator", "LandmarkClassifier", "does not know"),
    ("SLTSClassifier", "estimator", ["SLTSClassifier"], "does not know"),
    ("OneNNClassifier", "estimator", "SimilaritySVC", "parameters that|it must hold"),
    ("SLTSClassifier", "format", 0, "which format"),
    ("SLTSClassifier", "format", 1.0, "which format"),
    ("SLTSClassifier", "format", True, "which format"),
    ("SLTSClassifier", "format", 2**63, "format 9223372036854775808; this slts"),
    ("SLTSClassifier", "slts", 1, "which slts wrote it"),
    ("SLTSClassifier", "slts", "<script>", "which slts wrote it"),
    ("SLTSClassifier", "extra", 1, "and no others"),
    ("SLTSClassifier", "parameters", [], "parameters that"),
    ("SLTSClassifier", "parameters.surprise", 1, "parameters that"),
    ("SLTSClassifier", "parameters.device", "cuda", "parameters that"),
    ("SLTSClassifier", "parameters.dtype", "float16", "dtype must be 'float64', 'float32'"),
    ("SLTSClassifier", "parameters.dtype", "float32", "dtype, objective, band or normalize are"),
    ("SLTSClassifier", "parameters.gamma", "0.1", "gamma must be a positive finite number"),
    ("SLTSClassifier", "parameters.gamma", -1.0, "gamma must be"),
    ("SLTSClassifier", "parameters.gamma", {"float": "inf"}, "gamma must be"),
    ("SLTSClassifier", "parameters.gamma", {"float": "infinity"}, "no number"),
    ("SLTSClassifier", "parameters.gamma", True, "gamma must be"),
    ("SLTSClassifier", "parameters.n_jobs", 10**9, "n_jobs must be"),
    ("SLTSClassifier", "parameters.n_jobs", 0, "n_jobs must be"),
    ("SLTSClassifier", "parameters.n_jobs", "all", "n_jobs must be"),
    ("SLTSClassifier", "parameters.verbose", "yes", "verbose must be"),
    ("SLTSClassifier", "parameters.objective", "distance", "objective"),
    ("SLTSClassifier", "parameters.objective", "cost", "not those it was fitted with"),
    ("SLTSClassifier", "parameters.normalize", False, "not those it was fitted with"),
    ("SLTSClassifier", "parameters.band", -1, "band must be"),
    ("SLTSClassifier", "parameters.band", 3, "not those it was fitted with"),
    ("SLTSClassifier", "parameters.band", {"record": ["Itakura", {"max_slope": 0.5}]}, "max_slope"),
    ("SLTSClassifier", "parameters.band", {"record": ["Itakura", {"a": 1}]}, "must have"),
    ("SLTSClassifier", "parameters.band", {"record": ["Popen", {"args": "ls"}]}, "unknown type"),
    ("SLTSClassifier", "parameters.band", {"record": [["Itakura"], {}]}, "unknown type"),
    ("SLTSClassifier", "parameters.landmarks", {"range": [0, 2**62, 1]}, "range"),
    ("SLTSClassifier", "parameters.landmarks", {"range": [0, 5, 0]}, "no range"),
    ("SLTSClassifier", "parameters.landmarks", {"array": {"tensor": "coef_"}}, "coef_"),
    ("SLTSClassifier", "parameters.landmarks", "x" * 70_000, "text of 70000"),
    ("SLTSClassifier", "parameters.landmarks", {"note": 3}, "note"),
    ("SLTSClassifier", "parameters.class_weight", {"dict": [["a", 1], ["a", 2]]}, "twice"),
    ("SLTSClassifier", "parameters.class_weight", {"dict": [[[1], 1]]}, "no label"),
    ("SLTSClassifier", "parameters.class_weight", {"dict": [1]}, "lacks a list"),
    ("SLTSClassifier", "parameters.class_weight", {"dict": [["a", "b"]]}, "class_weight must"),
    ("SLTSClassifier", "parameters.random_state", {"numpy": ["int8", 300]}, "int8|bounds"),
    ("SLTSClassifier", "parameters.random_state", {"numpy": ["object", 3]}, "unknown dtype"),
    ("SLTSClassifier", "parameters.random_state", {"numpy": ["int64", 1.5]}, "no int64"),
    ("SLTSClassifier", "parameters.random_state", {"a": 1, "b": 2}, "unknown content"),
    ("SLTSClassifier", "parameters.random_state", {}, "unknown content"),
    ("SLTSClassifier", "parameters.random_state", {"pickle": "gASVAAAA"}, "unknown content"),
    ("SLTSClassifier", "classes",
     {"array": {"dtype": "<U1", "shape": [2], "items": ["a"]}}, r"shape \[2\] and 1 items"),
    ("SLTSClassifier", "classes",
     {"array": {"dtype": "<U1", "shape": [3], "items": ["a", "a", "b"]}}, "sorted, each once"),
    ("SLTSClassifier", "classes",
     {"array": {"dtype": "<U1", "shape": [2], "items": ["a", "b"]}}, "coef_ must have shape"),
    ("SLTSClassifier", "classes",
     {"array": {"dtype": "<U1", "shape": [3], "items": ["a", "b", "cc"]}}, "longer than its dtype"),
    ("SLTSClassifier", "classes",
     {"array": {"dtype": "<U99999", "shape": [1000], "items": ["a"] * 1000}}, "unknown dtype"),
    ("SLTSClassifier", "classes",
     {"array": {"dtype": "<U999999999", "shape": [1], "items": ["a"]}}, "unknown dtype"),
    ("SLTSClassifier", "classes",
     {"array": {"dtype": "V8", "shape": [1], "items": ["a"]}}, "unknown dtype"),
    ("SLTSClassifier", "classes",
     {"array": {"dtype": "object", "shape": [3], "items": ["a", 1, None]}}, "fit together"),
    ("SLTSClassifier", "classes",
     {"array": {"dtype": "object", "shape": [2], "items": ["a", ["b"]]}}, "no label"),
    ("SLTSClassifier", "classes",
     {"array": {"dtype": "object", "shape": [0, 2**62], "items": []}}, "impossible shape"),
    ("SLTSClassifier", "classes", ["a", "b", "c"], "classes_ must be an array"),
    ("SLTSClassifier", "channel_names", ["x", "y"], "channel_names"),
    ("SLTSClassifier", "training.series", -5, "n_series_in_ must be"),
    ("SLTSClassifier", "training.steps", 1.5, "n_steps_in_ must be"),
    ("SLTSClassifier", "training.classes", 4, "number of classes"),
    ("SLTSClassifier", "training", None, "training must tell"),
    ("SLTSClassifier", "state", None, "it must hold"),
    ("SLTSClassifier", "state.predict", None, "and nothing else"),
    ("SLTSClassifier", "state.__class__", "x", "and nothing else"),
    ("SLTSClassifier", "state._sklearn_output_config", 3, "_sklearn_output_config must be"),
    ("SLTSClassifier", "state._scale", 0.0, "_scale must be"),
    ("SLTSClassifier", "state._scale", {"float": "nan"}, "_scale must be"),
    ("SLTSClassifier", "state.n_channels_in_", 3, "n_features_in_"),
    ("SLTSClassifier", "state.n_channels_in_", 0, "n_channels_in_ must be"),
    ("SLTSClassifier", "state._rows", None, "_rows must be"),
    ("SLTSClassifier", "state._rows.record.1.constant", 1.0, "metrics_ must have shape"),
    ("SLTSClassifier", "state._rows.record.1.constant", -1.0, "constant must be"),
    ("SLTSClassifier", "state._rows.record.1.settings", None, "settings must be"),
    ("SLTSClassifier", "state.coef_.array.order", "K", "unknown order"),
    ("SLTSClassifier", "state.coef_.array.byte_order", "big", "coef_ must be"),
    ("SLTSClassifier", "state.coef_.array.repeat", 10**5, "coef_ must be"),
    ("SLTSClassifier", "state.coef_.array.repeat", 10**9, "repeats"),
    ("SLTSClassifier", "state.coef_.array.repeat", -1, "repeats"),
    ("SLTSClassifier", "state.coef_.array.tensor", "metrics_", "not there, or taken"),
    ("SLTSClassifier", "state.coef_.array.tensor", "nowhere", "not there, or taken"),
    ("SLTSClassifier", "state.coef_.array.tensor", ["coef_"], "not there, or taken"),
    ("SLTSClassifier", "state.coef_.array.tensor", "landmarks_.values", "not there, or taken"),
    ("SLTSClassifier", "state.coef_", [1.0], "nothing refers to tensor coef_|coef_ must be"),
    ("SLTSClassifier", "state.coef_", {"series": {}}, "must have the fields"),
    ("SLTSClassifier", "state.landmarks_.series.values", "landmarks_.offsets", "dtype int64"),
    ("SLTSClassifier", "state.landmarks_.series.channel_names", ["a", "a"], "channel_names"),
    ("SLTSClassifier", "state.landmarks_.series.channel_names", [1, 2], "lacks a text"),
    ("SLTSClassifier", "state.reports_.tuple", [], "every solved problem"),
    ("SLTSClassifier", "state.reports_.tuple.0.record.1.positive", "z", "every solved problem"),
    ("SLTSClassifier", "state.reports_.tuple.0.record.1.gamma", "0", "gamma must be"),
    ("SLTSClassifier", "state.reports_.tuple.0.record.1.stage", "code", "stage must be"),
    ("SLTSClassifier", "state.reports_.tuple.0.record.1.n_iter", -1, "n_iter must be"),
    ("SLTSClassifier", "state.reports_.tuple.0.record.0", "LogDetSolution", "must have the fields"),
    ("SLTSClassifierCV", "state.best_params_", {"dict": []}, "best_params_"),
    ("SLTSClassifierCV", "state.best_params_.dict.0.1", 5, "number of landmarks"),
    ("SLTSClassifierCV", "state.best_params_.dict.1.1", 0.0, "positive"),
    ("SLTSClassifierCV", "state.best_score_", "good", "best_score_ must be"),
    ("SLTSClassifierCV", "state.n_splits_", 0, "n_splits_ must be"),
    ("SLTSClassifierCV", "state.cv_results_.dict.3.1", [1, 2], "a table"),
    ("BBSClassifier", "state.metrics_.array.repeat", 4, "metrics_ must have shape"),
    ("LocalSLTSClassifier", "parameters.band", 2, "band is not the one"),
    ("LocalSLTSClassifier", "state.group_names_.tuple", ["a"], "name every group"),
    ("LocalSLTSClassifier", "state.group_names_.tuple.0", 1, "group_names_ must be"),
    ("LocalSLTSClassifier", "state.comparisons_.tuple", [], "nothing refers|for every comparison"),
    ("LocalSLTSClassifier", f"{VIEW}.settings.record.1.objective", "distance", "band is not"),
    ("LocalSLTSClassifier", f"{VIEW}.settings.record.1.normalize", True, "band is not"),
    ("LocalSLTSClassifier", f"{VIEW}.representation.record.1.name", "x", "name must be"),
    ("LocalSLTSClassifier", f"{VIEW}.representation.record.1.max_length", 0, "max_length must be"),
    ("LocalSLTSClassifier", f"{VIEW}.representation.record.1.max_length", 10**18, "max_length must be"),
    ("LocalSLTSClassifier", f"{VIEW}.representation.record.1.max_length", 2.5, "max_length must be"),
    ("LocalSLTSClassifier", f"{VIEW}.representation.record.1.constant", 0.0, "constant must be"),
    ("LocalSLTSClassifier", "state.comparisons_.tuple.4.record.1.representation.record.1.levels.record.1.n_levels",
     10**9, "at most 1000 levels"),
    ("LocalSLTSClassifier", "state.comparisons_.tuple.4.record.1.representation.record.1.levels.record.1.n_levels",
     4, "spread of the channels must have shape"),
    ("LDMLTClassifier", "state.report_.record.1.disorder", {"tuple": ["a"]}, "disorder must be"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "key", "value", "reason"), EDITS, ids=[f"{e[1]}={str(e[2])[:30]}" for e in EDITS]
)
def test_edited_metadata_is_refused(name, key, value, reason, saved, path):
    header, document, payload = parts(saved[name][1])
    put(document, key, value)
    refuse(forged(header, document, payload), path, reason)


@pytest.mark.parametrize("estimator", SMALL, ids=by_name)
def test_nothing_may_be_missing(estimator, saved, path):
    header, document, payload = parts(saved[by_name(estimator)][1])
    for key in document:
        edited = {k: v for k, v in document.items() if k != key}
        path.write_bytes(forged(header, edited, payload))
        with pytest.raises(slts.ModelFileError):
            slts.load(path)
    for key in document["state"]:
        edited = copy.deepcopy(document)
        del edited["state"][key]
        path.write_bytes(forged(header, edited, payload))
        with pytest.raises(slts.ModelFileError, match="it must hold"):
            slts.load(path)


def test_a_parameter_younger_than_the_file_has_its_default(saved, path):
    header, document, payload = parts(saved["SLTSClassifier"][1])
    del document["parameters"]["verbose"]
    path.write_bytes(forged(header, document, payload))
    assert slts.load(path).verbose is False


NUMBERS = [
    ("SLTSClassifier", "coef_", (0, 0), np.nan, "coef_ holds NaN"),
    ("SLTSClassifier", "metrics_", (0, 0, 0), np.inf, "metrics_ holds NaN"),
    ("SLTSClassifier", "landmarks_.values", (3, 1), np.nan, "is NaN"),
    ("SLTSClassifier", "landmarks_.offsets", (3,), 0, "increase strictly"),
    ("SLTSClassifier", "landmarks_.offsets", (3,), 10**15, "increase strictly"),
    ("SLTSClassifier", "landmarks_.offsets", (-1,), 10**15, "from 0 to the number of steps"),
    ("SLTSClassifier", "landmarks_.offsets", (0,), -4, "from 0 to the number of steps"),
    ("SLTSClassifier", "landmark_indices_", (0,), -1, "distinct positions"),
    ("SLTSClassifier", "landmark_indices_", (slice(None),), 3, "distinct positions"),
    ("BBSClassifier", "metrics_", (0, 1), 0.5, "identities"),
    ("OneNNClassifier", "training_codes_", (0,), 3, "_codes must name every class"),
    ("OneNNClassifier", "training_codes_", (slice(None),), 0, "_codes must name every class"),
    ("OneNNClassifier", "training_rows_.values", (0, 0), 1e3, "unit norm"),
    ("OneNNClassifier", "training_rows_.values", (0, 0), 1e300, "unit norm"),
    ("SimilaritySVC", "_series.values", (0, 0), 1e3, "unit norm"),
    ("SimilaritySVC", "intercept_", (0,), np.nan, "intercept_ holds NaN"),
    ("LocalSLTSClassifier", "groups_", (0,), 7, "name every group"),
    ("LocalSLTSClassifier", "groups_", (0,), -1, "name every group"),
    ("LocalSLTSClassifier", "local_metrics_.0", (0, 0), np.nan, "holds NaN"),
    ("LocalSLTSClassifier", "comparisons_.0.representation.scale.spread", (0,), 0.0, "must be positive"),
    ("LDMLTClassifier", "metric_", (0, 0), 7.0, "report_ must be of metric_"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "which", "index", "value", "reason"),
    NUMBERS,
    ids=[f"{e[1]}={e[3]}" for e in NUMBERS],
)
def test_edited_numbers_are_refused(name, which, index, value, reason, saved, path):
    header, document, payload = parts(saved[name][1])
    payload = bytearray(payload)
    tensor(header, payload, which)[index] = value
    refuse(forged(header, document, bytes(payload)), path, reason)


def test_an_unusable_metric_is_refused(saved, path):
    header, document, payload = parts(saved["LDMLTClassifier"][1])
    payload = bytearray(payload)
    for name in ("metric_", "report_.metric"):
        tensor(header, payload, name)[...] = [[0.0, 1.0], [1.0, 0.0]]
    refuse(forged(header, document, bytes(payload)), path, "positive definite")
    for name in ("metric_", "report_.metric"):
        tensor(header, payload, name)[...] = [[1e300, 0.0], [0.0, 1e300]]
    refuse(forged(header, document, bytes(payload)), path, "rows of norm at most")


def with_entry(**changes):
    def edit(header):
        header["coef_"] = {**header["coef_"], **changes}

    return edit


def rename(header):
    header["coef\n"] = header.pop("coef_")


def unused(header):
    begin = max(entry["data_offsets"][1] for entry in header.values() if "dtype" in entry)
    header["more"] = {"dtype": "U8", "shape": [0], "data_offsets": [begin, begin]}


def many(header):
    for i in range(5000):
        header[f"t{i}"] = {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}


HEADERS = {
    "huge shape": (with_entry(shape=[2**40, 2**40]), "bytes and has"),
    "huger shape": (with_entry(shape=[2**63, 2]), "impossible shape"),
    "empty and huge": (with_entry(shape=[0, 2**62]), "impossible shape"),
    "negative shape": (with_entry(shape=[-3, -10]), "impossible shape"),
    "other shape": (with_entry(shape=[10, 3]), "coef_ must have shape"),
    "many axes": (with_entry(shape=[3, 10, 1, 1, 1, 1, 1, 1, 1]), "impossible shape"),
    "shape of floats": (with_entry(shape=[3.0, 10.0]), "impossible shape"),
    "shape of truths": (with_entry(shape=[True, 30]), "impossible shape"),
    "no shape": (with_entry(shape=None), "impossible shape"),
    "other dtype": (with_entry(dtype="I64"), "coef_ must be an array of float64"),
    "unknown dtype": (with_entry(dtype="BF16"), "unknown dtype"),
    "dtype of objects": (with_entry(dtype="O"), "unknown dtype"),
    "dtype no text": (with_entry(dtype=["F64"]), "unknown dtype"),
    "overlap": (with_entry(data_offsets=[0, 240]), "begins at byte"),
    "backwards": (with_entry(data_offsets=[240, 0]), "impossible offsets"),
    "beyond": (with_entry(data_offsets=[2**50, 2**50 + 240]), "begins at byte"),
    "negative": (with_entry(data_offsets=[-240, 0]), "impossible offsets"),
    "one offset": (with_entry(data_offsets=[240]), "impossible offsets"),
    "extra field": (with_entry(more=1), "not described by"),
    "strange name": (rename, "has the name"),
    "unused tensor": (unused, "nothing refers to tensor more"),
    "many tensors": (many, "at most 4096"),
}


@pytest.mark.parametrize("case", HEADERS)
def test_edited_tables_of_tensors_are_refused(case, saved, path):
    edit, reason = HEADERS[case]
    header, document, payload = parts(saved["SLTSClassifier"][1])
    edit(header)
    refuse(forged(header, document, payload), path, reason)


def test_truth_values_are_zero_or_one(saved, path):
    header, document, payload = parts(saved["SLTSClassifier"][1])
    begin = len(payload)
    header["odd"] = {"dtype": "BOOL", "shape": [2], "data_offsets": [begin, begin + 2]}
    document["parameters"]["landmarks"] = {"array": {"tensor": "odd"}}
    refuse(forged(header, document, payload + b"\x01\x07"), path, "other than 0 and 1")


SEAL = '"format":1,"slts":"0.1.0","sha256":"' + "0" * 64 + '"'
BOMBS = {
    "nested lists": ("{" + SEAL + ',"a":' + "[" * 10**6 + "]" * 10**6 + "}", "nests deeper"),
    "nested objects": ("{" + SEAL + ',"a":' + '{"a":' * 10**5 + "1" + "}" * 10**5, "nests deeper"),
    "never closed": ("[" * 10**6, "nests deeper"),
    "quotes": ("{" + SEAL + ',"a":"' + '\\"' * 10**6, "not valid JSON"),
    "brackets in text": ("{" + SEAL + ',"a":"' + "[" * 10**5 + '"}', "no others"),
    "many lists": ("{" + SEAL + ',"a":[' + "[]," * 10**6 + "[]]}", "no others"),
    "same key twice": ("{" + SEAL + ',"format":1}', "repeats a key"),
    "NaN": ("{" + SEAL + ',"a":NaN}', "NaN, which is not JSON"),
    "infinity": ("{" + SEAL + ',"a":-Infinity}', "-Infinity, which is not JSON"),
    "overflow": ("{" + SEAL + ',"a":1e999}', "no float holds"),
    "long number": ("{" + SEAL + ',"a":' + "9" * 10**6 + "}", "beyond 64 bits"),
    "long fraction": ("{" + SEAL + ',"a":0.' + "9" * 10**6 + "}", "no float holds"),
    "large integer": ("{" + SEAL + ',"a":18446744073709551616}', "beyond 64 bits"),
    "no object": ("[1]", "which format"),
    "no JSON": ("import os", "not valid JSON"),
    "empty": ("", "not valid JSON"),
    "lone surrogate": ("{" + SEAL + ',"\\ud800":1}', "no others"),
}


@pytest.mark.parametrize("case", BOMBS)
def test_bombs_in_the_metadata_do_not_go_off(case, path):
    text, reason = BOMBS[case]
    refuse(forged({}, text, b""), path, reason)


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (b"{" + b'"a":[' * 5 + b"[" * 10**6, "nests deeper"),
        (b'{"a":1,"a":1}', "repeats a key"),
        (b'{"__metadata__":{"slts":"{}","slts":"{}"}}', "repeats a key"),
        (b'{"__metadata__":{"slts":1}}', "no model file"),
        (b'{"__metadata__":[]}', "no model file"),
        (b'{"__metadata__":{"slts":"{}","pt":"x"}}', "no model file"),
        (b'{"\xff":1}', "not UTF-8"),
        (b"{" + b" " * 100, "not valid JSON"),
    ],
    ids=lambda value: str(value[:20]),
)
def test_bombs_in_the_header_do_not_go_off(header, reason, path):
    refuse(struct.pack("<Q", len(header)) + header, path, reason)


def test_a_header_beyond_the_limit_is_not_even_read(path):
    refuse(struct.pack("<Q", 2**33) + b"{" + bytes(1000), path, "no model file")


def leaves(node, way=()):
    """Places of everything in a document."""
    items = enumerate(node) if isinstance(node, list) else node.items()
    for key, value in items:
        yield (*way, key)
        if isinstance(value, list | dict):
            yield from leaves(value, (*way, key))


STRANGE = [
    None, True, False, 0, 1, -1, 2, 7, 2**31, 2**63 - 1, -(2**63), 0.0, -0.5, 1e308, 5e-324, "",
    "a", "coef_", [], [1], ["a", "b", "c"], {}, {"float": "nan"}, {"tuple": []}, {"dict": []},
    {"array": {"tensor": "coef_"}}, {"numpy": ["float32", 0.5]}, {"range": [0, 3, 1]},
]  # fmt: skip


@pytest.mark.parametrize("estimator", SMALL, ids=by_name)
def test_random_forgeries_are_refused_or_sound(estimator, saved, path):
    header, document, payload = parts(saved[by_name(estimator)][1])
    rng = np.random.default_rng([11, SMALL.index(estimator)])
    places = list(leaves(document))
    refused = 0
    for _ in range(150):
        edited, numbers = copy.deepcopy(document), bytearray(payload)
        if rng.random() < 0.7:
            way = places[int(rng.integers(len(places)))]
            put_at(edited, way, STRANGE[int(rng.integers(len(STRANGE)))])
        else:
            name = str(rng.choice([name for name in header if name != "__metadata__"]))
            comparison = tensor(header, numbers, name).reshape(-1)
            comparison[int(rng.integers(comparison.size))] = rng.choice([0, 1, -1, 3, 2**30])
        path.write_bytes(forged(header, edited, bytes(numbers)))
        try:
            model = slts.load(path)
        except slts.ModelFileError:
            refused += 1
            continue
        use(model)
    assert refused > 50


def put_at(document, way, value):
    for step in way[:-1]:
        document = document[step]
    document[way[-1]] = value


def use(model):
    """Everything a loaded model does, with finite numbers in and no crash."""
    X = new_series()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.set_params(verbose=False)
        assert model.decision_function(X).shape[0] == len(X)
        assert np.isin(model.predict(X), model.classes_).all()
        if hasattr(model, "transform"):
            model.transform(X)
            model.get_feature_names_out()
        if hasattr(model, "linear_form"):
            slts.explain(model, X[0])
            slts.summarize(model)
