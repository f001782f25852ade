"""HTML report of a fitted model. `collect` makes a plain dict, `render` makes a page of it.

page          `render` and `write_report`, which fill page.html, page.css and page.js
series_html   sections about the series: errors, guarantee, similarity space, explorer, data
model_html    sections about the model: channels and metrics, landmarks, snippets, model card
markup        HTML elements used by all sections
collect       `collect`: the content of the page as strings, numbers, lists and dicts
predictions   series of the report, predictions, and statistics of both
sets          prediction sets: content, section, sets of single series
importance    importance of channels and comparisons, metrics
references    landmarks or training series that a model compares series with
snippets      the strongest snippets of each class, and those that occur at a step
explorer      explanations of single series, and series as points in similarity space
card          model card: parameters, facts, provenance
times         times of the user along a picture
downsampling  limits for long series, many channels and many series
packing       arrays and paths as short text
"""

from slts.report.collect import collect
from slts.report.page import render, write_report

__all__ = ["collect", "render", "write_report"]
