"""Published facts about each data set: counts, origin, licence, download addresses."""

from __future__ import annotations

import dataclasses

from slts.errors import DataError

__all__ = ["DatasetInfo", "info", "list_datasets"]

_STATIC = "https://archive.ics.uci.edu/static/public"
_PAGE = "https://archive.ics.uci.edu/dataset"

DEFAULT_SIGNS, ALL_SIGNS, SAMPLES_PER_SIGN = 25, 95, 27
_ALL_SIGNS_LENGTHS = (45, 136)


@dataclasses.dataclass(frozen=True)
class DatasetInfo:
    """Published facts about a data set. Loading raises an error for data that contradict them.

    Attributes
    ----------
    name : str
        Name to pass to `load`.
    title : str
        Name at the UCI Machine Learning Repository.
    n_series, n_channels, n_classes : int
        Counts of the whole data set, training and test parts together.
    n_train, n_test : int or None
        Sizes of the two parts, if the data set is published in two parts.
    lengths : tuple of int
        Smallest and largest number of steps.
    exact_lengths : bool
        Whether both ends of `lengths` occur, or are only limits.
    channel_names : tuple of str
        Names given to the channels.
    labels : str
        Meaning and type of the labels.
    licence, page, citation : str
        Licence, web page and reference.
    archive : str
        File name of the archive in the cache.
    addresses : tuple of str
        Download addresses, in the order in which `fetch` tries them.
    notes : tuple of str
        Facts to know before drawing conclusions from the data set.
    """

    name: str
    title: str
    n_series: int
    n_channels: int
    n_classes: int
    lengths: tuple[int, int]
    channel_names: tuple[str, ...]
    labels: str
    page: str
    citation: str
    archive: str
    addresses: tuple[str, ...]
    n_train: int | None = None
    n_test: int | None = None
    exact_lengths: bool = True
    licence: str = "CC BY 4.0"
    notes: tuple[str, ...] = ()


def _numbered(name: str, count: int) -> tuple[str, ...]:
    return tuple(f"{name}_{i}" for i in range(1, count + 1))


_HAND = ("x", "y", "z", "roll", "pitch", "yaw", "thumb", "fore", "middle", "ring", "little")

_SPOKEN = (
    DatasetInfo(
        name="japanese_vowels",
        title="Japanese Vowels",
        n_series=640,
        n_train=270,
        n_test=370,
        n_channels=12,
        n_classes=9,
        lengths=(7, 29),
        channel_names=_numbered("cepstrum", 12),
        labels="speaker, text '1' to '9'",
        page=f"{_PAGE}/128/japanese+vowels",
        citation=(
            "Kudo, M., Toyama, J. and Shimbo, M. (1999). Multidimensional curve classification "
            "using passing-through regions. Pattern Recognition Letters 20(11-13), 1103-1111. "
            "doi:10.24432/C5NS47"
        ),
        archive="japanese_vowels.zip",
        addresses=(f"{_STATIC}/128/japanese+vowels.zip",),
        notes=("The test part has 31 35 88 44 29 24 40 50 29 series of the nine speakers.",),
    ),
    DatasetInfo(
        name="arabic_digits",
        title="Spoken Arabic Digit",
        n_series=8800,
        n_train=6600,
        n_test=2200,
        n_channels=13,
        n_classes=10,
        lengths=(4, 93),
        channel_names=_numbered("mfcc", 13),
        labels="digit, integer 0 to 9",
        page=f"{_PAGE}/195/spoken+arabic+digit",
        citation=(
            "Bedda, M. and Hammami, N. (2008). Spoken Arabic Digit. UCI Machine Learning "
            "Repository. doi:10.24432/C52C9Q"
        ),
        archive="arabic_digits.zip",
        addresses=(f"{_STATIC}/195/spoken+arabic+digit.zip",),
        notes=(
            "82 series of the training part are exact copies of earlier ones.",
            "The test part has other speakers than the training part.",
        ),
    ),
)

