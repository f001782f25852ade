"""Series that a model keeps from training: a held-out sample must have none of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slts._typing import AnyArray, FloatArray
from slts.errors import DataError
from slts.estimators.base import SeriesClassifier
from slts.estimators.landmark_classifier import LandmarkClassifier
from slts.estimators.streams import (
    Identifiers,
    digests_in,
    joined_digests,
    mapper_for,
    pieces_of,
    require_labels,
)
from slts.series import SeriesBatch
from slts.series.source import Digests, Part, SeriesSource


@dataclass(frozen=True)
class KnownSeries:
    """Series that a model keeps, by their values to seven digits.

    A copy that went through float32 or text is the same series.
    """

    model: SeriesClassifier
    digits: dict[tuple[tuple[int, ...], bytes], int]
    what: str

    @classmethod
    def of(cls, model: SeriesClassifier) -> KnownSeries | None:
        """Landmarks, or all training series; None if the model keeps neither."""
        if hasattr(model, "landmarks_"):
            kept, what = model.landmarks_, "landmark"
        else:
            # Nearest neighbours and the SVM keep the rows of their training series as aligned.
            kept = getattr(model, "training_rows_", None)
            what = "training series"
            if kept is None:
                return None
        digits = {_seven_digits(x): j for j, x in reversed(list(enumerate(kept)))}
        return cls(model, digits, what)

    def find(self, batch: SeriesBatch) -> tuple[int, int] | None:
        """First series of a batch that the model keeps, and which one it is."""
        model = self.model
        series = batch if hasattr(model, "landmarks_") else model.row_map_(batch)
        for i, x in enumerate(series):
            j = self.digits.get(_seven_digits(x))
            if j is not None:
                return i, j
        return None

    def refuse(self, found: tuple[int, int] | None) -> None:
        """Raise if one was found."""
        if found is None:
            return
        instead = ""
        if isinstance(self.model, LandmarkClassifier):
            instead = " For the training sample itself use sample='training'."
        raise DataError(
            f"series {found[0]} of X equals {self.what} {found[1]} of the model: a hold-out "
            f"certificate needs series the model was not trained on.{instead}"
        )


def labels_of_unknown(model: SeriesClassifier, stream: SeriesSource) -> AnyArray:
    """Labels of a stream, none of whose series the model keeps."""
    require_labels(stream)
    known, labels, n_before = KnownSeries.of(model), [], 0
    parts, seen = stream.parts(), Identifiers(stream)
    with mapper_for(model.n_jobs, stream) as mapper:
        for found, of_part, digests in mapper.map(_look, parts, (model, known)):
            if known is not None and found is not None:
                known.refuse((n_before + found[0], found[1]))
            seen.add(digests)
            labels.append(of_part)
            n_before += len(of_part)
    seen.check(parts)
    return np.concatenate([part for part in labels if len(part)] or [np.empty(0)])


def _look(
    part: Part, common: tuple[SeriesClassifier, KnownSeries | None], _: None
) -> tuple[tuple[int, int] | None, AnyArray, Digests]:
    model, known = common
    first, labels, digests, found = 0, [], [], None
    for piece in pieces_of(part, labels=True):
        assert piece.labels is not None
        labels.append(piece.labels)
        digests.append(digests_in(piece))
        if known is not None and found is None:
            here = known.find(model.check_series(piece.series))
            found = None if here is None else (first + here[0], here[1])
        first += len(piece.series)
    every = np.concatenate(labels) if labels else np.empty(0)
    return found, every, joined_digests(digests)


def _seven_digits(x: FloatArray) -> tuple[tuple[int, ...], bytes]:
    """Shape and values to float32, to which copies of a series agree."""
    return x.shape, x.astype(np.float32).tobytes()
