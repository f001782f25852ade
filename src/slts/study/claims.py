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

    `few` compares the mean over few landmarks instead of the figures of Table 2. `tested` tells
    whether the paper reports a test or merely reads its table.
    """

    first: str
    second: str
    where: str
    relation: str
    few: bool = False
    tested: bool = True

    def text(self) -> str:
        """The claim in words."""
        place = "on the average" if self.where == "average" else f"on {TITLES[self.where]}"
        amount = ", few landmarks" if self.few else ""
        first, second = METHOD_TITLES[self.first], METHOD_TITLES[self.second]
        return f"{first} is {self.relation} {second} {place}{amount}"


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
    Claim("slts", "bbs", "auslan", "above", few=True, tested=False),
    Claim("slts", "bbs", "arabic_digits", "above", few=True, tested=False),
    Claim("slts", "bbs", "japanese_vowels", "above", few=True, tested=False),
)


def check_claims(scores: Scores) -> list[dict[str, Any]]:
    """Test every claim that there are results for, by a paired t-test over the splits."""
    rows = []
    for claim in CLAIMS:
        first, second = (_values(scores, claim, method) for method in (claim.first, claim.second))
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
                "tested_in_paper": claim.tested,
                "difference": test.difference,
                "t": test.t,
                "p": test.p,
                "n": test.n,
                "found": found,
                "holds": found == claim.relation,
            }
        )
    return rows


def _values(scores: Scores, claim: Claim, method: str) -> dict[int, float]:
    if not claim.few:
        return scores.spread(method, claim.where)
    counts = scores.counts(claim.where)
    few = [count for count in counts if count <= FEW * counts[-1]]
    parts = [scores.with_landmarks(method, claim.where, count) for count in few]
    if not parts:
        return {}
    shared = set.intersection(*(set(part) for part in parts))
    return {s: sum(part[s] for part in parts) / len(parts) for s in shared}
