"""Progress: a bar for people, lines for logs, nothing unless asked."""

import io
import os
import sys

import pytest

from slts import similarity
from slts.execution import progress, progress_bar, progress_lines


class Clock:
    """Time that passes when it is told to, or with every look at it."""

    def __init__(self, step=0.0):
        self.now = 1000.0
        self.step = step

    def monotonic(self):
        self.now += self.step
        return self.now


def run_to_the_end(description="Aligning"):
    with progress_bar(description, show=True) as progress:
        for done in (0.0, 1.0, 2.0):
            progress(done, 2.0)


@pytest.fixture
def watched(monkeypatch):
    """Somebody is at a terminal."""
    monkeypatch.setattr(progress, "_is_interactive", lambda: True)


@pytest.fixture
def without_rich(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "rich"]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("rich", "rich.console", "rich.progress"):
        monkeypatch.setitem(sys.modules, name, None)  # makes the import fail


def test_nothing_is_shown_unless_asked(capfd):
    with progress_bar("Aligning", show=False) as progress:
        progress(1.0, 2.0)
    assert capfd.readouterr() == ("", "")


def test_rich_draws_on_standard_error(capfd, watched):
    pytest.importorskip("rich")
    run_to_the_end()
    out, err = capfd.readouterr()
    assert out == ""
    assert "Aligning" in err
    assert "100%" in err


def test_without_rich_a_line_shows_share_and_time_left(capfd, without_rich, watched):
    run_to_the_end()
    out, err = capfd.readouterr()
    assert out == ""
    assert "\rAligning   0%, inf s left" in err
    assert "\rAligning  50%" in err
    assert "\rAligning 100%, 0 s left" in err
    assert err.endswith("\n")


def test_without_rich_no_work_counts_as_done(capfd, without_rich, watched):
    with progress_bar("Aligning", show=True) as progress:
        progress(0.0, 0.0)
    assert "100%" in capfd.readouterr().err


@pytest.mark.parametrize("verbose", [True, False])
def test_verbose_turns_the_bar_on(capfd, without_rich, watched, verbose):
    similarity([[1.0, 2.0]], verbose=verbose)
    assert ("100%" in capfd.readouterr().err) == verbose


def test_errors_pass_through_the_bar(watched):
    with pytest.raises(RuntimeError, match="broken"), progress_bar("Aligning", show=True):
        raise RuntimeError("broken")


def test_errors_pass_through_the_plain_line(capfd, without_rich, watched):
    with pytest.raises(RuntimeError, match="broken"), progress_bar("Aligning", show=True):
        raise RuntimeError("broken")


# -- Where nobody watches


def lines_of(times, monkeypatch):
    """What is said when one more of a hundred things is done at each of the times."""
    clock, said = Clock(), []
    monkeypatch.setattr(progress, "time", clock)
    with progress_lines("Working", said.append) as tell:
        for number, moment in enumerate(times, start=1):
            clock.now = 1000.0 + moment
            tell(f"{number}%")
    return said


def test_short_work_has_no_lines(monkeypatch):
    assert lines_of([1, 5, 10], monkeypatch) == []
    assert lines_of([], monkeypatch) == []


def test_the_end_of_longer_work_is_told(monkeypatch):
    assert lines_of([1, 11], monkeypatch) == ["Working: 2%, done in 11 s"]


def test_a_line_every_half_minute_at_most(monkeypatch):
    assert lines_of(range(1, 96), monkeypatch) == [
        "Working: 30%, 30 s",
        "Working: 60%, 1 min 0 s",
        "Working: 90%, 1 min 30 s",
        "Working: 95%, done in 1 min 35 s",
    ]
    # Slow ones come when they do.
    assert lines_of([100, 129, 131], monkeypatch) == [
        "Working: 1%, 1 min 40 s",
        "Working: 3%, 2 min 11 s",
        "Working: 3%, done in 2 min 11 s",
    ]


def test_work_that_fails_has_no_end(monkeypatch):
    said = []
    monkeypatch.setattr(progress, "time", Clock(20.0))
    with pytest.raises(ValueError, match="stop"), progress_lines("Working", said.append):
        raise ValueError("stop")
    assert said == []


@pytest.mark.parametrize("rich", [True, False])
def test_a_bar_that_nobody_watches_becomes_lines(rich, capfd, monkeypatch, request):
    if rich:
        pytest.importorskip("rich")
    else:
        request.getfixturevalue("without_rich")
    for variable in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(progress, "time", Clock(20.0))
    run_to_the_end()
    assert capfd.readouterr() == ("", "Aligning: 50%, 40 s\nAligning: 100%, done in 1 min 20 s\n")


@pytest.mark.parametrize("rich", [True, False])
@pytest.mark.parametrize("stream", ["none", "closed", "broken"])
def test_work_goes_on_where_nothing_can_be_written(stream, rich, monkeypatch, request):
    if rich:
        pytest.importorskip("rich")
    else:
        request.getfixturevalue("without_rich")
    broken = io.StringIO()
    if stream == "closed":
        broken.close()
    else:
        monkeypatch.setattr(broken, "write", lambda text: os.write(-1, b""), raising=False)
    monkeypatch.setattr(sys, "stderr", None if stream == "none" else broken)
    monkeypatch.setattr(progress, "time", Clock(20.0))
    with progress_bar("Aligning", show=True) as tell:
        for done in (0.0, 1.0, 2.0):
            tell(done, 2.0)
