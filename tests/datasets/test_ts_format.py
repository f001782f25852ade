"""Reading of .ts files: what the format allows, and the line named by an error."""

import gzip
import importlib.util
import io
from pathlib import Path

import numpy as np
import pytest

from slts.datasets import read_ts
from slts.errors import DataError
from slts.series import SeriesBatch, as_series

HEADER = "@problemName P\n@timeStamps false\n@classLabel true a b\n"


def read(text, **options):
    return read_ts(io.StringIO(text), **options)


FULL = (
    "@problemName My problem\n@problemName Other\n@timeStamps false\n@missing true\n"
    "@univariate false\n@dimension 2\n@equalLength true\n@seriesLength 3\n"
    "@author someone\n@classLabel true x y\n@data\n1,2,3:4,5,6:x\n"
)
UNEQUAL = "@univariate false\n@equalLength false\n@data\n1,2:3,4:a\n5:6:b\n"
COMMENTS = "# one\n%two\n\n@classLabel true a\n#three\n@data\n#four\n\n1,2:a\n   \n# five\n3:a\n\n"


@pytest.mark.parametrize(("text", "series", "labels"), [
    (HEADER + UNEQUAL, [[[1, 2], [3, 4]], [[5], [6]]], ["a", "b"]),
    # Identifiers may have any case and order, labels keep theirs, and foreign ones are passed over.
    ("@CLASSLABEL TRUE Up d\n@TimeStamps FALSE\n@DATA\n1:Up\n2:d\n", [[[1]], [[2]]], ["Up", "d"]),
    (FULL, [[[1, 2, 3], [4, 5, 6]]], ["x"]),
    (COMMENTS, [[[1, 2]], [[3]]], ["a", "a"]),
    ("  @classLabel   true\ta  b \n@data\n 1 , 2 : a \n", [[[1, 2]]], ["a"]),
    ("@classLabel false\n@univariate false\n@data\n1:2\n3:4\n", [[[1], [2]], [[3], [4]]], None),
])  # fmt: skip
def test_values_and_labels_are_read_from_every_form_of_header(text, series, labels):
    X, y = read(text)
    assert isinstance(X, SeriesBatch)
    assert ([x.tolist() for x in X], y if y is None else y.tolist()) == (series, labels)


def test_missing_values_become_nan():
    X, y = read(HEADER + "@missing true\n@data\n1,?,NaN,3:a\n?,4:b\n")
    np.testing.assert_array_equal(X[0], [[1, np.nan, np.nan, 3]])
    np.testing.assert_array_equal(X[1], [[np.nan, 4]])
    assert y.tolist() == ["a", "b"]


def test_paths_byte_order_marks_and_compressed_files(tmp_path):
    text = HEADER + "@data\n1,2:a\n"
    plain, packed = tmp_path / "x.ts", tmp_path / "x.ts.gz"
    plain.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    packed.write_bytes(gzip.compress(text.encode()))
    assert read_ts(plain)[0] == read_ts(str(packed))[0] == read(text)[0]


def test_damaged_files_are_refused_by_name(tmp_path):
    binary = tmp_path / "binary.ts"
    binary.write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(DataError, match=r"binary\.ts is not a \.ts file in UTF-8"):
        read_ts(binary)
    packed = tmp_path / "x.ts.gz"
    whole = gzip.compress((HEADER + "@data\n1,2:a\n").encode())
    for content in (whole[:-12], b"plain text", whole[:20] + b"\xff\xff\xff" + whole[23:]):
        packed.write_bytes(content)
        with pytest.raises(DataError, match=r"x\.ts\.gz"):
            read_ts(packed)
    with pytest.raises(FileNotFoundError):
        read_ts(tmp_path / "absent.ts")


BAD = {
    r"has timestamps \(@timeStamps true\)": "@timeStamps true\n@classLabel true a\n@data\n",
    r"line 4 \(series 0\): values in brackets are timestamps": (
        "\n@classLabel true a\n@data\n(2007-01-01,1.5),(2007-01-02,1.5):a\n"
    ),
    r"has targets of a regression": "@targetLabel true\n@data\n1,2:0.5\n",
    r"no line @data": HEADER,
    r"the file has no line @data": "",
    r"line 4: expected a header line that begins with @, got '1,2:a'": HEADER + "1,2:a\n",
    r"no series after @data": HEADER + "@data\n# none\n",
    r"must have @classLabel true .* got 'no @classLabel'": "@data\n1:a\n",
    r"must have @classLabel true .* got 'true'": "@classLabel true\n@data\n1:a\n",
    r"must have @classLabel true .* got 'a b'": "@classLabel a b\n@data\n1:a\n",
    r"line 6 \(series 1\): label 'c' is not one of those after @classLabel: a b": (
        HEADER + "@data\n1:a\n1:c\n"
    ),
    r"label 'A' is not": HEADER + "@data\n1:A\n",
    r"line 5 \(series 0\): expected values, a colon and a label": HEADER + "@data\n1,2\n",
    r"channel 0, step 1 is 'x'": HEADER + "@data\n1,x:a\n",
    r"channel 1, step 2 is ''": HEADER + "@data\n1,2,3:4,5,:a\n",
    r"channel 0, step 0 is '1_000'": HEADER + "@data\n1_000:a\n",
    r"channel 0, step 1 is '-inf'": HEADER + "@data\n?,-inf:a\n",
    r"line 6 \(series 1\): 2 channels, expected 1": HEADER + "@data\n1:a\n1:2:a\n",
    r"channel 1 has 1 steps and channel 0 has 2": HEADER + "@data\n1,2:3:a\n",
}


@pytest.mark.parametrize("message", BAD)
def test_format_errors_name_the_line(message):
    with pytest.raises(DataError, match=message):
        read(BAD[message])


SPEC = importlib.util.find_spec("aeon")
ROOT = Path(SPEC.submodule_search_locations[0]) if SPEC else None
FILES = sorted(p for p in ROOT.rglob("*.ts") if p.stat().st_size < 500_000) if ROOT else []
STAMPED = [path for path in FILES if "TimeStamps" in path.name]

needs_aeon = pytest.mark.skipif(not FILES, reason="aeon, whose files are read, is not installed")


@needs_aeon
def test_aeon_has_files_of_every_kind():
    names = {path.name for path in FILES}
    assert {"JapaneseVowels_TRAIN.ts", "Covid3Month_TEST.ts", "UnitTest_TEST.ts"} <= names
    assert STAMPED


@needs_aeon
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
