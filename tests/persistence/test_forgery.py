"""A file that was edited and given a correct hash is refused, or loads as a sound model."""

import copy
import struct
import time
import tracemalloc
import warnings

import numpy as np
import pytest

import slts
from tests.persistence.small_models import (
    SMALL,
    assert_same_model,
    by_name,
    fit,
    forged,
    new_series,
    parts,
)

# Large enough for a slow machine: the test is for hangs.
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
    """Container and last key of a path such as "state.coef_"."""
    *way, last = key.split(".")
    for step in way:
        document = document[int(step) if isinstance(document, list) else step]
    return document, int(last) if isinstance(document, list) else last


def put(document, key, value):
    container, last = place(document, key)
    container[last] = value


def tensor(header, payload, name):
    """View of a tensor inside a bytearray."""
    kinds = {"F64": np.float64, "I64": np.int64, "I32": np.int32, "BOOL": np.bool_,
             "U64": np.uint64}  # fmt: skip
    begin, end = header[name]["data_offsets"]
    flat = np.frombuffer(payload, np.uint8)[begin:end].view(kinds[header[name]["dtype"]])
    return flat.reshape(header[name]["shape"])


def test_a_resealed_file_loads(saved, path):
    """The helpers of this module write valid files, so the others are refused for their content."""
    for model, content in saved.values():
        path.write_bytes(forged(*parts(content)))
        assert_same_model(slts.load(path), model, new_series())


ROWS = "state.row_map_.record.1"
REPORT = "state.reports_.tuple.0.record"
FIRST = "state.comparisons_.tuple.0.record.1"
ORIGINS = "state.origins_.record.1"
SNIPPETS = "state.snippets_.record.1"
LEVELS = "state.comparisons_.tuple.4.record.1.representation.record.1.levels.record.1"


def labels(*items, dtype="<U1", **more):
    return {"array": {"dtype": dtype, "items": list(items), **more}}


