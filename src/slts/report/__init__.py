"""HTML report of a fitted model. `collect` returns a plain dict, `render` turns it into a page.

page         `render`, `write_report` and `write_page`, which fill page.html, page.css and page.js
collect      `collect`: the content of the page as strings, numbers, lists and dicts
markup       sections.html, with the text of all sections; tables and other elements
packing      arrays, paths, times and numbers in the short form in which the page holds them

The other files have the content of a part of the page, and the sections that show it:

predictions  series, predictions and statistics of both: errors, guarantee, data
sets         prediction sets
importance   importance of channels and feature maps, metrics
references   landmarks or training series that a model compares series with
snippets     the strongest snippets of each class, and those that occur at a step
explorer     explanations of single series, and series as points in similarity space
card         model card: parameters, facts, provenance
"""

from slts.report.collect import collect
from slts.report.page import render, write_report

__all__ = ["collect", "render", "write_report"]
