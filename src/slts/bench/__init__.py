"""Accuracy of the classifiers beside other libraries': data set x method x split -> tables.

methods.py    the methods as data, one line each
makers.py     from a method to a model: data in the form it takes, numbers it stores
protocol.py   how many splits of what, and the units of work it comes to
work.py       from a unit to its result
results.py    all results of a run, looked up
ranking.py    ranks, signed-rank test, critical difference
tables.py     from results to tables, as plain data
choices.py    which configuration the other data sets would have chosen
document.py   the report as blocks
wording.py    what the report says besides its tables
figures.py    the figure of mean ranks
accuracy.py   all of it in one call

Units, ledger, runner and statistics are those of `slts.study`.
"""

from slts.bench.accuracy import compare_accuracy
from slts.bench.protocol import FAST, FULL, Protocol, parse_only

__all__ = ["FAST", "FULL", "Protocol", "compare_accuracy", "parse_only"]
