"""What the text claims of differences between methods, tested."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from slts.study.paper import METHOD_TITLES, TITLES
from slts.study.scores import Scores
from slts.study.statistics import paired_test

# "Few" landmarks: up to this share of the largest number in the panel.
FEW = 0.35


@dataclass(frozen=True)
class Claim:
    """That the first method is "above", "below" or "not different from" the second.

    BBS and SLTS are compared with the "most" landmarks, which are those of Table 2; with the
    "fewest" of Figure 2; or by their mean over "few". `tested` tells whether the paper reports a
    test or merely reads its table or figure.
    """

    first: str
    second: str
    where: str
    relation: str
    landmarks: str = "most"
    tested: bool = True

    def text(self) -> str:
        """The claim in words."""
        place = "on the average" if self.where == "average" else f"on {TITLES[self.where]}"
        amount = "" if self.landmarks == "most" else f", {self.landmarks} landmarks"
        first, second = METHOD_TITLES[self.first], METHOD_TITLES[self.second]
        return f"{first} is {self.relation} {second} {place}{amount}"


# Where the paper sees a "reasonable quantity of data".
FEW_LANDMARK_SETS = ("auslan", "arabic_digits", "japanese_vowels")

CLAIMS = (
    Claim("slts", "bbs", "average", "above"),
    Claim("slts", "svm", "average", "above"),
    Claim("slts", "1nn", "japanese_vowels", "above"),
    Claim("slts", "1nn", "auslan", "above"),
    Claim("slts", "1nn", "arabic_digits", "above"),
    Claim("slts", "1nn", "robot", "not different from"),
    Claim("slts", "ldmlt", "average", "not different from"),
    Claim("slts", "ldmlt", "japanese_vowels", "not different from", tested=False),
    Claim("slts", "ldmlt", "auslan", "below", tested=False),
    Claim("slts", "ldmlt", "robot", "below", tested=False),
    Claim("slts", "ldmlt", "arabic_digits", "above", tested=False),
    *(
        Claim("slts", "bbs", name, "above", landmarks=landmarks, tested=False)
        for landmarks in ("fewest", "few")
        for name in FEW_LANDMARK_SETS
    ),
)


def check_claims(scores: Scores) -> list[dict[str, Any]]:
    """Test every claim that there are results for, by a paired t-test over the splits."""
    rows = []
    for claim in CLAIMS:
        counts = _counts(scores, claim)
        first, second = (
            _values(scores, claim.where, method, counts) for method in (claim.first, claim.second)
        )
        shared = sorted(set(first) & set(second))
        if len(shared) < 2:
            continue
        test = paired_test([first[s] for s in shared], [second[s] for s in shared])
        found = "not different from"
        if test.significant:
            found = "above" if test.difference > 0 else "below"
        rows.append(
            {
                "claim": claim.text(),
                "against": claim.second,
                "where": claim.where,
                "tested_in_paper": claim.tested,
                "landmarks": counts,
                "difference": test.difference,
                "t": test.t,
                "p": test.p,
                "n": test.n,
                "found": found,
                "holds": found == claim.relation,
            }
        )
    return rows


def _counts(scores: Scores, claim: Claim) -> list[int] | None:
    """Numbers of landmarks to compare at; None where those of Table 2 are meant."""
    if claim.landmarks == "most":
        return None
    counts = scores.counts(claim.where)
    if claim.landmarks == "fewest":
        return counts[:1]
    return [count for count in counts if count <= FEW * counts[-1]]


def _values(scores: Scores, where: str, method: str, counts: list[int] | None) -> dict[int, float]:
    if counts is None:
        return scores.spread(method, where)
    parts = [scores.with_landmarks(method, where, count) for count in counts]
    if not parts:
        return {}
    shared = set.intersection(*(set(part) for part in parts))
    return {s: sum(part[s] for part in parts) / len(parts) for s in shared}
