"""Model files carry the user's names and times, unless they are left out."""

import numpy as np
import pytest

import slts
from slts.series import SeriesBatch
from tests.persistence.small_models import make_series


@pytest.fixture(params=["numbers", "dates"])
def named(request):
    X, y = make_series(("run", "walk"))
    batch = slts.as_series(X)
    times = 0.5 * np.arange(batch.n_steps)
    if request.param == "dates":
        times = np.datetime64("2024-03-01") + (times * 1e9).astype("timedelta64[ns]")
    names = [f"recording {k}" for k in range(len(X))]
    batch = SeriesBatch(batch.values, batch.offsets, series_names=names, times=times)
    return slts.LocalSLTSClassifier(5, n_snippets=8, random_state=0).fit(batch, y)


def test_names_classes_and_times_survive(named, tmp_path):
    slts.save(named, tmp_path / "m.slts")
    loaded = slts.load(tmp_path / "m.slts")
    kept = [*named.landmark_indices_, *named.snippets_.series]
    assert list(map(loaded.series_name, kept)) == list(map(named.series_name, kept))
    assert loaded.landmarks_.series_names == named.landmarks_.series_names is not None
    assert loaded.landmarks_.times.dtype == named.landmarks_.times.dtype
    np.testing.assert_array_equal(loaded.landmarks_.times, named.landmarks_.times)


def test_identifiers_can_be_left_out(named, tmp_path):
    path = tmp_path / "m.slts"
    slts.save(named, path)
    assert b"recording" in path.read_bytes()
    slts.save(named, path, identifiers=False)
    assert b"recording" not in path.read_bytes()
    loaded = slts.load(path)
    index = named.landmark_indices_[0]
    assert loaded.series_name(index).endswith(f"training series {index}")
    assert loaded.landmarks_.times is None
    np.testing.assert_array_equal(
        loaded.decision_function(loaded.landmarks_), named.decision_function(named.landmarks_)
    )


def test_older_files_number_their_series():
    loaded = slts.load("tests/persistence/golden/v2-local.slts")
    assert loaded.origins_ is None
    assert loaded.series_name(3) == "training series 3"


def test_the_golden_file_with_names_keeps_them():
    loaded = slts.load("tests/persistence/golden/v2-slts-names.slts")
    index = int(loaded.landmark_indices_[0])
    label = ("ant", "bee", "cat")[index % 3]
    assert loaded.series_name(index) == f"{label}, recording {index}"
    assert loaded.landmarks_.times.dtype == np.dtype("datetime64[ns]")
