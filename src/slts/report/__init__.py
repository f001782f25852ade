"""A fitted model as one HTML page: collect a plain dict, then render it.

page        `render` and `write_report`; page.html, page.css and page.js are what they fill in
collect     `collect`: everything the page shows, as strings, numbers, lists and dicts
sample      the series of the report and the model's answers
figures     accuracy, confusion, certificate, lengths and classes
insight     channels, metric maps and weights
companions  landmarks or neighbours: which count for a series, and its paths to them
explorer    scores, contributions and alignments of every series
space       series as points
drawing     how series are drawn
card        parameters and provenance
sections    masthead and order of the sections, which need no script but for their pictures:
            answers_html, model_html, explorer_html, of pieces in markup
packing     arrays as short text
thinning    what is drawn of long series, many channels and many series
"""

from slts.report.collect import collect
from slts.report.page import render, write_report

__all__ = ["collect", "render", "write_report"]
