"""What is known of the reasons why figures of the full run differ from the paper's.

Numbers are of side experiments, few splits each, unless they stand in a table of the report.
"""

from __future__ import annotations

ASIDE_TITLE = "Another reading of the protocol"
ASIDE_TEXTS = (
    "The paper retains 30% of the training set for tuning and does not say whether the methods are "
    "learned on it afterwards. The study above does so. The paper's Table 4 tells of the opposite: "
    "all its accuracies are multiples of 1/270, so LP1 had 27 test series in ten splits, which "
    "leaves 61 series; and its rows for 5% and 7% are the same, which shares of 61 cannot give (3 "
    "and 4 landmarks), whereas shares of the 42 that remain without the tuning part do, rounded "
    "down (2 and 2).",
    "So the sets with a random division are run once more, to the letter: 30% to test on, 30% of "
    "the rest to tune on, both drawn at random whatever the classes and rounded up; the methods "
    "are learned on what remains, and the landmarks are shares of that, rounded down. This reading "
    "was chosen after looking at the paper's Table 4 and at side experiments on LP1 with and "
    "without classes in proportion, so its agreement there is no independent proof of it.",
)

# (table, method, column) -> text; an empty method or column is any.
_REMARKS = {
    ("table2", "1nn", "auslan"): (
        "1NN has no parameter and agrees with the paper to the last digit on both sets with a "
        "given division. Read to the letter (see the section above) it gives the paper's figure "
        "on Auslan too. There the amount of training data is what matters: tried over ten splits, "
        "learning on all 472 training series gives 81.6 with classes in proportion and 82.3 "
        "without, learning on 330 gives 78.5 either way."
    ),
    ("table2", "1nn", "average"): "Auslan makes up 0.4 of it; see there.",
    ("table2", "ldmlt", "japanese_vowels"): (
        "Four tenths of a point are one or two of 370 test series. LDMLT is written from its "
        "published description; the paper gives neither its number of cycles and triplets nor "
        "whether its rows had unit norm. Tried, one run each: 3 cycles instead of 8, 96.5; rows "
        "left as they are, 97.0 with 3 cycles and 97.8 with 8."
    ),
    ("table2", "ldmlt", "auslan"): (
        "The paper gives neither the number of cycles and triplets nor whether LDMLT's rows had "
        "unit norm, and the outcome depends on both. Five settings were tried on three splits "
        "read to the letter: rows of unit norm, 83.3 with 1 cycle, 90.1 with 3, 97.7 with 8; rows "
        "left as they are, 95.7 with 3 cycles, 98.8 with 8. Three cycles on rows as they are come "
        "nearest to the paper; that it ran these is a guess, made by looking for its figure."
    ),
    ("table2", "ldmlt", "average"): (
        "Auslan and Robot exec. failure make up 0.2 each; see Auslan. On the robot tasks LDMLT is "
        "within the paper's interval in both readings of the protocol."
    ),
    ("table2", "svm", "japanese_vowels"): (
        "On the whole training set the accuracy is 97.0 at C = 4, 97.6 at 8 and 97.8 from 32 to "
        "256. Many C do equally well on the 81 tuning series; here the smallest is taken, mostly "
        "4. Taking the largest gives 97.6±0.1, nearer to the paper's 97.8±0.1, so how ties were "
        "broken is the likely cause of most of it. Tried as well, at every C: an intercept, 97.8 "
        "at best too; hinge instead of squared hinge, at most 96.8; rows not of unit norm, at "
        "most 97.0."
    ),
    ("table2", "svm", "auslan"): (
        "The paper's interval of 0.1 is hardly that of ten random divisions of 675 series, where "
        "ours is 1.2; one division, with chance in the tuning alone, would give it. Our ten "
        "divisions give 90.6 to 96.5, so one with 92.6 is nothing unusual. Read to the letter the "
        "SVM is below the paper's figure instead. Which division the paper used is not known."
    ),
    ("table2", "svm", "arabic_digits"): (
        "No C of the grid comes near the paper's figure. Tried, one fit each: similarities to all "
        "6600 training series (300 leading directions), 97.5 at C = 2^-6, the least of the grid, "
        "to 98.5 at 2^3; only below the grid, between 2^-12 (91.3) and 2^-9 (95.1), is the "
        "paper's figure passed. Hinge instead of squared hinge: 96.2 at 2^-6, 97.5 at 2^-3. "
        "Similarities to 100 random series: 90.7 at 2^-6, 97.3 at best; to 30: 92.9 at best. The "
        "paper's SVM is 3 points below its own BBS, which sees 100 of the same similarities. A "
        "solver stopped early, a C in other units, or similarities to few series would each do "
        "it; nothing tells which."
    ),
    ("table2", "svm", "robot"): (
        "Read to the letter it comes down into the paper's interval; see the section above. That "
        "reading changes the division and the amount of training data together, and for this cell "
        "they were not told apart."
    ),
    ("table2", "svm", "average"): (
        "Three quarters of the weight are Arabic digits, which make up 4.0 of it; see there."
    ),
    ("table2", "bbs", "auslan"): (
        "The paper's figure lies between our two readings of the protocol: to the letter, BBS is "
        "3.3 points below it. Tried on four splits, classes in proportion and the tuning part "
        "kept aside: BBS 89.3, SLTS 89.2, SVM 91.4. How the paper drew its divisions is not "
        "known."
    ),
    ("table2", "bbs", "arabic_digits"): (
        "Every split chooses gamma = 0.001, and the linear program is solved to a duality gap of "
        "1e-6. Tried with the tuning part kept aside, nine splits: 96.9, lower by less than the "
        "intervals. The rest is not explained; the paper's figure lies between ours with 50 and "
        "with 75 landmarks."
    ),
    ("table2", "bbs", "average"): "Arabic digits make up 0.6 of it, Auslan 0.2; see there.",
    ("table2", "slts", "auslan"): (
        "Read to the letter SLTS agrees with the paper; see the section above."
    ),
    ("table3", "", ""): (
        "These differences are two or three of 370 test series. Where two intervals are equally "
        "wide, one cell in six exceeds them by chance alone, which here would be four or five of "
        "27. On this set the paper seems to have learned on the whole training set, as we do: "
        "with the tuning part kept aside BBS comes to 95.4 and SLTS to 95.8 with the most "
        "landmarks, six splits, where the paper has 97.1. If its shares are nevertheless of the "
        "189 series without the tuning part, as on LP1, its 5% and 10% are 9 and 18 landmarks, "
        "near our rows for 3% and 7%, with which KMedoids agrees; the other cells stay as they "
        "are."
    ),
    ("table4", "", ""): (
        "Read to the letter (see the section above) all cells of this table agree with the paper "
        "except DSelect and KMedoids at 3%. Most of it is the division: ours keeps the classes in "
        "proportion. Tried with 27 test series and the same numbers of landmarks, ten splits "
        "each, mean difference from the paper over the 27 cells and how many lie outside: classes "
        "in proportion, +6.3 and 11, with the tuning part kept aside +3.8 and 4; plain random "
        "division, +0.9 and 4, with the tuning part kept aside +1.3 and 3. So whether the tuning "
        "part is learned on cannot be told from these accuracies; the numbers of landmarks tell "
        "it. At 3% the paper has one landmark. DSelect's first landmark is random, so with one it "
        "is Random by another name; the paper gives 48.5±6.2 and 56.3±12.2 for the same thing. "
        "KMedoids at 3% was above the paper in all four variants, and is not explained."
    ),
    ("figure3", "identity", ""): (
        "Nothing is learned at M = I. Our ten draws of the landmarks give 81.4 to 92.6, so the one "
        "draw of the paper, around 86, is nothing unusual. Tried: training series only, 89.3; test "
        "series only, 89.9; similarities scaled to unit variance, 87.9±3.6."
    ),
    ("figure3", "", ""): (
        "It depends on the penalty of the metric, lambda gamma^2, which the paper does not give. "
        "Mean over all classes, and over the first three, in four draws: 95.3 and 95.8 at 1e-6, "
        "97.1 and 98.3 at 1e-5, 97.9 and 99.2 at 1e-4. Tuning chooses 1e-6 or 1e-9 here; a "
        "penalty of 1e-5 to 1e-4 would give the paper's 98. Two of the nine classes pull the mean "
        "down: the median over classes is 98.1 at 1e-6 already."
    ),
    ("tests", "bbs", "average"): (
        "SLTS and BBS on the average: the difference is 1.1 in the paper. Our BBS is higher on "
        "Arabic digits, which have three quarters of the weight, and with 100 landmarks little is "
        "left to gain there; with fewer the difference is significant on all three larger sets."
    ),
    ("tests", "svm", "average"): (
        "SLTS and SVM on the average: our SVM is 5 points above the paper's on Arabic digits, see "
        "below, and there above SLTS."
    ),
    ("selection", "", ""): (
        "The paper finds KMedoids the least of the three on both sets. These means do not show it: "
        "the three ways are close to each other."
    ),
}


def remark_on(table: str, method: str, column: str) -> str:
    """The remark on a cell; on its method, or on its table, if there is none; else nothing."""
    for key in ((table, method, column), (table, method, ""), (table, "", "")):
        if key in _REMARKS:
            return _REMARKS[key]
    return ""
