"""One saved model of every kind, made once."""

import pytest

import slts
from tests.persistence.small_models import SMALL, by_name, fit


@pytest.fixture(scope="session")
def saved(tmp_path_factory):
    """By name of the class: (model, bytes of its file)."""
    folder = tmp_path_factory.mktemp("saved")
    files = {}
    for estimator in SMALL:
        model, path = fit(estimator), folder / f"{by_name(estimator)}.slts"
        slts.save(model, path)
        files[by_name(estimator)] = model, path.read_bytes()
    return files
