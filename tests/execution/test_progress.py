"""Progress: a bar for people, lines for logs, nothing unless asked."""

import io
import os
import sys

import pytest

from slts.execution import progress, progress_bar, progress_lines


class Clock:
    """Time that passes when it is told to, or with every look at it."""

    def __init__(self, step=0.0):
        self.now, self.step = 1000.0, step

    def monotonic(self):
        self.now += self.step
        return self.now


def run_to_the_end(*, show=True):
    with progress_bar("Aligning", show=show) as tell:
        for done in (0.0, 1.0, 2.0):
            tell(done, 2.0)


@pytest.fixture
def watched(monkeypatch):
    """Somebody is at a terminal."""
    monkeypatch.setattr(progress, "_is_interactive", lambda: True)


@pytest.fixture
def rich(request, monkeypatch):
    """Rich is installed, or it is not."""
    if request.param:
        return pytest.importorskip("rich")
    for name in [name for name in sys.modules if name.partition(".")[0] == "rich"]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("rich", "rich.console", "rich.progress"):
        monkeypatch.setitem(sys.modules, name, None)  # makes the import fail
    return None


with_and_without_rich = pytest.mark.parametrize("rich", [True, False], indirect=True)


@with_and_without_rich
@pytest.mark.parametrize("show", [True, False])
def test_a_bar_is_drawn_on_standard_error_if_asked(capfd, watched, rich, show):
    run_to_the_end(show=show)
    out, err = capfd.readouterr()
    assert out == ""
    assert all((text in err) == show for text in ("Aligning", "100%", "\n"))
    if show and not rich:
        assert err == "\rAligning   0%\rAligning  50%\rAligning 100%\n"


@pytest.mark.parametrize(("times", "lines"), [
    ([], []), ([1, 5, 10], []), ([1, 11], ["2%, done in 11 s"]),
    (range(1, 65), ["30%, 30 s", "60%, 1 min 0 s", "64%, done in 1 min 4 s"]),
    # At most every half minute, and later if the work is slow.
    ([100, 129, 131], ["1%, 1 min 40 s", "3%, 2 min 11 s", "3%, done in 2 min 11 s"]),
])  # fmt: skip
def test_lines_come_twice_a_minute_and_at_the_end_of_long_work(times, lines, monkeypatch):
    """One more of a hundred things is done at each of the times."""
    clock, said = Clock(), []
    monkeypatch.setattr(progress, "time", clock)
    with progress_lines("Working", said.append) as tell:
        for number, moment in enumerate(times, start=1):
            clock.now = 1000.0 + moment
            tell(f"{number}%")
    assert said == [f"Working: {line}" for line in lines]


def test_work_that_fails_has_no_last_line(monkeypatch):
    monkeypatch.setattr(progress, "time", Clock(20.0))
    with pytest.raises(ValueError, match="stop"), progress_lines("Working", pytest.fail):
        raise ValueError("stop")


@with_and_without_rich
def test_a_bar_that_nobody_watches_becomes_lines(rich, capfd, monkeypatch):
    for variable in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(progress, "time", Clock(20.0))
    run_to_the_end()
    assert capfd.readouterr() == ("", "Aligning: 50%, 40 s\nAligning: 100%, done in 1 min 20 s\n")


@with_and_without_rich
@pytest.mark.parametrize("stream", ["none", "closed", "broken"])
def test_work_goes_on_where_nothing_can_be_written(stream, rich, monkeypatch):
    broken = io.StringIO()
    if stream == "closed":
        broken.close()
    else:
        monkeypatch.setattr(broken, "write", lambda text: os.write(-1, b""), raising=False)
    monkeypatch.setattr(sys, "stderr", None if stream == "none" else broken)
    monkeypatch.setattr(progress, "time", Clock(20.0))
    run_to_the_end()
