"""``python -m slts``: the command line."""

from __future__ import annotations

import sys

from slts.cli import main

if __name__ == "__main__":
    sys.exit(main())
