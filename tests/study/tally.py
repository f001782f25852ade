"""Units of work that cost nothing. New processes import this module, so it imports little."""

import dataclasses
import os
import time
import zlib
from pathlib import Path

from study.runner import Unit


def units(count: int, *, failing: bool = False) -> list[Unit]:
    wrong = [Unit("landmarks", "robot_lp5", cost=1.5)] if failing else []
    return wrong + [Unit("landmarks", "auslan", (k,), (5,), cost=1.0 + k % 3) for k in range(count)]


@dataclasses.dataclass(frozen=True)
class Tally:
    """Work that writes a line for each unit, and is interrupted after `limit` units."""

    path: Path
    limit: int | None = None
    seconds: float = 0.0

    def __call__(self, unit: Unit) -> dict:
        if self.limit is not None and len(self.done()) >= self.limit:
            raise KeyboardInterrupt
        if unit.dataset == "robot_lp5":
            raise ValueError("wrong")
        time.sleep(self.seconds)
        with self.path.open("a") as file:
            file.write(f"{unit.key}\n")
        return {"value": zlib.crc32(unit.key.encode()), "process": os.getpid()}

    def done(self) -> list[str]:
        return self.path.read_text().split() if self.path.exists() else []
