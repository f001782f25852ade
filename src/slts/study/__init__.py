"""The paper's experimental study: data set x method x split -> scores -> tables and figures.

paper.py          the published numbers
protocol.py       what is varied, and the units of work it comes to
problems.py       data sets, divided into training and test part
landmark_work.py  units of BBS and SLTS, of the ways to choose landmarks, of the PCA
baseline_work.py  units of 1NN, SVM and LDMLT, and the facts of Table 1
aside_work.py     units of the other reading of the protocol
work.py           from a unit to its result
ledger.py         the file of results, appended only
sessions.py       how long runs took
runner.py         units in processes; a stopped run goes on
statistics.py     means, intervals, the paired t-test
scores.py         all scores of a run, looked up
claims.py         what the text claims, tested
tables.py         from results to tables, as plain data
remarks.py        why figures may differ from the paper's
blocks.py         what a report is made of
document.py       the report as blocks
markdown.py       blocks as Markdown
page.py           blocks as an HTML page
figures.py        the figures
record.py         what is kept of a run, and the folder it is written into
files.py          files written whole or not at all
reproduction.py   all of it in one call
"""

from slts.study.protocol import FAST, FULL, PARTS, Protocol
from slts.study.record import Record
from slts.study.reproduction import parse_parts, reproduce

__all__ = ["FAST", "FULL", "PARTS", "Protocol", "Record", "parse_parts", "reproduce"]
