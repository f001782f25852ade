"""Random cases: a target is a function of a generator and an empty folder.

A case passes if it ends with a result without NaN or with a clear error. Everything else is a
finding: `Finding`, an error that no `raise` statement of slts or scikit-learn raised, a crash, or a
case that does not end.
"""

import contextlib
import gzip
import io
import linecache
import shutil
import sys
import traceback
from pathlib import Path

import joblib
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import sklearn
from sklearn.utils.validation import has_fit_parameter

import slts
from slts.cli import main
from slts.cli.application import load_command
from slts.tables import iter_series, read_series
from tests.persistence import test_damage
from tests.persistence.small_models import forged, parts
from tests.tables.forms import FORMS, csv_text, long_table, make_data, write_form

SOURCES = [Path(module.__file__).parent for module in (slts, sklearn, joblib)]
GOLDEN = sorted((Path(__file__).parents[2] / "tests" / "persistence" / "golden").glob("v3-*.slts"))
NUMBERS = [
    0.0, -0.0, 1.0, -1.0, 0.5, 1e-320, 1e-160, 1e150, 1e200, 1e308, -1e308, 2.0**53,
    np.nan, np.inf, -np.inf,
]  # fmt: skip
FINITE = [x for x in NUMBERS if np.isfinite(x)]
TEXTS = [
    "", " ", "nan", "NaN", "inf", "-inf", "null", "None", "0", "1", "-1", "1e308", "1e999", "0x10",
    "1_000", "1,5", "true", "a", "ä", "\u200b", "\x00", '"', "'", "\n", "a\nb", "=1+1", "<b>", "%s",
    "{}", "2020-01-01", "2020-01-01T00:00:00Z", "9" * 40, "../x", "-", "--", "*", "[", "c1..c3",
    "😀", "a" * 300,
]  # fmt: skip


class Finding(Exception):  # noqa: N818 - may be no error of the code
    """A result that is wrong."""


def is_clear(error):
    """Whether a statement of slts or scikit-learn raised the error, for a user to read."""
    if isinstance(error, slts.DataError | slts.ModelFileError):
        return True
    frame = traceback.extract_tb(error.__traceback__)[-1]
    if isinstance(error, OSError) and error.errno is not None:
        return error.filename is not None
    if not isinstance(error, ValueError | TypeError | ImportError | OSError):
        return False
    line = linecache.getline(frame.filename, frame.lineno or 0).strip()
    ours = any(Path(frame.filename).is_relative_to(folder) for folder in SOURCES)
    return ours and line.startswith("raise") and bool(str(error).strip())


def require(condition, what):
    if not condition:
        raise Finding(what)


# -- inputs


def pick(rng, items):
    return items[int(rng.integers(len(items)))]


def chance(rng, probability):
    return rng.random() < probability


def some_series(rng, count, channels):
    """Series that are mostly sound, with some odd values, lengths, types and shapes."""
    scale = pick(rng, [1.0, 1.0, 1.0, 1e-150, 1e-8, 1e8, 1e150, 1e300])
    series = []
    for _ in range(count):
        length = int(pick(rng, [1, 2, 3, 5, 8, 13, 0 if chance(rng, 0.02) else 4]))
        x = rng.normal(size=(channels, length)) * scale
        if chance(rng, 0.1):
            x[:] = pick(rng, [*FINITE, np.nan])
        elif chance(rng, 0.1):
            x = np.round(x)
        series.append(x)
    for _ in range(int(pick(rng, [0, 0, 1, 3]))):
        x = pick(rng, series)
        if x.size:
            values = NUMBERS if chance(rng, 0.1) else [*FINITE, np.nan]
            x.flat[int(rng.integers(x.size))] = pick(rng, values)
    if chance(rng, 0.05):
        series[int(rng.integers(count))] = pick(
            rng, [None, [], 0, "a", [[1, 2], [3]], np.zeros((channels + 1, 3)), np.zeros((1, 2, 3)),
                  np.array([["a"]]), np.zeros((channels, 2), complex), np.zeros((channels, 0))]
        )  # fmt: skip
    kind = int(rng.integers(8))
    if kind == 0:
        with contextlib.suppress(ValueError, TypeError, OverflowError):
            return np.stack([np.resize(x, (channels, 5)) for x in series])
    if kind == 1:
        with contextlib.suppress(ValueError, TypeError, OverflowError):
            return np.stack([np.resize(x, (channels, 5)) for x in series]).astype(
                pick(rng, ["f4", "f2", "i8", "u1", "?", "O", "c16", "U8"])
            )
    if kind == 2:
        with contextlib.suppress(ValueError, TypeError):
            return slts.as_series(series)
    return series