# By classifier: (place, value, reason).
EDITS = {
    "SLTSClassifier": [
        ("estimator", "os.system", "does not know"),
        ("estimator", "Pipeline", "does not know"),
        ("estimator", "BBSClassifier", "parameters that the BBSClassifier .* not have: lam"),
        ("estimator", "LandmarkClassifier", "does not know"),
        ("estimator", ["SLTSClassifier"], "does not know"),
        ("format", 0, "does not state its format"),
        ("format", 2.0, "does not state its format"),
        ("format", True, "does not state its format"),
        ("format", 2**63, "format 9223372036854775808, and this slts"),
        ("slts", 1, "which version of slts wrote it"),
        ("slts", "<script>", "which version of slts wrote it"),
        ("extra", 1, "and no others"),
        ("output", "numpy", "output must be None or one of .'default'"),
        ("output", ["pandas"], "output must be None or one of .'default'"),
        ("parameters", [], "parameters that"),
        ("parameters.surprise", 1, "parameters that .* not have: surprise"),
        ("parameters.realign", 2, "parameters that .* not have: realign"),
        ("parameters.device", "cuda", "parameters that"),
        ("parameters.dtype", "float16", "dtype must be one of .'float64', 'float32'"),
        ("parameters.dtype", "float32", "dtype, objective, band or normalize have changed"),
        ("parameters.gamma", "0.1", "gamma must be a positive finite number"),
        ("parameters.gamma", -1.0, "gamma must be"),
        ("parameters.gamma", {"float": "inf"}, "gamma must be"),
        ("parameters.gamma", {"float": "infinity"}, "not a number"),
        ("parameters.gamma", True, "gamma must be"),
        ("parameters.n_jobs", 10**10, "n_jobs must be"),
        ("parameters.n_jobs", 0, "n_jobs must be None or an integer except 0"),
        ("parameters.n_jobs", "all", "n_jobs must be"),
        ("parameters.verbose", "yes", "verbose must be"),
        ("parameters.objective", "distance", "objective must be"),
        ("parameters.objective", ["affinity"], "objective"),
        ("parameters.objective", "cost", "have changed since fit"),
        ("parameters.normalize", False, "have changed since fit"),
        ("parameters.band", -1, "band must be"),
        ("parameters.band", 3, "have changed since fit"),
        ("parameters.band", {"record": ["Itakura", {"max_slope": 0.5}]}, "max_slope"),
        ("parameters.band", {"record": ["Itakura", {"max_slope": "2"}]}, "max_slope must be"),
        ("parameters.band", {"record": ["Itakura", {"a": 1}]}, "must have the fields max_slope"),
        ("parameters.band", {"record": ["Itakura", {}]}, "must have the fields max_slope"),
        ("parameters.band", {"record": ["Popen", {"args": "ls"}]}, "unknown type"),
        ("parameters.band", {"record": [["Itakura"], {}]}, "unknown type"),
        ("parameters.band", {"same": "parameters.band"}, "refers to no record"),
        ("parameters.band", {"same": ["row_map_"]}, "refers to no record"),
        ("state.row_map_", {"same": "row_map_"}, "refers to no record"),
        ("parameters.landmarks", {"range": [0, 2**62, 1]}, "range"),
        ("parameters.landmarks", {"range": [0, 5, 0]}, "not a valid range"),
        ("parameters.landmarks", {"array": {"tensor": "coef_"}}, "coef_"),
        ("parameters.landmarks", "x" * 70_000, "text of at most 65536"),
        ("parameters.landmarks", {"note": 3}, "note"),
        ("parameters.class_weight", {"dict": [["a", 1], ["a", 2]]}, "repeated"),
        ("parameters.class_weight", {"dict": [[[1], 1]]}, "not a label"),
        ("parameters.class_weight", {"dict": [1]}, "must have a list of 2 items"),
        ("parameters.class_weight", {"dict": [["a", "b"]]}, "class_weight must"),
        ("parameters.random_state", {"numpy": ["int8", 300]}, "int8|bounds"),
        ("parameters.random_state", {"numpy": ["object", 3]}, "unknown dtype"),
        ("parameters.random_state", {"numpy": ["int64", 1.5]}, "not a valid int64"),
        ("parameters.random_state", {"a": 1, "b": 2}, "unknown tag"),
        ("parameters.random_state", {}, "unknown tag"),
        ("parameters.random_state", {"pickle": "gASVAAAA"}, "unknown tag"),
        ("state.classes_", labels("a", "a", "b"), "sorted and distinct"),
        ("state.classes_", labels("a"), "two labels or more"),
        (
            "state.classes_",
            labels("a", "b"),
            "origins_.codes must have indices of the classes, and no other",
        ),
        ("state.classes_", labels("a", "b", "cc"), "longer than its dtype"),
        ("state.classes_", labels("a", "b", "c", shape=[3]), "must have the fields"),
        ("state.classes_", labels(*"a" * 1000, dtype="<U99999"), "unknown dtype"),
        ("state.classes_", labels("a", dtype="<U999999999"), "unknown dtype"),
        ("state.classes_", labels("a", dtype="V8"), "unknown dtype"),
        ("state.classes_", labels("a", 1, None, dtype="object"), "fit together"),
        ("state.classes_", labels("a", ["b"], dtype="object"), "not a label"),
        ("state.classes_", labels(dtype="object"), "the model must have shape"),
        ("state.classes_", ["a", "b", "c"], "classes_ must be an array"),
        ("state.n_series_in_", -5, "n_series_in_ must be"),
        ("state.n_series_in_", 2, "a training series for each class"),
        ("state.n_steps_in_", 1.5, "n_steps_in_ must be"),
        ("state", None, "its state must be"),
        ("state.predict", None, "and no others"),
        ("state.__class__", "x", "and no others"),
        ("state._sklearn_output_config", 3, "and no others"),
        ("state.probability_scale_", "1", "probability_scale_ must be|is not used"),
        ("state.n_channels_in_", 3, "n_features_in_ must be the number of channels"),
        ("state.n_channels_in_", 0, "n_channels_in_ must be"),
        ("state.n_features_in_", 3, "n_features_in_ must be the number of channels"),
        ("state.row_map_", None, "row_map_ must be"),
        ("state.fit_params_.dict.0.1", 1.0, "how the model was fitted"),
        ("state.fit_params_.dict.1.1", "best", "how the model was fitted"),
        ("state.fit_params_.dict.3.1", -1.0, "how the model was fitted"),
        ("state.fit_params_", {"dict": []}, "how the model was fitted"),
        (f"{ROWS}.constant", 1.0, "metrics_ must have shape .*, where .* rows = 3"),
        (f"{ROWS}.constant", -1.0, "constant must be"),
        (f"{ROWS}.settings", None, "settings must be"),
        (f"{ROWS}.settings.record.1.objective", "x", "objective must be"),
        (f"{ROWS}.settings.record.1.dtype", "(1,2", "dtype must be"),
        ("state.coef_.array.order", "K", "unknown order"),
        ("state.coef_.array.byte_order", "big", "coef_ must be"),
        ("state.coef_.array.repeat", 10**5, "coef_ must be"),
        ("state.coef_.array.repeat", 10**9, "repeats"),
        ("state.coef_.array.repeat", -1, "repeats"),
        ("state.coef_.array.tensor", "metrics_", "missing or already used"),
        ("state.coef_.array.tensor", "nowhere", "missing or already used"),
        ("state.coef_.array.tensor", ["coef_"], "missing or already used"),
        ("state.coef_.array.tensor", "landmarks_.values", "missing or already used"),
        ("state.coef_", [1.0], "coef_ is not used|coef_ must be"),
        ("state.coef_", {"series": {}}, "must have the fields"),
        ("state.landmarks_.series.values", "landmarks_.offsets", "dtype int64"),
        ("state.landmarks_.series.channel_names", ["a", "a"], "channel_names"),
        ("state.landmarks_.series.channel_names", [1, 2], "must have a text"),
        ("state.landmarks_.series.series_names", ["a"], "one name per series, 10, got 1"),
        ("state.landmarks_.series.series_names", 10 * [1], "must have a text"),
        ("state.landmarks_.series.times", "landmarks_.values", "times must be|already used"),
        ("state.landmarks_.series.dates", "yes", "times of an unknown kind"),
        ("state.landmarks_.series.places", 1, "must have the fields"),
        ("state.origins_", None, "is not used"),
        (f"{ORIGINS}.names", {"tuple": ["a"]}, "origins_.names must have shape"),
        (f"{ORIGINS}.names", {"tuple": 10 * [1]}, r"origins_.names\[0\] must be text"),
        (f"{ORIGINS}.names", "a", "origins_.names must be None or a tuple"),
        ("state.reports_.tuple", [], "each solved problem once"),
        (f"{REPORT}.1.positive", "z", "each solved problem once"),
        (f"{REPORT}.1.gamma", "0", "gamma must be"),
        (f"{REPORT}.1.stage", "code", "stage must be"),
        (f"{REPORT}.1.n_iter", -1, "n_iter must be"),
        ("state.reports_.tuple.0", {"same": "row_map_.settings"}, "refers to no record"),
        ("state.reports_.tuple.1", {"same": "reports_.0"}, "each solved problem once"),
        ("state.row_map_", {"same": "reports_.0"}, "row_map_ must be of type RowMap"),
        (f"{REPORT}.0", "LogDetSolution", "must have the fields"),
        (f"{REPORT}.0", "Itakura", "must have the fields"),
    ],
    "SLTSClassifierCV": [
        ("state.best_params_", {"dict": []}, "best_params_ must be n_landmarks, gamma, lam"),
        ("state.best_params_.dict.0.1", 5, "number of landmarks"),
        ("state.best_params_.dict.1.1", 0.0, "positive"),
        ("state.best_score_", "good", "best_score_ must be"),
        ("state.n_splits_", 0, "n_splits_ must be"),
        ("state.cv_results_.dict.3.1", [1, 2], "a table"),
    ],
    "BBSClassifier": [("state.metrics_.array.repeat", 4, "metrics_ must have shape")],
    "OneNNClassifier": [
        ("estimator", "SimilaritySVC", "parameters that|its state must be"),
        ("output", "pandas", "fit together"),
    ],
    "SimilaritySVC": [
        ("state.C_", 0.0, "C_ must be"),
        ("parameters.C", 3.0, "C has changed since fit"),
        ("parameters.C", "best", "C must be"),
    ],
    "LDMLTClassifier": [
        ("state.report_.record.1.disorder", {"tuple": ["a"]}, r"disorder\[0\] must be"),
        ("parameters.normalize", False, "have changed since fit"),
    ],
    "LocalSLTSClassifier": [
        ("parameters.band", 2, "band has changed since fit"),
        ("parameters.representations", "x", "representations must be"),
        ("parameters.representations", "values", "representations or objective have changed"),
        ("parameters.objective", "cost", "representations or objective have changed"),
        ("parameters.n_snippets", 0, "snippets_ without n_snippets"),
        ("state.group_names_.tuple", ["a"], "each index of the groups"),
        ("state.group_names_.tuple.0", 1, r"group_names_\[0\] must be"),
        ("state.comparisons_.tuple", [], "is not used|comparisons_ must"),
        (f"{FIRST}.settings.record.1.objective", "distance", "objective have changed"),
        (f"{FIRST}.settings.record.1.normalize", True, "band has changed"),
        (f"{FIRST}.representation.record.1.name", "x", "name must be"),
        (f"{FIRST}.representation.record.1.max_length", 0, "max_length must be"),
        (f"{FIRST}.representation.record.1.max_length", 10**18, "max_length must be"),
        (f"{FIRST}.representation.record.1.max_length", 2.5, "max_length must be"),
        (f"{FIRST}.representation.record.1.constant", 0.0, "constant must be"),
        (f"{FIRST}.representation.record.1.scale", None, "is not used|either a scale or levels"),
        ("state.snippets_", None, "is not used|belong together"),
        ("state.snippet_coef_", None, "is not used|belong together"),
        ("state.snippets_", {"same": "comparisons_.0"}, "is not used"),
        (f"{SNIPPETS}.longest", 0, "longest must be"),
        (f"{SNIPPETS}.longest", 2**60, "longest must be"),
        (f"{SNIPPETS}.longest", 9.5, "longest must be"),
        (f"{SNIPPETS}.longest", None, "snippet_coef_ must have shape"),
        (f"{SNIPPETS}.scale", None, "is not used|scale must be"),
        (f"{SNIPPETS}.scale.record.1.squash", True, "must be linear"),
        (f"{LEVELS}.n_levels", 10**9, "n_levels must be an integer from 1 to 1000"),
        (f"{LEVELS}.n_levels", 4, r"comparisons_\[4\].*change_spread must have shape"),
    ],
}
CASES = [(name, *edit) for name, edits in EDITS.items() for edit in edits]


