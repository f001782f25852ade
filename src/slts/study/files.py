"""JSON, CSV and text files, each written whole or not at all."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from slts.atomic_files import write_whole


def write_bytes(path: Path, content: bytes) -> None:
    """Write bytes; the folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content)


def write_text(path: Path, content: str) -> None:
    """Write UTF-8 text."""
    write_bytes(path, content.encode())


def write_json(path: Path, content: Any) -> None:
    """Write JSON, indented, keys as they come."""
    write_text(path, json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False) + "\n")


def write_csv(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Write a table with a header; None becomes an empty field."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    write_text(path, text.getvalue())