_AUSLAN = DatasetInfo(
    name="auslan",
    title="Australian Sign Language signs (High Quality)",
    n_series=DEFAULT_SIGNS * SAMPLES_PER_SIGN,
    n_channels=22,
    n_classes=DEFAULT_SIGNS,
    lengths=(47, 95),
    channel_names=tuple(f"{side}_{name}" for side in ("left", "right") for name in _HAND),
    labels="sign, text",
    page=f"{_PAGE}/115/australian+sign+language+signs+high+quality",
    citation=(
        "Kadous, M. W. (2002). Temporal Classification: Extending the Classification Paradigm "
        "to Multivariate Time Series. PhD thesis, University of New South Wales."
    ),
    archive="auslan.zip",
    addresses=(
        f"{_STATIC}/115/australian+sign+language+signs+high+quality.zip",
        # The zip has at times held dead links instead of the data, so older addresses follow.
        "https://archive.ics.uci.edu/ml/machine-learning-databases/auslan2-mld/tctodd.tar.gz",
        "https://kdd.ics.uci.edu/databases/auslan2/tctodd.tar.gz",
    ),
    notes=(
        "The data set has 95 signs, 27 series each, 45 to 136 steps: load(..., n_classes=95). The "
        "default is the first 25 signs in alphabetical order, ignoring case.",
        "One sign is called her in the first recording session and his_hers in the other eight.",
        "Hands are named by the data: channels 1-11 lie left of the chin and move less.",
    ),
)


def _robot(number: int, task: str, n_series: int, n_classes: int, *notes: str) -> DatasetInfo:
    return DatasetInfo(
        name=f"robot_lp{number}",
        title=f"Robot Execution Failures, LP{number}: {task}",
        n_series=n_series,
        n_channels=6,
        n_classes=n_classes,
        lengths=(15, 15),
        channel_names=("Fx", "Fy", "Fz", "Tx", "Ty", "Tz"),
        labels="kind of failure, text",
        page=f"{_PAGE}/138/robot+execution+failures",
        citation=(
            "Lopes, L. S. and Camarinha-Matos, L. M. (1998). Feature transformation strategies "
            "for a robot learning problem. In Feature Extraction, Construction and Selection: A "
            "Data Mining Perspective. Kluwer. doi:10.24432/C5M89N"
        ),
        archive="robot_failures.zip",
        addresses=(f"{_STATIC}/138/robot+execution+failures.zip",),
        notes=notes,
    )


_SHARED = "LP2 and LP3 hold the same 47 series under different labels."
_ROBOTS = (
    _robot(1, "failures in approach to grasp position", 88, 4),
    _robot(2, "failures in transfer of a part", 47, 5, _SHARED),
    _robot(3, "position of part after a transfer failure", 47, 4, _SHARED),
    _robot(4, "failures in approach to ungrasp position", 117, 3),
    _robot(5, "failures in motion with part", 164, 5),
)

_CATALOGUE = {entry.name: entry for entry in (*_SPOKEN, _AUSLAN, *_ROBOTS)}


def list_datasets() -> tuple[str, ...]:
    """Return the names of the data sets, for `load`, `info` and `fetch`.

    Returns
    -------
    tuple of str
        All names.

    Examples
    --------
    >>> from slts.datasets import list_datasets
    >>> list_datasets()[:3]
    ('japanese_vowels', 'arabic_digits', 'auslan')
    """
    return tuple(_CATALOGUE)


def info(name: str, *, n_classes: int | None = None) -> DatasetInfo:
    """Return the published facts about a data set.

    Parameters
    ----------
    name : str
        One of `list_datasets()`.
    n_classes : int, optional
        For "auslan" only: number of signs, 2 to 95; 25 by default.

    Returns
    -------
    DatasetInfo
        Counts, origin, licence and notes.

    Raises
    ------
    DataError
        If there is no such data set, or it cannot have that many classes.

    Examples
    --------
    >>> from slts.datasets import info
    >>> info("auslan", n_classes=95).n_series
    2565
    """
    entry = _CATALOGUE.get(name)
    if entry is None:
        raise DataError(f"there is no data set {name!r}: choose one of {', '.join(_CATALOGUE)}")
    if n_classes is None or n_classes == entry.n_classes:
        return entry
    if name != "auslan":
        raise DataError(
            f"n_classes is for 'auslan' only: {name!r} always has {entry.n_classes} classes"
        )
    if isinstance(n_classes, bool) or not isinstance(n_classes, int) or not 2 <= n_classes <= 95:
        raise DataError(f"n_classes must be an integer from 2 to {ALL_SIGNS}, got {n_classes!r}")
    return dataclasses.replace(
        entry,
        n_classes=n_classes,
        n_series=n_classes * SAMPLES_PER_SIGN,
        lengths=_ALL_SIGNS_LENGTHS,
        exact_lengths=n_classes == ALL_SIGNS,
    )
