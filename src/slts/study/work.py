"""From a unit to its result, in whatever process it runs."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

from threadpoolctl import threadpool_limits

from slts.study.aside_work import aside_scores
from slts.study.baseline_work import dataset_facts, ldmlt_scores, similarity_scores
from slts.study.landmark_work import landmark_scores, selection_scores, similarity_space
from slts.study.problems import Loader, load_once, load_published, make_problem
from slts.study.protocol import Protocol, Unit

_KINDS = {
    "landmarks": landmark_scores,
    "selection": selection_scores,
    "pca": similarity_space,
    "similarity": similarity_scores,
    "ldmlt": ldmlt_scores,
}


@dataclass(frozen=True)
class Worker:
    """Does units of one protocol; can be sent to another process.

    Parameters
    ----------
    protocol
        Grids and shares.
    loader
        Where data sets come from, by name.
    """

    protocol: Protocol
    loader: Loader = load_published

    def __call__(self, unit: Unit) -> dict[str, Any]:
        """Result of a unit: numbers and text only, and how long it took."""
        start, cpu = time.perf_counter(), time.process_time()
        dataset = load_once(self.loader, unit.dataset)
        # One core each: units run side by side, and sums do not depend on the number of threads.
        with threadpool_limits(1), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if unit.kind == "facts":
                result = dataset_facts(unit, dataset)
            elif unit.kind == "aside":
                result = aside_scores(unit, dataset, self.protocol)
            else:
                problem = make_problem(dataset, unit.dataset, unit.splits[0], self.protocol)
                result = _KINDS[unit.kind](unit, problem, self.protocol)
        return {
            **result,
            "warnings": len(caught),
            "seconds": round(time.perf_counter() - start, 3),
            "cpu_seconds": round(time.process_time() - cpu, 3),
        }
