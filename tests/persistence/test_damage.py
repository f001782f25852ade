"""A damaged or edited file is refused with a reason, without a crash, a hang or much memory."""

import copy
import os
import pickle
import tracemalloc

import numpy as np
import pytest

import slts
from tests.persistence.small_models import forged, parts


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m.slts"


def refuse(content, path, reason=""):
    path.write_bytes(content)
    tracemalloc.start()
    with pytest.raises(slts.ModelFileError, match=rf"m\.slts.* cannot be loaded: .*{reason}"):
        slts.load(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 32 * 2**20


def damaged(content, way, rng):
    """Damage a file at random places."""
    a, b = np.sort(rng.choice(np.arange(8, len(content)), 2, replace=False)).tolist()
    length = int(rng.integers(2 ** int(rng.integers(1, 63))))
    return {
        "flip a bit": content[:a] + bytes([content[a] ^ (1 << b % 8)]) + content[a + 1 :],
        "truncate": content[:a],
        "append": content + rng.bytes(b - a),
        "cut out": content[:a] + content[b:],
        "overwrite": content[:a] + rng.bytes(b - a) + content[b:],
        "swap": content[:8] + content[a:b] + b"?" + content[8:a] + content[b:],
        "header size": length.to_bytes(8, "little") + content[8:],
    }[way]


WAYS = ["flip a bit", "truncate", "append", "cut out", "overwrite", "swap", "header size"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["SLTSClassifier", "OneNNClassifier", "LocalSLTSClassifier"])
def test_random_damage_is_always_noticed(name, way, saved, path):
    rng = np.random.default_rng(7)
    for _ in range(50):
        refuse(damaged(saved[name][1], way, rng), path)


def test_every_bit_counts(saved, path):
    _, content = saved["OneNNClassifier"]
    for place in [*range(400), *range(400, len(content), 37), len(content) - 1]:
        flipped = bytes([content[place] ^ (1 << place % 8)])
        path.write_bytes(content[:place] + flipped + content[place + 1 :])
        with pytest.raises(slts.ModelFileError):
            slts.load(path)
    refuse(content[:-1] + b"?", path, "does not match its digest: it is damaged or was edited")


@pytest.mark.parametrize("content", [
    b"", b"slts", b"id,time,value\n1,2,3\n", pickle.dumps({"a": 1}), bytes(100),
    (2).to_bytes(8, "little") + b"{}", (100).to_bytes(8, "little") + b"{}",
    (10**6).to_bytes(8, "little") + b"[" * 10**6,
], ids=lambda content: f"{content[:12]!r}")  # fmt: skip
def test_other_files_are_told_apart(content, path):
    refuse(content, path, "it is not a model file of slts")


def test_only_regular_files_are_read(path):
    with pytest.raises(FileNotFoundError):
        slts.load(path)
    for place in [path.parent, *(d for d in ["/dev/zero"] if os.path.exists(d))]:
        with pytest.raises(slts.ModelFileError, match="not a regular file"):
            slts.load(place)


@pytest.mark.parametrize("number", [1, 5, 2**63, "new"])
def test_another_format_is_refused_with_the_version_that_wrote_it(number, saved, path):
    header, document, payload = parts(saved["SLTSClassifier"][1])
    document |= {"format": number, "slts": "9.9.9"}
    refuse(forged(header, document, payload), path, f"by slts 9.9.9 in format {number}, .* reads")


# Edits of a sealed file of SLTSClassifier: (place, value, reason).
FIRST_MAP = "state.model_.maps.tuple.0"
EDITS = [
    ("estimator", "os.system", "has no classifier 'os.system'"),
    ("estimator", "OneNNClassifier", "parameters has missing or unknown fields: .*gamma"),
    ("parameters", [], "no estimator, parameters or state"),
    ("parameters.device", "cuda", "parameters has missing or unknown fields: device"),
    ("parameters.gamma", "0.1", "gamma.* must be a positive finite number"),
    ("parameters.band", {"class": "Itakura", "max_slope": 0.5}, "parameters.band .*max_slope"),
    ("parameters.landmarks", {"array": "model_.maps.0.weights"}, "landmarks.* must be"),
    ("state.surprise", 1, "missing or unknown fields: surprise"),
    ("state.n_series_in_", 1.5, "n_series_in_ must be int"),
    ("state.model_", {"class": "Itakura", "max_slope": 2.0}, "model_ must be LinearModel"),
    ("state.model_.intercept", {"array": "landmark_indices_"}, "intercept must be .*float64"),
    ("state.model_.coefs.tuple.0.array", "model_.maps.0.weights", "model_ .*coefs"),
    (f"{FIRST_MAP}.weights.array", "model_.coefs.0", "maps.*weights"),
    (f"{FIRST_MAP}.landmarks.channel_names", {"tuple": ["a", "a"]}, "landmarks .*channel_names"),
    (f"{FIRST_MAP}.landmarks.offsets.array", "landmark_indices_", "landmarks .*offsets"),
    ("state.landmark_indices_.array", "held_out_scores_.codes", "landmark_indices_"),
]  # fmt: skip


@pytest.mark.parametrize(("place", "value", "reason"), EDITS, ids=[e[0] for e in EDITS])
def test_edited_documents_are_refused(place, value, reason, saved, path):
    header, document, payload = parts(saved["SLTSClassifier"][1])
    *way, last = place.split(".")
    container = document
    for step in way:
        container = container[int(step) if isinstance(container, list) else step]
    container[last] = value
    refuse(forged(header, document, payload), path, reason)


def test_nothing_may_be_missing(saved, path):
    header, document, payload = parts(saved["SLTSClassifier"][1])
    for part in (document, document["parameters"], document["state"]):
        for key in part.keys() - {"sha256"}:
            value = part.pop(key)
            refuse(forged(header, document, payload), path)
            part[key] = value


@pytest.mark.parametrize("entry", [
    {"shape": [2**40, 2**40]}, {"shape": [2**63, 2]}, {"shape": [-3, -10]}, {"shape": None},
    {"dtype": "O"}, {"dtype": "BF16"}, {"data_offsets": [2**50, 2**50 + 240]},
], ids=str)  # fmt: skip
def test_sizes_that_the_file_does_not_have_are_refused(entry, saved, path):
    header, document, payload = parts(saved["SLTSClassifier"][1])
    header["model_.coefs.0"] |= entry
    refuse(forged(header, document, payload), path, "its arrays cannot be read")


def test_unsound_models_are_not_saved(saved, path):
    sound = saved["SLTSClassifier"][0]
    fewer, without_number = copy.copy(sound), copy.deepcopy(sound)
    fewer.landmark_indices_ = sound.landmark_indices_[1:]
    without_number.model_.coefs[0][0] = np.nan
    for model, reason in ((fewer, "landmark_indices_"), (without_number, r"model_\.coefs has NaN")):
        with pytest.raises(slts.ModelFileError, match=rf"cannot be saved as .*m\.slts: .*{reason}"):
            slts.save(model, path)
    assert not path.exists()
