"""The data set of the demo, and `.ts` files.

japanese_vowels   `load`: Japanese Vowels, from `$SLTS_DATA` or from the wheel of aeon
ts_format         `read_ts`: text of the UEA and UCR archives
"""

from __future__ import annotations

from slts.datasets.japanese_vowels import load
from slts.datasets.ts_format import read_ts

__all__ = ["load", "read_ts"]
