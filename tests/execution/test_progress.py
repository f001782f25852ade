"""progress_bar: rich where it is, a plain line where it is not, nothing unless asked."""

import sys

import pytest

from slts import similarity
from slts.execution import progress_bar


def run_to_the_end(description="Aligning"):
    with progress_bar(description, show=True) as progress:
        for done in (0.0, 1.0, 2.0):
            progress(done, 2.0)


@pytest.fixture
def without_rich(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "rich"]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("rich", "rich.console", "rich.progress"):
        monkeypatch.setitem(sys.modules, name, None)  # makes the import fail


def test_nothing_is_shown_unless_asked(capfd):
    with progress_bar("Aligning", show=False) as progress:
        assert progress is None
    assert capfd.readouterr() == ("", "")


def test_rich_draws_on_standard_error(capfd):
    pytest.importorskip("rich")
    run_to_the_end()
    out, err = capfd.readouterr()
    assert out == ""
    assert "Aligning" in err
    assert "100%" in err


def test_without_rich_a_line_shows_share_and_time_left(capfd, without_rich):
    run_to_the_end()
    out, err = capfd.readouterr()
    assert out == ""
    assert "\rAligning   0%, inf s left" in err
    assert "\rAligning  50%" in err
    assert "\rAligning 100%, 0 s left" in err
    assert err.endswith("\n")


def test_without_rich_no_work_counts_as_done(capfd, without_rich):
    with progress_bar("Aligning", show=True) as progress:
        progress(0.0, 0.0)
    assert "100%" in capfd.readouterr().err


@pytest.mark.parametrize("verbose", [True, False])
def test_verbose_turns_the_bar_on(capfd, without_rich, verbose):
    similarity([[1.0, 2.0]], verbose=verbose)
    assert ("100%" in capfd.readouterr().err) == verbose


def test_errors_pass_through_the_bar():
    with pytest.raises(RuntimeError, match="broken"), progress_bar("Aligning", show=True):
        raise RuntimeError("broken")


def test_errors_pass_through_the_plain_line(capfd, without_rich):
    with pytest.raises(RuntimeError, match="broken"), progress_bar("Aligning", show=True):
        raise RuntimeError("broken")
