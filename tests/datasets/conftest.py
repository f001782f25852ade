import pytest


@pytest.fixture(autouse=True)
def no_stray_data(monkeypatch, tmp_path_factory, request):
    """Hide the data of this machine, unless a test asks for the real data."""
    if "data_folder" not in request.fixturenames:
        monkeypatch.delenv("SLTS_DATA", raising=False)
    monkeypatch.delenv("SLTS_MIRROR", raising=False)
    monkeypatch.setenv("SLTS_CACHE", str(tmp_path_factory.mktemp("cache")))