@pytest.mark.parametrize(
    ("name", "key", "value", "reason"), CASES, ids=[f"{c[1]}={str(c[2])[:30]}" for c in CASES]
)
def test_edited_metadata_is_refused(name, key, value, reason, saved, path):
    header, document, payload = parts(saved[name][1])
    put(document, key, value)
    refuse(forged(header, document, payload), path, reason)


@pytest.mark.parametrize("estimator", SMALL, ids=by_name)
def test_the_number_of_channels_must_agree_everywhere(estimator, saved, path):
    header, document, payload = parts(saved[by_name(estimator)][1])
    document["state"] |= {"n_channels_in_": 3, "n_features_in_": 3}
    kept = "training_rows_" if "training_rows_" in document["state"] else "landmarks_"
    refuse(forged(header, document, payload), path, rf"{kept} must have shape .*, where .* = 3")


@pytest.mark.parametrize("estimator", SMALL, ids=by_name)
def test_nothing_may_be_missing(estimator, saved, path):
    header, document, payload = parts(saved[by_name(estimator)][1])
    for key in document:
        edited = {k: v for k, v in document.items() if k != key}
        path.write_bytes(forged(header, edited, payload))
        with pytest.raises(slts.ModelFileError):
            slts.load(path)
    # What older files lack has a default.
    for key in document["state"].keys() - {"every_", "fit_params_", "label_column_", "validation_"}:
        edited = copy.deepcopy(document)
        del edited["state"][key]
        path.write_bytes(forged(header, edited, payload))
        with pytest.raises(slts.ModelFileError, match=r"its state must be|C_ must be|is not used"):
            slts.load(path)


