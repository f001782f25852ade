"""Small stand-ins for the data sets, in every published form."""

import dataclasses
import io
import tarfile
import zipfile

import numpy as np

from slts.datasets import catalogue, loading, originals

SIGNS = ("alive", "flash-light", "his_hers")
JV_TEST = (31, 35, 88, 44, 29, 24, 40, 50, 29)


def shrink(monkeypatch):
    """Let the loaders expect the stand-ins below instead of the published sizes."""
    small = dict(catalogue._CATALOGUE)
    small["arabic_digits"] = dataclasses.replace(
        small["arabic_digits"], n_series=30, n_train=20, n_test=10, lengths=(4, 6)
    )
    small["auslan"] = dataclasses.replace(
        small["auslan"], n_series=18, n_classes=2, lengths=(2, 4), n_channels=22
    )
    monkeypatch.setattr(catalogue, "_CATALOGUE", small)
    monkeypatch.setattr(catalogue, "_ALL_SIGNS_LENGTHS", (2, 4))
    digits = originals._PARTS["arabic_digits"]
    for part, n in (("train", 2), ("test", 1)):
        monkeypatch.setitem(digits, part, (digits[part][0], (n,) * 10))
    for module in (catalogue, originals, loading):
        monkeypatch.setattr(module, "ALL_SIGNS", 3)
    for module in (catalogue, originals):
        monkeypatch.setattr(module, "SAMPLES_PER_SIGN", 9)


def series(rng, lengths, n_channels):
    return [np.round(rng.normal(size=(n, n_channels)), 4) for n in lengths]


def rows(x, separator=" "):
    return "".join(separator.join(repr(float(v)) for v in row) + "\n" for row in x)


def blocks(items, blank="\n"):
    return blank.join(rows(x) for x in items)


def cycle(count, low, high):
    return [low + i % (high - low + 1) for i in range(count)]


def japanese_vowels(rng):
    """Text of ae.train and ae.test, with the published number of series."""
    return {
        "ae.train": blocks(series(rng, cycle(270, 7, 29), 12)),
        "ae.test": blocks(series(rng, cycle(370, 7, 29), 12)),
    }


def vowels_as_ts(files):
    """The same series as .ts files."""
    sizes = {"ae.train": (30,) * 9, "ae.test": JV_TEST}
    names = {"ae.train": "JapaneseVowels_TRAIN.ts", "ae.test": "JapaneseVowels_TEST.ts"}
    result = {}
    for name, text in files.items():
        lines = ["#stand-in", "@problemName JapaneseVowels", "@timeStamps false"]
        lines += ["@univariate false", "@dimensions 12", "@equalLength false"]
        lines += ["@classLabel true 1 2 3 4 5 6 7 8 9", "@data"]
        labels = np.repeat(np.arange(1, 10), sizes[name])
        for label, block in zip(labels, text.split("\n\n"), strict=True):
            columns = zip(*(line.split() for line in block.strip().split("\n")), strict=True)
            lines.append(":".join(",".join(column) for column in columns) + f":{label}")
        result[names[name]] = "\n".join(lines) + "\n"
    return result


def arabic_digits(rng):
    # The originals open with a line of spaces, and separate blocks by such lines.
    blank = "            \n"
    return {
        "Train_Arabic_Digit.txt": blank + blocks(series(rng, cycle(20, 4, 6), 13), blank),
        "Test_Arabic_Digit.txt": blank + blocks(series(rng, cycle(10, 4, 6), 13), blank),
    }


def auslan(rng):
    files = {}
    for session in range(1, 10):
        for sign in SIGNS:
            name = "her" if sign == "his_hers" and session == 1 else sign
            x = series(rng, [2 + session % 3], 22)[0]
            files[f"tctodd{session}/{name}-1.tsd"] = rows(x, "\t")
    return files


def robot_failures(rng):
    counts = {1: (88, 4), 2: (47, 5), 3: (47, 4), 4: (117, 3), 5: (164, 5)}
    files = {}
    for number, (n_series, n_classes) in counts.items():
        text = ""
        for i in range(n_series):
            body = "".join(
                "\t" + "\t".join(map(str, row)) + "\n" for row in rng.integers(-9, 99, (15, 6))
            )
            text += f"class_{i % n_classes}\n{body}\n\n"
        files[f"lp{number}.data"] = text
    return files


def to_zip(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def to_tar(files, mode="w:gz"):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        for name, content in files.items():
            data = content.encode()
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def to_folder(files, folder):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder
