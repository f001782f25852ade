"""`guess`: the columns of a table from what is requested and what a model says."""

import pyarrow as pa

from slts.columns import ExpectedColumns, RequestedColumns, resolve_columns
from slts.columns.rows import Chunk

# Arguments of `guess` that are about a model.
EXPECTED = {
    "expect": "channels", "classes": "classes", "model_label": "label", "n_channels": "n_channels"
}  # fmt: skip


def guess(columns, **wanted):
    known = {EXPECTED[name]: wanted.pop(name) for name in list(wanted) if name in EXPECTED}
    requested = RequestedColumns(**wanted, expected=ExpectedColumns(**known))
    return resolve_columns(Chunk(pa.table(columns), "data.csv"), requested)
