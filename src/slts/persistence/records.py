"""The dataclasses that model files may hold, and what their fields may be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields

from slts.alignment import AlignmentSettings, Itakura
from slts.estimators.landmark_classifier import SolveReport
from slts.estimators.local import RidgeReport
from slts.models.representations import REPRESENTATIONS, Representation
from slts.learning.local import Choice
from slts.learning.logdet import LogDetSolution
from slts.models.comparisons import Comparison
from slts.models.row_map import RowMap
from slts.persistence.kinds import (
    FINITE,
    INTEGER,
    NOTHING,
    POSITIVE,
    REAL,
    SCALAR,
    SWITCH,
    TEXT,
    TRUTH,
    Kind,
    array,
    at_least,
    between,
    instance,
    one_of,
    tuple_of,
)
from slts.series.channels import ChannelScale, Components, Levels


@dataclass(frozen=True)
class Record:
    """A dataclass that files may hold, and what its fields may be.

    A field that has a default may be missing in a file: it is younger than the file.
    """

    type: type
    fields: Mapping[str, Kind]

    @property
    def required(self) -> frozenset[str]:
        """Fields without a default."""
        own = fields(self.type)
        return frozenset(f.name for f in own if f.default is f.default_factory is MISSING)


RECORDS = {
    record.type.__name__: record
    for record in (
        Record(Itakura, {"max_slope": FINITE}),
        Record(
            AlignmentSettings,
            {
                "objective": TEXT,
                "band": NOTHING | INTEGER | instance(Itakura),
                "normalize": SWITCH,
                "dtype": TEXT,
            },
        ),
        Record(
            ChannelScale,
            {"centre": array("float64", 1), "spread": array("float64", 1), "squash": TRUTH},
        ),
        Record(
            RowMap,
            {
                "constant": NOTHING | POSITIVE,
                "settings": instance(AlignmentSettings),
                "scale": NOTHING | instance(ChannelScale),
            },
        ),
        Record(
            Levels,
            {"knots": array("float64", 2), "ranks": array("float64", 2), "n_levels": at_least(1)},
        ),
        Record(Components, {"centre": array("float64", 1), "basis": array("float64", 2)}),
        Record(
            Representation,
            {
                "name": one_of(*REPRESENTATIONS),
                "max_length": NOTHING | between(1, 10**9),
                "scale": NOTHING | instance(ChannelScale),
                "levels": NOTHING | instance(Levels),
                "change_spread": NOTHING | array("float64", 1),
                "components": NOTHING | instance(Components),
                "constant": POSITIVE,
            },
        ),
        Record(
            Comparison,
            {
                "representation": instance(Representation),
                "settings": instance(AlignmentSettings),
                "basis": array("float64", 2),
            },
        ),
        Record(
            Choice,
            {
                "n_phases": at_least(1),
                "penalty": POSITIVE,
                "error": REAL,
                "accuracy": REAL,
                "chosen": TRUTH,
                "reason": TEXT,
            },
        ),
        Record(
            RidgeReport,
            {"stage": one_of("ridge"), "objective": REAL, "gap": REAL, "converged": TRUTH},
        ),
        Record(
            SolveReport,
            {
                "positive": SCALAR,
                "stage": one_of("metric", "separator"),
                "gamma": POSITIVE,
                "objective": REAL,
                "gap": REAL,
                "n_iter": at_least(0),
                "converged": TRUTH,
            },
        ),
        Record(
            LogDetSolution,
            {
                "metric": array("float64", 2),
                "disorder": tuple_of(FINITE),
                "n_updates": at_least(0),
                "n_cycles": at_least(0),
                "converged": TRUTH,
            },
        ),
    )
}
