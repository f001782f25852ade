"""HTML report of a fitted model. `collect` returns a plain dict, `render` turns it into a page.

collect      `collect`: the content of the page as strings, numbers, lists and dicts
predictions  series and their predictions: errors, guarantee, prediction sets, lengths and classes
references   what a model compares series with; training series of nearest neighbours
landmarks    landmarks of linear models: explanations, importance of channels, metrics
snippets     the strongest snippets of each class, and those that occur at a step
explorer     explanations of single series, and series as points in similarity space
card         model card: parameters, facts, provenance
packing      arrays, paths, times and numbers in the short form in which the page holds them

page         `render` and `write_report`, which fill page.html, page.css and page.js
sections     the sections of the page; their text is in sections.html
markup       templates, tables and other elements
"""

from slts.report.collect import collect
from slts.report.page import render, write_report

__all__ = ["collect", "render", "write_report"]
