"""Every small .ts file in the aeon package, read by slts and by aeon."""

import importlib.util
from pathlib import Path

import pytest

from slts.datasets import read_ts
from slts.errors import DataError
from slts.series import as_series

SPEC = importlib.util.find_spec("aeon")
ROOT = Path(SPEC.submodule_search_locations[0]) if SPEC else None
FILES = sorted(p for p in ROOT.rglob("*.ts") if p.stat().st_size < 500_000) if ROOT else []
STAMPED = [path for path in FILES if "TimeStamps" in path.name]

pytestmark = pytest.mark.skipif(not FILES, reason="aeon, whose files are read, is not installed")


def test_aeon_has_files_of_every_kind():
    names = {path.name for path in FILES}
    assert {"JapaneseVowels_TRAIN.ts", "Covid3Month_TEST.ts", "UnitTest_TEST.ts"} <= names
    assert STAMPED


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem if path else "none")
def test_we_read_what_aeon_reads(path):
    from aeon.datasets import load_from_ts_file

    if path in STAMPED or "@targetlabel true" in path.read_text().lower():
        with pytest.raises(DataError, match=r"@timeStamps true|@targetLabel true"):
            read_ts(path)
        return
    X, y = read_ts(path)
    X_aeon, y_aeon = load_from_ts_file(str(path))
    assert as_series(X_aeon) == X
    # aeon turns labels to lower case.
    assert [label.lower() for label in y.tolist()] == y_aeon.tolist()
