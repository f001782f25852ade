"""A progress bar on standard error if it is asked for."""

import pytest

from slts.execution import progress
from tests.estimators.kinds import every_kind, quick


@every_kind
@pytest.mark.parametrize("verbose", [True, False])
def test_progress_is_shown_on_standard_error_only_when_asked_for(
    kind, verbose, two, capfd, monkeypatch
):
    monkeypatch.setattr(progress, "_is_interactive", lambda: True)
    X, y, X_test, _ = two
    model = quick(kind, verbose=verbose).fit(X, y)
    shown = capfd.readouterr()
    model.predict(X_test)
    shown_in_prediction = capfd.readouterr()
    assert shown.out == shown_in_prediction.out == ""
    if verbose:
        assert "100%" in shown.err
        assert "Aligning" in shown_in_prediction.err
    else:
        assert shown.err == shown_in_prediction.err == ""
