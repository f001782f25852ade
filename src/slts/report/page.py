"""From collected content to one HTML file."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from slts.atomic_files import write_whole
from slts.report.collect import collect
from slts.report.sections import masthead, sections

_SLOT = re.compile(r"\{\{(\w+)\}\}")


def render(content: dict[str, Any]) -> str:
    """Write the content as a page that needs nothing besides itself.

    Parameters
    ----------
    content
        From `collect`.

    Returns
    -------
    str
        HTML. A policy in it forbids the browser every request and every other script.
    """
    script = _resource("page.js")
    parts = sections(content)
    nav = "".join(f'<li><a href="#{anchor}">{escape(name)}</a></li>' for anchor, name, _ in parts)
    provenance = content["card"]["provenance"]
    slots = {
        "policy": (
            f"default-src 'none'; style-src 'unsafe-inline'; script-src '{_digest(script)}'; "
            f"base-uri 'none'; form-action 'none'"
        ),
        "generator": escape(provenance["library"]),
        "title": escape(content["title"]),
        "style": _resource("page.css"),
        "nav": f"<ul>{nav}</ul>",
        "masthead": masthead(content),
        "main": "\n".join(html for _, _, html in parts),
        "footer": escape(f"Made {provenance['made']} by {provenance['library']}."),
        "content": _embedded(content),
        "script": script,
    }
    # One pass: what users wrote is never searched for slots.
    return _SLOT.sub(lambda found: slots[found.group(1)], _resource("page.html"))


def write_report(
    model: Any,
    path: str | os.PathLike[str],
    *,
    X: Any = None,
    y: Any = None,
    ids: Sequence[Any] | None = None,
    title: str | None = None,
    verbose: bool = False,
) -> Path:
    """Write a report on a fitted model: one HTML file that needs no network.

    Parameters
    ----------
    model
        A fitted classifier of slts, or a search or pipeline around one.
    path
        Where to write; it appears whole or not at all.
    X, y
        Series to report on, best held out from training, and their labels. Without X the report
        is about the model alone.
    ids
        Names of the series; None numbers them.
    title
        Heading of the report.
    verbose
        Show a progress bar.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import numpy as np, slts, tempfile
    >>> from slts.report import write_report
    >>> rng = np.random.default_rng(0)
    >>> y = np.tile(["left", "right"], 20)
    >>> X = [rng.normal(size=(2, 15)) + (c == "right") * np.array([[4.0], [0.0]]) for c in y]
    >>> model = slts.SLTSClassifier(random_state=0).fit(X[:20], y[:20])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(model, f"{folder}/report.html", X=X[20:], y=y[20:]).name
    'report.html'
    """
    target = Path(path)
    page = render(collect(model, X, y, ids=ids, title=title, verbose=verbose))
    write_whole(os.fspath(target), page.encode())
    return target


def _resource(name: str) -> str:
    return files("slts.report").joinpath(name).read_text(encoding="utf-8")


def _embedded(content: dict[str, Any]) -> str:
    """JSON that cannot end the script element it stands in, nor start a comment."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _digest(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
