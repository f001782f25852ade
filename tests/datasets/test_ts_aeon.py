"""Every small .ts file in the aeon package, read by slts and by aeon."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from slts.datasets import read_ts, write_ts
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


@pytest.mark.parametrize(
    "path", sorted(set(FILES) - set(STAMPED)), ids=lambda path: path.stem if path else "none"
)
def test_we_read_what_aeon_reads(path, tmp_path):
    from aeon.datasets import load_from_ts_file

    X, y = read_ts(path)
    X_aeon, y_aeon = load_from_ts_file(str(path))
    assert as_series(X_aeon) == X
    if y.dtype.kind == "f":
        np.testing.assert_array_equal(y, y_aeon)
    else:
        # aeon turns labels to lower case; we leave them as they are.
        assert [label.lower() for label in y.tolist()] == y_aeon.tolist()
    write_ts(tmp_path / "again.ts", X, y)
    X_again, y_again = read_ts(tmp_path / "again.ts")
    assert X_again == X
    np.testing.assert_array_equal(y_again, y)


@pytest.mark.parametrize("path", STAMPED, ids=lambda path: path.stem if path else "none")
def test_files_with_time_stamps_are_refused(path):
    with pytest.raises(DataError, match=r"has timestamps \(@timeStamps true\)"):
        read_ts(path)
