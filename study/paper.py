"""What the paper publishes: accuracies in percent with 95% intervals, and its claims."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Published(NamedTuple):
    """A mean and the half width of its interval; None where the paper gives no interval."""

    mean: float
    interval: float | None = None


class Facts(NamedTuple):
    """A row of Table 1."""

    instances: int
    shortest: int
    longest: int
    features: int
    classes: int


ROBOT_TASKS = ("robot_lp1", "robot_lp2", "robot_lp3", "robot_lp4", "robot_lp5")

TITLES = {
    "japanese_vowels": "Japanese vowels",
    "auslan": "Auslan",
    "arabic_digits": "Arabic digits",
    "robot": "Robot exec. failure",
    "robot_lp1": "LP1",
    "robot_lp2": "LP2",
    "robot_lp3": "LP3",
    "robot_lp4": "LP4",
    "robot_lp5": "LP5",
    "average": "Avg.",
}

METHOD_TITLES = {
    "1nn": "1NN",
    "ldmlt": "LDMLT",
    "svm": "SVM",
    "bbs": "BBS",
    "slts": "SLTS",
    "dselect": "DSelect",
    "kmedoids": "KMedoids",
    "random": "Random",
}

TABLE_1 = {
    "japanese_vowels": Facts(640, 7, 29, 12, 9),
    "auslan": Facts(675, 47, 95, 22, 25),
    "arabic_digits": Facts(8800, 4, 93, 13, 10),
    "robot_lp1": Facts(88, 15, 15, 6, 4),
    "robot_lp2": Facts(47, 15, 15, 6, 5),
    "robot_lp3": Facts(47, 15, 15, 6, 4),
    "robot_lp4": Facts(117, 15, 15, 6, 3),
    "robot_lp5": Facts(164, 15, 15, 6, 5),
}

COLUMNS = ("japanese_vowels", "auslan", "arabic_digits", "robot")
PAPER_METHODS = ("1nn", "ldmlt", "svm", "bbs", "slts")

# Number of test series of each column. The mean with these weights is close to the paper's "Avg.".
WEIGHTS = {"japanese_vowels": 370, "auslan": 202, "arabic_digits": 2200, "robot": 139}

_TABLE_2 = {
    "1nn": ((93.8, None), (77.8, 2.1), (94.7, None), (68.8, 7.5), (92.1, None)),
    "ldmlt": ((97.3, None), (95.0, 1.3), (96.9, None), (71.9, 7.0), (95.6, None)),
    "svm": ((97.8, 0.1), (92.6, 0.1), (93.3, 0.0), (60.6, 6.5), (92.2, None)),
    "bbs": ((97.1, 0.5), (91.1, 1.6), (96.4, 0.3), (66.9, 10.6), (94.7, None)),
    "slts": ((97.1, 0.4), (91.1, 2.7), (97.9, 0.4), (67.0, 7.8), (95.8, None)),
}
TABLE_2 = {
    method: {
        column: Published(*cell) for column, cell in zip((*COLUMNS, "average"), cells, strict=True)
    }
    for method, cells in _TABLE_2.items()
}

SHARES = (0.03, 0.05, 0.07, 0.10, 0.15, 0.20, 0.30, 0.40, 0.50)
SELECTIONS = ("dselect", "kmedoids", "random")

_TABLE_3 = (
    ((96.8, 0.6), (96.3, 0.6), (96.4, 0.7)),
    ((96.5, 0.6), (95.9, 0.7), (96.4, 0.6)),
    ((97.0, 0.2), (96.3, 0.4), (96.2, 0.5)),
    ((97.3, 0.3), (96.2, 0.5), (96.5, 0.6)),
    ((97.1, 0.2), (96.4, 0.4), (97.0, 0.4)),
    ((97.1, 0.3), (96.8, 0.4), (97.1, 0.4)),
    ((96.7, 0.4), (97.0, 0.3), (97.1, 0.4)),
    ((97.0, 0.4), (96.9, 0.3), (97.1, 0.4)),
    ((96.8, 0.3), (96.9, 0.3), (96.9, 0.4)),
)
_TABLE_4 = (
    ((48.5, 6.2), (50.7, 9.4), (56.3, 12.2)),
    ((67.8, 9.7), (63.3, 10.1), (62.6, 5.9)),
    ((67.8, 9.7), (63.3, 10.1), (62.6, 5.9)),
    ((68.5, 9.6), (65.2, 5.5), (65.6, 9.4)),
    ((67.0, 6.4), (69.3, 6.8), (68.5, 10.0)),
    ((71.1, 5.6), (68.9, 5.8), (64.4, 8.1)),
    ((70.4, 7.2), (66.7, 6.8), (70.4, 5.7)),
    ((74.4, 7.9), (70.4, 6.5), (72.2, 5.3)),
    ((73.0, 7.0), (71.5, 8.5), (70.7, 7.0)),
)


def _by_share(
    rows: tuple[tuple[tuple[float, float], ...], ...],
) -> dict[tuple[str, float], Published]:
    return {
        (selection, share): Published(*cell)
        for share, cells in zip(SHARES, rows, strict=True)
        for selection, cell in zip(SELECTIONS, cells, strict=True)
    }


# By data set: (selection, share of the training set) -> accuracy.
LANDMARK_TABLES = {"japanese_vowels": _by_share(_TABLE_3), "robot_lp1": _by_share(_TABLE_4)}

# Lengths of the two series and of their path in Figure 1.
PATH_LENGTHS = (10, 8, 12)

# Variance explained by two principal components, in percent (Figure 3).
VARIANCE_IDENTITY = 86.0
VARIANCE_LEARNED = 98.0


@dataclass(frozen=True)
class Claim:
    """A claim about SLTS and another method.

    Parameters
    ----------
    other
        Name of the other method.
    where
        A column of Table 2.
    relation
        SLTS is "above", "below" or "not different from" the other method.
    landmarks
        Number of landmarks of BBS and SLTS: "most" (as in Table 2), "fewest" (in Figure 2) or
        "few" (the mean over the smaller numbers of Figure 2).
    tested
        Whether the paper reports a test. Otherwise the claim describes a table or a figure.
    """

    other: str
    where: str
    relation: str
    landmarks: str = "most"
    tested: bool = True

    def __str__(self) -> str:
        place = "on average" if self.where == "average" else f"on {TITLES[self.where]}"
        amount = "" if self.landmarks == "most" else f", {self.landmarks} landmarks"
        return f"SLTS is {self.relation} {METHOD_TITLES[self.other]} {place}{amount}"


# The data sets where the paper claims a gain with few landmarks.
FEW_LANDMARK_SETS = ("auslan", "arabic_digits", "japanese_vowels")

CLAIMS = (
    Claim("bbs", "average", "above"),
    Claim("svm", "average", "above"),
    Claim("1nn", "japanese_vowels", "above"),
    Claim("1nn", "auslan", "above"),
    Claim("1nn", "arabic_digits", "above"),
    Claim("1nn", "robot", "not different from"),
    Claim("ldmlt", "average", "not different from"),
    Claim("ldmlt", "japanese_vowels", "not different from", tested=False),
    Claim("ldmlt", "auslan", "below", tested=False),
    Claim("ldmlt", "robot", "below", tested=False),
    Claim("ldmlt", "arabic_digits", "above", tested=False),
    *(
        Claim("bbs", name, "above", landmarks=landmarks, tested=False)
        for landmarks in ("fewest", "few")
        for name in FEW_LANDMARK_SETS
    ),
)
