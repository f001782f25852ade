"""Small data, models of every kind that are fitted once, and a browser."""

import functools
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import slts
from slts.report import collect, write_report
from slts.series import SeriesBatch

# Names that a careless page would run or show as markup.
NASTY = (
    "</script><script>window.hacked=1</script>",
    "<img src=x onerror=window.hacked=1>",
    "a & b <!-- \u2028 {{content}}",
)
KINDS = {
    "slts": lambda: slts.SLTSClassifier(16, random_state=0),
    "slts, constant channel": lambda: slts.SLTSClassifier(16, homogeneous=True, random_state=0),
    "slts, no probabilities": lambda: slts.SLTSClassifier(16, calibration_cv=None, random_state=0),
    "slts, cv": lambda: slts.SLTSClassifierCV(16, gammas=(1e-3, 1e-2), random_state=0),
    "bbs": lambda: slts.BBSClassifier(16, normalize=False, random_state=0),
    "svc": lambda: slts.SimilaritySVC(fit_intercept=True, random_state=0),
    "local": lambda: slts.LocalSLTSClassifier(12, n_phases=2, random_state=0),
    "1nn": lambda: slts.OneNNClassifier(),
    "ldmlt": lambda: slts.LDMLTClassifier(n_cycles=1, random_state=0),
    "search": lambda: GridSearchCV(
        slts.BBSClassifier(16, random_state=0), {"gamma": [1e-3, 1e-2]}, cv=2
    ),
    "pipeline": lambda: make_pipeline(FunctionTransformer(), slts.OneNNClassifier()),
}


class Data:
    """Noisy series whose channel means depend on the class."""

    def __init__(self, names, channels=4, steps=(8, 20)):
        self.rng = np.random.default_rng(7)
        self.names, self.channels, self.steps = list(names), channels, steps
        self.y, self.X = self.draw(16)
        self.y_test, self.X_test = self.draw(10)

    def draw(self, per_class):
        labels, series = np.tile(self.names, per_class), []
        for label in labels:
            shift = self.names.index(label)
            means = np.roll(np.linspace(1.5, -1.0, self.channels), shift)
            length = int(self.rng.integers(*self.steps, endpoint=True))
            drift = np.linspace(0, 1, length)[:, np.newaxis] * means[::-1]
            noise = 3.0 * self.rng.normal(size=(length, self.channels))
            series.append((means + drift + noise).T)
        batch = slts.as_series(series)
        names = [f"sensor {k}" for k in range(self.channels)]
        return labels, SeriesBatch(batch.values, batch.offsets, names)


DATA = {"three": Data(["east", "north", "west"]), "two": Data(["no", "yes"])}


@functools.cache
def fitted(kind, data="three"):
    """A model of a kind; it is fitted once in a session."""
    return KINDS[kind]().fit(DATA[data].X, DATA[data].y)


@pytest.fixture
def three():
    return DATA["three"]


@pytest.fixture
def two():
    return DATA["two"]


@pytest.fixture
def model():
    return fitted("slts")


@pytest.fixture(scope="session")
def content():
    """Content of a report with labels; tests must not change it."""
    data = DATA["three"]
    return collect(fitted("slts"), data.X_test, data.y_test)


@pytest.fixture(scope="session")
def nasty():
    """Arguments of a report whose classes, channels, series and title are markup."""
    data = Data(NASTY)
    X, X_test = (
        SeriesBatch(batch.values, batch.offsets, [*NASTY, "plain"])
        for batch in (data.X, data.X_test)
    )
    model = slts.LocalSLTSClassifier(12, n_snippets=60, random_state=0).fit(X, data.y)
    ids = [f"{NASTY[i % 3]} {i}" for i in range(len(X_test))]
    return {"model": model, "X": X_test, "y": data.y_test, "ids": ids, "title": NASTY[0]}


@pytest.fixture(scope="session")
def write(tmp_path_factory):
    """Write a report, and return its file."""
    return lambda **arguments: write_report(
        path=tmp_path_factory.mktemp("report") / "report.html", **arguments
    )


@pytest.fixture(scope="session")
def page_file(write):
    return write(model=fitted("slts"), X=DATA["three"].X_test, y=DATA["three"].y_test)


@pytest.fixture(scope="session")
def local_file(write):
    """The report of a model with snippets."""
    return write(model=fitted("local"), X=DATA["three"].X_test, y=DATA["three"].y_test)


@pytest.fixture(scope="session")
def recorded():
    """Arguments of a report on recordings of 130 steps and more, with names and times."""
    data = Data(["run", "sit", "walk"], channels=5, steps=(130, 150))

    def with_times(batch, first):
        steps = np.arange(batch.n_steps) - np.repeat(batch.offsets[:-1], batch.lengths)
        names = [f"recording {first + k}" for k in range(len(batch))]
        return SeriesBatch(
            batch.values, batch.offsets, batch.channel_names,
            series_names=names, times=10 + steps / 50,
        )  # fmt: skip

    model = slts.LocalSLTSClassifier(15, n_snippets=40, random_state=0)
    model.fit(with_times(data.X, 0), data.y)
    return {"model": model, "X": with_times(data.X_test, 500), "y": data.y_test}


@pytest.fixture(scope="session")
def with_gaps():
    """Arguments of a report on series of which a channel is missing in the middle."""
    data = Data(["east", "west"], steps=(30, 40))

    def without_middle(batch):
        step = np.arange(batch.n_steps) - np.repeat(batch.offsets[:-1], batch.lengths)
        values = batch.values.copy()
        values[(step >= 10) & (step < 20), 1] = np.nan
        return SeriesBatch(values, batch.offsets, batch.channel_names)

    model = slts.LocalSLTSClassifier(12, n_snippets=40, random_state=0)
    model.fit(without_middle(data.X), data.y)
    return {"model": model, "X": without_middle(data.X_test), "y": data.y_test}


@pytest.fixture(scope="session")
def recorded_file(recorded, write):
    return write(**recorded)


@pytest.fixture(scope="session")
def nasty_file(nasty, write):
    return write(**nasty)


@pytest.fixture(scope="session")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    names = ("chromium", "chromium-browser", "google-chrome")
    usual = next(filter(None, map(shutil.which, names)), None)
    program = os.environ.get("SLTS_CHROMIUM", usual)
    if program is None or not Path(program).exists():
        pytest.skip("no browser: install chromium, or set SLTS_CHROMIUM to the path of one")
    options = ["--disable-background-networking", "--disable-gpu", "--no-sandbox"]
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=options)
        yield started
        started.close()


@pytest.fixture(scope="session")
def context(browser):
    """One context for all pages: every further context starts a process."""
    with browser.new_context(reduced_motion="reduce") as shared:
        yield shared


@pytest.fixture
def open_page(browser, context):
    """Open a file. At the end, assert that nothing was logged and nothing else was requested."""
    opened, complaints = [], []

    def visit(path, *, width=1280, height=900, color_scheme="light", **options):
        own = browser.new_context(**options) if options else context
        page = own.new_page()
        opened.append(own if options else page)
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=color_scheme)
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
    for one in opened:
        one.close()
    assert complaints == []
