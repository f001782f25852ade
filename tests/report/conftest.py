"""Small models of every kind, and a browser."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import slts
from slts.report import write_report
from slts.series import SeriesBatch

# What a careless page would run or show as markup.
NASTY = (
    "</script><script>window.hacked=1</script>",
    "<img src=x onerror=window.hacked=1>",
    "a & b <!-- \u2028 {{content}}",
)


def make_series(rng, labels, names, channels=4, steps=(8, 20), noise=0.6):
    """Series whose channels lean on their class."""
    series = []
    for label in labels:
        means = np.roll(np.linspace(1.5, -1.0, channels), names.index(label))
        length = int(rng.integers(*steps, endpoint=True))
        drift = np.linspace(0, 1, length)[:, np.newaxis] * means[::-1]
        series.append(means + drift + noise * rng.normal(size=(length, channels)))
    offsets = np.concatenate([[0], np.cumsum([len(x) for x in series])])
    return SeriesBatch(np.concatenate(series), offsets, [f"sensor {k}" for k in range(channels)])


class Data:
    def __init__(self, names, noise=3.0, **options):
        rng = np.random.default_rng(7)
        self.names = list(names)
        self.y = np.tile(self.names, 20)
        self.y_test = np.tile(self.names, 14)
        self.X = make_series(rng, self.y, self.names, noise=noise, **options)
        self.X_test = make_series(rng, self.y_test, self.names, noise=noise, **options)


@pytest.fixture(scope="session")
def three():
    return Data(["east", "north", "west"])


@pytest.fixture(scope="session")
def two():
    return Data(["no", "yes"])


@pytest.fixture(scope="session")
def model(three):
    return slts.SLTSClassifier(24, random_state=0).fit(three.X, three.y)


@pytest.fixture(scope="session")
def nasty():
    """A model whose classes, channels and series have names that are markup."""
    data = Data(NASTY)
    X = SeriesBatch(data.X.values, data.X.offsets, [*NASTY, "plain"])
    X_test = SeriesBatch(data.X_test.values, data.X_test.offsets, [*NASTY, "plain"])
    fitted = slts.SLTSClassifier(24, random_state=0).fit(X, data.y)
    ids = [f"{NASTY[i % 3]} {i}" for i in range(len(X_test))]
    return {"model": fitted, "X": X_test, "y": data.y_test, "ids": ids, "title": NASTY[0]}


@pytest.fixture(scope="session")
def page_file(model, three, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    return write_report(model, folder / "report.html", X=three.X_test, y=three.y_test)


@pytest.fixture(scope="session")
def vowels_file(tmp_path_factory):
    """The report that `slts demo` writes: Japanese Vowels with all 370 test series."""
    X, y = slts.datasets.load("japanese_vowels", "train")
    X_test, y_test = slts.datasets.load("japanese_vowels", "test")
    fitted = slts.LocalSLTSClassifier(random_state=0).fit(X, y)
    target = tmp_path_factory.mktemp("vowels") / "report.html"
    return write_report(fitted, target, X=X_test, y=y_test)


def find_chromium():
    """The browser's program: SLTS_CHROMIUM, or what is called so."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return os.environ.get("SLTS_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = find_chromium()
    if program is None or not Path(program).exists():
        pytest.skip("no browser: install chromium, or name one with SLTS_CHROMIUM")
    quiet = ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    quiet += ["--no-first-run", "--disable-quic", "--disable-gpu", "--no-sandbox"]
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=quiet)
        yield started
        started.close()


@pytest.fixture
def open_page(browser):
    """Open a file; afterwards no error was logged and nothing but the file was asked for."""
    contexts, complaints = [], []

    def visit(path, *, width=1280, height=900, **options):
        context = browser.new_context(
            viewport={"width": width, "height": height}, reduced_motion="reduce", **options
        )
        contexts.append(context)
        page = context.new_page()
        url = Path(path).as_uri()
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(f"dialog {dialog.message}"))
        page.on(
            "request",
            lambda request: request.url == url or complaints.append(f"request {request.url}"),
        )
        page.goto(url)
        return page

    yield visit
    for context in contexts:
        context.close()
    assert complaints == []