def some_labels(rng, count):
    n_classes = int(pick(rng, [2, 2, 2, 3, 3, 5, 1 if chance(rng, 0.2) else 4]))
    y = np.arange(count) % n_classes
    kind = int(rng.integers(40))
    if kind < 20 or kind > 31:
        return y
    kind -= 20
    if kind < 6:
        return np.array(["low", "high", "mid", "ä", ""])[y]
    if kind == 6:
        return y.astype(float) / 2
    if kind == 7:
        return list(map(bool, y % 2))
    if kind == 8:
        odd = y.astype(object)
        odd[int(rng.integers(count))] = pick(rng, [None, "a", 1.5, np.nan, (1, 2), b"x"])
        return odd
    if kind == 9:
        return y[: int(rng.integers(count + 1))]
    if kind == 10:
        return pick(rng, [None, y[:, None], "labels", 0, np.full(count, np.nan)])
    return np.where(y == 0, np.inf, y)


def some_weights(rng, count):
    if chance(rng, 0.7):
        return None
    w = rng.random(count)
    for _ in range(int(rng.integers(4))):
        w[int(rng.integers(count))] = abs(pick(rng, FINITE))
    if chance(rng, 0.8):
        return w
    return pick(rng, [w[1:], -w, w.tolist(), w * 1e300, np.zeros(count), w + np.nan])


def some_classifier(rng):
    kind = pick(rng, [
        slts.SLTSClassifier, slts.SLTSClassifierCV, slts.BBSClassifier, slts.BBSClassifierCV,
        slts.OneNNClassifier, slts.SimilaritySVC, slts.LDMLTClassifier, slts.LocalSLTSClassifier,
        slts.LocalSLTSClassifier,
    ])  # fmt: skip
    model = kind(random_state=0)
    known = model.get_params()
    quick = {
        "n_landmarks": 6, "gammas": [1e-2], "lams": [0.1], "cv": 2, "n_cycles": 1, "n_snippets": 12,
        "triplets_per_series": 1.0,
    }  # fmt: skip
    model.set_params(**{name: value for name, value in quick.items() if name in known})
    for _ in range(int(pick(rng, [0, 0, 0, 0, 0, 1, 2]))):
        name = pick(rng, sorted(known))
        value = pick(rng, [
            None, True, False, 0, 1, 2, -1, 3.5, 0.5, 1e-300, 1e300, np.nan, np.inf, "a", "auto",
            "cost", "affinity", "balanced", "float32", "cuda", [], [1], (0.1, 0.2), {}, {0: 2.0},
            np.float64(0.3), np.int64(4), np.arange(3), object(), 10**30,
        ])  # fmt: skip
        model.set_params(**{name: value})
    return model


def check_outputs(model, X):
    """Labels are classes; probabilities and decisions are finite."""
    labels = model.predict(X)
    require(set(np.unique(labels)) <= set(model.classes_), "labels that are not classes")
    for method in ("predict_proba", "decision_function", "transform"):
        if hasattr(model, method):
            values = np.asarray(getattr(model, method)(X))
            require(len(values) == len(labels), f"{method}: {len(values)} rows")
            require(np.isfinite(values).all(), f"{method}: not finite")
            if method == "predict_proba":
                sums = values.sum(axis=1)
                require(np.allclose(sums, 1.0) and (values >= 0).all(), "probabilities sum to 1")
    return labels


def arrays(rng, folder):
    """Fit on odd arrays, then use everything that takes a model."""
    count, channels = int(pick(rng, [2, 6, 12, 12, 24, 24])), int(pick(rng, [1, 2, 3]))
    X, y = some_series(rng, count, channels), some_labels(rng, count)
    model, weights = some_classifier(rng), some_weights(rng, count)
    if weights is None or not has_fit_parameter(model, "sample_weight"):
        model.fit(X, y)
    else:
        model.fit(X, y, sample_weight=weights)
    check_outputs(model, X)
    new = some_series(rng, 4, channels)
    with allowed():
        check_outputs(model, new)
    use = pick(rng, ["save", "explain", "summarize", "certify", "sets", "nothing"])
    with allowed():
        if use == "save":
            slts.save(model, folder / "m.slts")
            loaded = slts.load(folder / "m.slts")
            require((loaded.predict(X) == model.predict(X)).all(), "another model was loaded")
        elif use == "explain":
            explained = slts.explain(model, slts.as_series(X)[0])
            require(np.isfinite(explained.contributions).all(), "contributions are not finite")
        elif use == "summarize":
            slts.summarize(model, pick(rng, [None, X]))
        elif use == "certify":
            found = slts.certify(model, new, y[:4], delta=pick(rng, [0.05, 0.5, 1e-300, 0.0, 1.0]))
            require("nan" not in str(found).lower(), "NaN in a certificate")
        elif use == "sets":
            slts.prediction_sets(model).predict(X, pick(rng, [0.05, 0.5, 0.999, 0.0, np.nan]))


def alignments(rng, folder):
    """Functions on pairs of collections."""
    channels = int(pick(rng, [1, 2, 3]))
    X = some_series(rng, int(pick(rng, [1, 2, 5])), channels)
    Y = some_series(rng, int(pick(rng, [1, 2, 5])), channels)
    options = {}
    if chance(rng, 0.5):
        options["objective"] = pick(rng, ["cost", "affinity"])
    if chance(rng, 0.5):
        bands = [None, 0, 1, 2, 0.1, 0.5, 1.0, 10**9, slts.Itakura(2.0), slts.Itakura(1.0)]
        options["band"] = pick(rng, [-1, np.nan, "a", 2.0] if chance(rng, 0.1) else bands)
    if chance(rng, 0.3):
        options["dtype"] = pick(rng, ["float32", "float64", "int8"])
    if chance(rng, 0.3):
        options["n_jobs"] = pick(rng, [0, 1.5, "2"] if chance(rng, 0.1) else [None, 1, 2, -1, 4096])
    if chance(rng, 0.3):
        found = slts.align(
            X[0], Y[0], **{k: v for k, v in options.items() if k in ("objective", "band")}
        )
        require(np.isfinite(found.similarity), "the similarity is not finite")
        return
    function = pick(rng, [slts.similarity, slts.aligned_products])
    require(np.isfinite(function(X, Y, **options)).all(), "results are not finite")


# -- model files


def leaves(node, path=()):
    """Yield the paths of all values in a document."""
    items = (
        node.items()
        if isinstance(node, dict)
        else enumerate(node)
        if isinstance(node, list)
        else ()
    )
    for key, value in items:
        yield (*path, key)
        yield from leaves(value, (*path, key))


def edit(rng, document):
    path = pick(rng, list(leaves(document)))
    for key in path[:-1]:
        document = document[key]
    old = document[path[-1]]
    new = pick(rng, [
        None, True, 0, 1, -1, 7, 2**63, 10**30, 0.5, 1e308, 1e-320, float("nan"), "", "a", [],
        [old], {"a": old}, [1.0, 2.0], "float64",
    ])  # fmt: skip
    if isinstance(old, int | float) and chance(rng, 0.7):
        new = pick(rng, [old + 1, old - 1, -old, old * 2, float(old)])
    if isinstance(old, list) and old and chance(rng, 0.5):
        new = pick(rng, [old[:-1], old[::-1], old + old])
    if chance(rng, 0.1):
        del document[path[-1]]
    else:
        document[path[-1]] = new


def models(rng, folder):
    """Load a damaged file, or one that was edited and sealed again."""
    content = pick(rng, GOLDEN).read_bytes()
    if chance(rng, 0.2):
        content = test_damage.damaged(content, pick(rng, test_damage.WAYS), rng)
    else:
        header, document, payload = parts(content)
        for _ in range(int(pick(rng, [0, 0, 1, 1]))):
            edit(rng, document)
        payload = bytearray(payload)
        for _ in range(int(pick(rng, [0, 1, 1, 3]))):
            place = 8 * int(rng.integers(len(payload) // 8))
            number = np.float64(pick(rng, FINITE)).tobytes()
            payload[place : place + 8] = pick(
                rng, [number, rng.bytes(8), (2**40).to_bytes(8, "little")]
            )
        content = forged(header, document, bytes(payload))
    path = folder / "m.slts"
    path.write_bytes(content)
    # Edited models may be unsound: only loading must raise a clear error.
    slts.load(path)


# -- files


def damaged_text(rng, text):
    lines = text.split("\n")
    for _ in range(int(pick(rng, [0, 1, 1, 1, 2]))):
        k = int(rng.integers(len(lines) if chance(rng, 0.3) else len(lines) - 1) or 1) - 1
        cells = lines[k].split(",")
        c = int(rng.integers(len(cells)))
        act = int(rng.integers(10))
        if act < 5:
            cells[c] = pick(rng, TEXTS)
            lines[k] = ",".join(cells)
        elif act == 5:
            lines.insert(k, pick(rng, [lines[k], "", ",", "#", lines[0]]))
        elif act == 6:
            lines[k] = ",".join([*cells, pick(rng, TEXTS)])
        elif act == 7:
            lines[k] = ",".join(cells[:c])
        elif act == 8 and len(lines) > 1:
            del lines[k]
        else:
            lines[k] = ",".join(
                pick(rng, TEXTS) if j == c else cell for j, cell in enumerate(cells)
            )
    text = pick(rng, ["\n"] * 12 + ["\r\n"] * 4 + ["\r"]).join(lines)
    if chance(rng, 0.05):
        text = text.replace(",", pick(rng, [";", "\t", " ", "|", ",,"]))
    if chance(rng, 0.05):
        text = text[: int(rng.integers(len(text) + 1))]
    return text


def damaged_table(rng, table):
    for _ in range(int(pick(rng, [0, 1, 1, 1, 2]))):
        if not table.num_columns:
            break
        k = int(rng.integers(table.num_columns))
        name, column = table.column_names[k], table.column(k)
        act = int(rng.integers(9))
        values = column.to_pylist()
        if act == 0:
            table = table.remove_column(k)
        elif act == 1:
            table = table.append_column(pick(rng, [name, "x", "", "label", "time", "id"]), column)
        elif act == 2:
            table = table.slice(0, int(rng.integers(table.num_rows + 1)))
        elif act == 3:
            table = table.take(rng.permutation(table.num_rows))
        elif act == 4:
            table = table.rename_columns(
                [
                    pick(rng, TEXTS) if j == k else other
                    for j, other in enumerate(table.column_names)
                ]
            )
        else:
            for _ in range(int(pick(rng, [1, len(values)]))):
                if values:
                    values[int(rng.integers(len(values)))] = pick(rng, [None, *NUMBERS])
            kind = pick(rng, [
                pa.float64(), pa.float32(), pa.int64(), pa.string(), pa.bool_(), pa.float16(),
                pa.list_(pa.float64()), pa.timestamp("ns"), pa.decimal128(20, 4), pa.binary(),
                pa.dictionary(pa.int32(), pa.string()), pa.null(), pa.struct([("a", pa.int8())]),
                pa.duration("ms"), pa.time64("us"), pa.uint64(), pa.date32(), pa.large_string(),
            ])  # fmt: skip
            try:
                made = pa.array(values).cast(kind)
            except (pa.ArrowException, TypeError, OverflowError):
                try:
                    made = pa.array([None if v is None else str(v) for v in values]).cast(kind)
                except (pa.ArrowException, TypeError):
                    made = pa.nulls(len(values), kind)
            table = table.set_column(k, name, made)
    return table


def write_damaged(rng, folder):
    """Write a data set in some form, with some damage; return its path."""
    data = make_data(int(pick(rng, [1, 2, 4, 12])), int(rng.integers(1000)))
    act = int(rng.integers(9))
    if act < 4:
        text = damaged_text(rng, csv_text(long_table(*data)))
        path = folder / pick(rng, ["data.csv", "data.csv", "data.tsv", "data.csv.gz", "data.csv"])
        content = text.encode(pick(rng, ["utf-8"] * 8 + ["utf-16", "utf-8-sig"]), "replace")
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
        return path
    if act < 8:
        path = folder / pick(rng, ["data.parquet", "data.parquet", "data.feather"])
        table = damaged_table(rng, long_table(*data))
        if path.suffix == ".parquet":
            pq.write_table(table, path, row_group_size=int(pick(rng, [1, 7, 1000])))
        else:
            import pyarrow.feather

            pyarrow.feather.write_feather(table, path)
        return path
    path = write_form(pick(rng, FORMS), folder, *data)
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    for _ in range(int(pick(rng, [1, 1, 2]))):
        file = pick(rng, files)
        content = file.read_bytes()
        if len(content) > 20:
            file.write_bytes(test_damage.damaged(content, pick(rng, test_damage.WAYS[:6]), rng))
    return path


def some_columns(rng):
    names = ["recording", "t", "speaker", "c1", "c2", "c3", "x", "id", "label", *TEXTS]
    options = {}
    for role in ("id", "time", "label", "groups"):
        if chance(rng, 0.05):
            options[role] = pick(rng, names)
    if chance(rng, 0.1):
        options["channels"] = pick(
            rng, [["c1"], ["c1", "c2", "c3"], "c1..c3", [], "c3..c1", [pick(rng, names)]]
        )
    if chance(rng, 0.1):
        options["every"] = pick(rng, [1, 0.5, "20ms", "0s", 0, -1, 1e-9, 1e300, "a", np.nan])
    return options


def tables(rng, folder):
    """Read damaged files whole, in batches and in parts, and fit on them."""
    path, options = write_damaged(rng, folder), some_columns(rng)
    act = int(rng.integers(4))
    if act == 0:
        found = read_series(path, **options)
        count = len(found.series)
        require(found.ids is None or len(found.ids) == count, "as many identifiers as series")
        require(not np.isinf(found.series.values).any(), "infinite values were read")
    elif act == 1:
        for batch in iter_series(path, batch_size=3, **options):
            require(not np.isinf(batch.series.values).any(), "infinite values were read")
    else:
        scan = slts.scan_series(path, **{"label": "speaker"} | options)
        repr(scan)
        model = slts.BBSClassifier(4, random_state=0) if act == 2 else slts.OneNNClassifier()
        model.fit(scan)
        check_outputs(model, scan)


# -- command lines


def some_model(rng, folder):
    """Copy a model file, because commands may overwrite it."""
    given = pick(rng, GOLDEN)
    return shutil.copy(given, folder / given.name)


def some_value(rng, folder, data):
    files = [
        data,
        folder / "m.slts",
        some_model(rng, folder),
        folder,
        folder / "out.csv",
        folder / "out.html",
    ]
    numbers = ["0", "1", "-1", "2", "0.05", "0.5", "1.0", "nan", "1e400", "1000000000000000000000"]
    words = [
        "recording", "speaker", "t", "c1..c3", "c1,c2", "cpu", "slts", "bbs", "1nn",
        "n_landmarks=4", "gamma=nan", "cv=2", "2GB", "1B", "r001", "low", "skip", "20ms",
        "japanese_vowels:nowhere", "\udcff",
    ]  # fmt: skip
    return str(pick(rng, [*files, *numbers, *words, *numbers, *words, pick(rng, TEXTS)]))


def run_command(words, text, folder):
    """Run a command line; return exit code, output and messages."""
    output, messages, before = io.StringIO(), io.StringIO(), sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(text.encode("utf-8", "replace")))
    try:
        with (
            contextlib.chdir(folder),
            contextlib.redirect_stdout(output),
            contextlib.redirect_stderr(messages),
        ):
            code = main(words)
    finally:
        sys.stdin = before
    return code, output.getvalue(), messages.getvalue()


def commands(rng, folder):
    """Run a random command line in this process."""
    data = write_damaged(rng, folder) if chance(rng, 0.5) else write_form(
        pick(rng, FORMS), folder, *make_data(12, 1)
    )  # fmt: skip
    command = pick(rng, ["fit", "predict", "evaluate", "explain", "certify", "report"])
    known = [p for p in load_command(command).params if p.param_type_name == "option"]
    model = str(pick(rng, [folder / "m.slts", *[some_model(rng, folder)] * 9]))
    words = {
        "fit": ["fit", str(data), "--model", str(folder / "m.slts")],
        "report": ["report", model, "--out", str(folder / "r.html")],
    }.get(command, [command, model, str(data)])
    if command == "fit":
        words += ["--method", pick(rng, ["bbs", "slts", "1nn", "svm", "local"])]
        words += pick(rng, [[], ["--param", "n_landmarks=4"]])
    if command == "report" and chance(rng, 0.7):
        words += [str(data)]
    for _ in range(int(pick(rng, [0, 1, 2, 4]))):
        if not known or chance(rng, 0.1):
            words.append(some_value(rng, folder, data))
            continue
        option = pick(rng, known)
        if "--help" in option.opts or "--out" in option.opts:
            continue
        words.append(pick(rng, option.opts))
        if not option.is_flag:
            words.append(some_value(rng, folder, data))
    if chance(rng, 0.1):
        del words[int(rng.integers(1, len(words)))]
    words = [word for word in words if "\x00" not in word]
    text = damaged_text(rng, csv_text(long_table(*make_data(4))))
    try:
        code, output, said = run_command(words, text, folder)
    except Exception as error:
        # Users would see a traceback.
        raise Finding(f"{words}: {error!r}") from error
    require(code in (0, 1, 2), f"exit code {code} of {words}")
    require("Traceback" not in said, f"{words}: {said}")
    require(code == 0 or said.strip(), f"no message, exit code {code} of {words}")
    if command == "predict" and code == 0:
        require("nan" not in output.lower(), f"NaN in predictions of {words}")


@contextlib.contextmanager
def allowed():
    """Let a clear error end a step."""
    try:
        yield
    except Finding:
        raise
    except Exception as error:
        if not is_clear(error):
            raise


TARGETS = {
    function.__name__: function for function in (arrays, alignments, models, tables, commands)
}