@pytest.fixture(scope="module")
def without_snippets(tmp_path_factory):
    """A file of a model without snippets."""
    estimator = slts.LocalSLTSClassifier(12, n_snippets=0, random_state=0)
    path = tmp_path_factory.mktemp("models") / "m.slts"
    slts.save(fit(estimator), path)
    return path.read_bytes()


def test_a_number_of_snippets_needs_snippets(without_snippets, path):
    header, document, payload = parts(without_snippets)
    document["parameters"]["n_snippets"] = 1000
    refuse(forged(header, document, payload), path, "n_snippets without snippets_")


def test_snippets_may_be_missing_only_if_their_parameter_is(without_snippets, path):
    header, document, payload = parts(without_snippets)
    for name in ("snippets_", "snippet_coef_"):
        del document["state"][name]
    refuse(forged(header, document, payload), path, "its state must be")
    del document["parameters"]["n_snippets"]
    path.write_bytes(forged(header, document, payload))
    assert slts.load(path).n_snippets == 0


def test_a_parameter_newer_than_the_file_has_its_default(saved, path):
    header, document, payload = parts(saved["SLTSClassifier"][1])
    del document["parameters"]["verbose"]
    path.write_bytes(forged(header, document, payload))
    assert slts.load(path).verbose is False


NUMBERS = [
    ("SLTSClassifier", "coef_", (0, 0), np.nan, "coef_ has NaN"),
    ("SLTSClassifier", "metrics_", (0, 0, 0), np.inf, "metrics_ has NaN"),
    ("SLTSClassifier", "landmarks_.values", (3, 1), np.inf, "is inf"),
    ("SLTSClassifier", "origins_.codes", (3,), 3, "indices of the classes, and no other"),
    ("SLTSClassifier", "origins_.codes", (3,), -1, "indices of the classes, and no other"),
    ("SLTSClassifier", "origins_.indices", (3,), -1, "origins_.indices must be distinct"),
    ("SLTSClassifier", "landmarks_.offsets", (3,), 0, "increase strictly"),
    ("SLTSClassifier", "landmarks_.offsets", (3,), 10**15, "increase strictly"),
    ("SLTSClassifier", "landmarks_.offsets", (-1,), 10**15, "from 0 to the number of steps"),
    ("SLTSClassifier", "landmarks_.offsets", (0,), -4, "from 0 to the number of steps"),
    ("SLTSClassifier", "landmark_indices_", (0,), -1, "distinct and not negative"),
    ("SLTSClassifier", "landmark_indices_", (slice(None),), 3, "distinct and not negative"),
    ("SLTSClassifier", "probability_scale_", (0,), 0.0, "probability_scale_ must be"),
    ("SLTSClassifier", "probability_scale_", (0,), np.nan, "probability_scale_"),
    ("SLTSClassifier", "held_out_margins_.margins", (0,), np.nan, "margins has NaN"),
    ("SLTSClassifier", "held_out_margins_.codes", (0,), 3, "indices of the classes"),
    ("SLTSClassifier", "held_out_margins_.codes", (0,), -1, "indices of the classes"),
    ("SLTSClassifier", "held_out_margins_.weights", (0,), -1.0, "not negative"),
    ("BBSClassifier", "metrics_", (0, 1), 0.5, "identities"),
    ("OneNNClassifier", "training_codes_", (0,), 3, "each index of the classes"),
    ("OneNNClassifier", "training_codes_", (slice(None),), 0, "each index of the classes"),
    ("OneNNClassifier", "training_rows_.values", (0, 0), 1e3, "unit norm"),
    ("OneNNClassifier", "training_rows_.values", (0, 0), 1e300, "unit norm"),
    ("SimilaritySVC", "training_rows_.values", (0, 0), 1e3, "unit norm"),
    ("SimilaritySVC", "intercept_", (0,), np.nan, "intercept_ has NaN"),
    ("LocalSLTSClassifier", "groups_", (0,), 7, "each index of the groups"),
    ("LocalSLTSClassifier", "groups_", (0,), -1, "each index of the groups"),
    ("LocalSLTSClassifier", "local_metrics_.0", (0, 0), np.nan, "has NaN"),
    ("LocalSLTSClassifier", "comparisons_.0.representation.scale.spread", (0,), 0.0, "positive"),
    ("LocalSLTSClassifier", "comparisons_.2.representation.change_spread", (0,), 5e-324, "finite"),
    ("LocalSLTSClassifier", "snippets_.first", (0,), 1, "divide their rows"),
    ("LocalSLTSClassifier", "snippets_.first", (-1,), 10**12, "divide their rows"),
    ("LocalSLTSClassifier", "snippets_.first", (5,), 0, "divide their rows"),
    ("LocalSLTSClassifier", "snippets_.first", (5,), -(10**12), "divide their rows"),
    ("LocalSLTSClassifier", "snippets_.channels", (3,), 2, "indices of the channels"),
    ("LocalSLTSClassifier", "snippets_.channels", (3,), -1, "indices of the channels"),
    ("LocalSLTSClassifier", "snippets_.dilations", (0,), 0, "from 1 to .* ascending"),
    ("LocalSLTSClassifier", "snippets_.dilations", (0,), 9, "from 1 to .* ascending"),
    ("LocalSLTSClassifier", "snippets_.dilations", (-1,), 10**9, "from 1 to .* ascending"),
    ("LocalSLTSClassifier", "snippets_.thresholds", (0, 0), 1e9, "thresholds .* ascend"),
    ("LocalSLTSClassifier", "snippets_.thresholds", (0, 0), np.nan, "thresholds has NaN"),
    ("LocalSLTSClassifier", "snippets_.values", (0, 0), np.inf, "values has NaN"),
    ("LocalSLTSClassifier", "snippets_.by_strength", ..., True, "not by both"),
    ("LocalSLTSClassifier", "snippets_.series", (0,), -1, "not negative"),
    ("LocalSLTSClassifier", "snippets_.scale.spread", (0,), 0.0, "positive"),
    ("LocalSLTSClassifier", "snippet_coef_", (0, 0, 0, 0), np.nan, "snippet_coef_ has NaN"),
    ("LDMLTClassifier", "metric_", (0, 0), 7.0, "same metric as metric_"),
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


@pytest.mark.parametrize(
    ("one", "other", "reason"),
    [
        ("values", "thresholds", "must have shape"),
        ("channels", "dilations", "must have shape"),
        ("first", "starts", "must have shape"),
        ("shape_only", "starts", "must be an array of"),
        ("values", "channels", "must be an array of"),
        ("dilations", "starts", "dilations of snippets must be"),
    ],
)
def test_exchanged_arrays_of_snippets_are_refused(one, other, reason, saved, path):
    header, document, payload = parts(saved["LocalSLTSClassifier"][1])
    fields, _ = place(document, f"{SNIPPETS}.values")
    fields[one], fields[other] = fields[other], fields[one]
    refuse(forged(header, document, payload), path, reason)


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


DAMAGED = "it is (truncated|too long|damaged)"
HEADERS = {
    "huge shape": (with_entry(shape=[2**40, 2**40]), DAMAGED),
    "huger shape": (with_entry(shape=[2**63, 2]), DAMAGED),
    "empty and huge": (with_entry(shape=[0, 2**62]), DAMAGED),
    "negative shape": (with_entry(shape=[-3, -10]), DAMAGED),
    "other shape": (with_entry(shape=[10, 3]), "coef_ must have shape"),
    "many axes": (with_entry(shape=[3, 10] + 70 * [1]), "fit together"),
    "shape of floats": (with_entry(shape=[3.0, 10.0]), DAMAGED),
    "shape of booleans": (with_entry(shape=[True, 30]), DAMAGED),
    "no shape": (with_entry(shape=None), DAMAGED),
    "other dtype": (with_entry(dtype="I64"), "coef_ must be an array of float64"),
    "unknown dtype": (with_entry(dtype="BF16", shape=[6, 20]), "coef_. has the unknown dtype"),
    "dtype of objects": (with_entry(dtype="O"), DAMAGED),
    "dtype no text": (with_entry(dtype=["F64"]), DAMAGED),
    "overlap": (with_entry(data_offsets=[0, 240]), DAMAGED),
    "backwards": (with_entry(data_offsets=[240, 0]), DAMAGED),
    "beyond": (with_entry(data_offsets=[2**50, 2**50 + 240]), DAMAGED),
    "negative": (with_entry(data_offsets=[-240, 0]), DAMAGED),
    "one offset": (with_entry(data_offsets=[240]), DAMAGED),
    "extra field": (with_entry(more=1), "must be described by"),
    "strange name": (rename, "missing or already used"),
    "unused tensor": (unused, "tensor more is not used"),
    "many tensors": (many, "tensor t0 is not used"),
}


@pytest.mark.parametrize("case", HEADERS)
def test_edited_tables_of_tensors_are_refused(case, saved, path):
    edit, reason = HEADERS[case]
    header, document, payload = parts(saved["SLTSClassifier"][1])
    edit(header)
    refuse(forged(header, document, payload), path, reason)


def test_booleans_are_zero_or_one(saved, path):
    header, document, payload = parts(saved["SLTSClassifier"][1])
    begin = len(payload)
    header["odd"] = {"dtype": "BOOL", "shape": [2], "data_offsets": [begin, begin + 2]}
    document["parameters"]["landmarks"] = {"array": {"tensor": "odd"}}
    refuse(forged(header, document, payload + b"\x01\x07"), path, "booleans other than 0 and 1")


SEAL = '"format":2,"slts":"0.1.0","sha256":"' + "0" * 64 + '"'
BOMBS = {
    "nested lists": ("{" + SEAL + ',"a":' + "[" * 10**6 + "]" * 10**6 + "}", "nests deeper"),
    "nested objects": ("{" + SEAL + ',"a":' + '{"a":' * 10**5 + "1" + "}" * 10**5, "nests deeper"),
    "never closed": ("[" * 10**6, "nests deeper"),
    "quotes": ("{" + SEAL + ',"a":"' + '\\"' * 10**6, "not valid JSON"),
    "brackets in text": ("{" + SEAL + ',"a":"' + "[" * 10**5 + '"}', "no others"),
    "many lists": ("{" + SEAL + ',"a":[' + "[]," * 10**5 + "[]]}", "no others"),
    "same key twice": ("{" + SEAL + ',"format":2}', "repeats a key"),
    "NaN": ("{" + SEAL + ',"a":NaN}', "NaN, which is not JSON"),
    "infinity": ("{" + SEAL + ',"a":-Infinity}', "-Infinity, which is not JSON"),
    "overflow": ("{" + SEAL + ',"a":1e999}', "outside the range of floats"),
    "long number": ("{" + SEAL + ',"a":' + "9" * 10**6 + "}", "beyond 64 bits"),
    "long fraction": ("{" + SEAL + ',"a":0.' + "9" * 10**6 + "}", "outside the range of floats"),
    "large integer": ("{" + SEAL + ',"a":18446744073709551616}', "beyond 64 bits"),
    "no object": ("[1]", "does not state its format"),
    "no JSON": ("import os", "not valid JSON"),
    "empty": ("", "not valid JSON"),
    "lone surrogate": ("{" + SEAL + ',"\\ud800":1}', "no others"),
}


@pytest.mark.parametrize("case", BOMBS)
def test_bombs_in_the_metadata_are_refused(case, path):
    text, reason = BOMBS[case]
    refuse(forged({}, text, b""), path, reason)


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (b"{" + b'"a":[' * 5 + b"[" * 10**6, "nests deeper"),
        (b'{"a":1,"a":1}', "repeats a key"),
        (b'{"__metadata__":{"slts":"{}","slts":"{}"}}', "repeats a key"),
        (b'{"__metadata__":{"slts":1}}', "not a model file"),
        (b'{"__metadata__":[]}', "not a model file"),
        (b'{"__metadata__":{"slts":"{}","pt":"x"}}', "not a model file"),
        (b'{"\xff":1}', "not UTF-8"),
        (b"{" + b" " * 100, "not valid JSON"),
    ],
    ids=lambda value: str(value[:20]),
)
def test_bombs_in_the_header_are_refused(header, reason, path):
    refuse(struct.pack("<Q", len(header)) + header, path, reason)


def test_a_header_beyond_the_limit_is_not_read(path):
    refuse(struct.pack("<Q", 2**33) + b"{" + bytes(1000), path, "not a model file")


def leaves(node, way=()):
    """Paths of all values in a document."""
    items = enumerate(node) if isinstance(node, list) else node.items()
    for key, value in items:
        yield (*way, key)
        if isinstance(value, list | dict):
            yield from leaves(value, (*way, key))


STRANGE = [
    None, True, False, 0, 1, -1, 2, 7, 2**31, 2**63 - 1, -(2**63), 0.0, -0.5, 1e308, 5e-324, "",
    "a", "coef_", [], [1], ["a", "b", "c"], {}, {"float": "nan"}, {"tuple": []}, {"dict": []},
    {"array": {"tensor": "coef_"}}, {"numpy": ["float32", 0.5]}, {"range": [0, 3, 1]},
    {"same": "row_map_"}, {"same": "comparisons_.0.representation"},
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("estimator", SMALL, ids=by_name)
def test_random_forgeries_are_refused_or_sound(estimator, saved, path):
    header, document, payload = parts(saved[by_name(estimator)][1])
    rng = np.random.default_rng([11, SMALL.index(estimator)])
    places = list(leaves(document))
    refused = loaded = 0
    for _ in range(150):
        edited, numbers = copy.deepcopy(document), bytearray(payload)
        if rng.random() < 0.7:
            way = places[int(rng.integers(len(places)))]
            put_at(edited, way, STRANGE[int(rng.integers(len(STRANGE)))])
        else:
            name = str(rng.choice([name for name in header if name != "__metadata__"]))
            flat = tensor(header, numbers, name).reshape(-1)
            values = [0, 1, -1, 3, 2**30] if flat.dtype.kind == "i" else [0, 1, 3, 2**30]
            if flat.dtype.kind == "f":
                values = [0.0, 1.0, -1.0, 3.0, 1e308]
            flat[int(rng.integers(flat.size))] = rng.choice(values)
        path.write_bytes(forged(header, edited, bytes(numbers)))
        try:
            model = slts.load(path)
        except slts.ModelFileError:
            refused += 1
            continue
        loaded += 1
        use(model, explain=loaded <= 10)
    assert refused > 50


@pytest.mark.parametrize("estimator", SMALL, ids=by_name)
def test_weights_that_overflow_raise_an_error_and_give_no_nan(estimator, saved, path):
    header, document, payload = parts(saved[by_name(estimator)][1])
    names = [n for n in header if n.startswith(("coef_", "metric", "local_metrics_", "intercept_"))]
    for name in [*names, "probability_scale_"]:
        numbers = bytearray(payload)
        tensor(header, numbers, name)[...] = 1e308
        path.write_bytes(forged(header, document, bytes(numbers)))
        try:
            found = slts.load(path).outputs(new_series())
        except (slts.ModelFileError, slts.DataError):
            continue
        assert np.isfinite(found.decisions).all()
        assert np.isfinite(found.probabilities).all()


def put_at(document, way, value):
    for step in way[:-1]:
        document = document[step]
    document[way[-1]] = value


def use(model, explain):
    """Use every method of a loaded model on finite numbers."""
    X = new_series()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.set_params(verbose=False)
        try:
            assert model.decision_function(X).shape[0] == len(X)
        except slts.DataError:
            # Weights of 1e308.
            return
        assert np.isin(model.predict(X), model.classes_).all()
        if hasattr(model, "transform"):
            model.transform(X)
            model.get_feature_names_out()
        if explain and hasattr(model, "linear_forms"):
            slts.explain(model, X[0])
            slts.summarize(model)
