"""HTML report of a fitted model. `collect` returns a plain dict, `render` turns it into a page.

collect      `collect`: the content as strings, numbers, lists and dicts; explorer and model card
predictions  series and their predictions: errors, guarantee, prediction sets, lengths and classes
references   what a model compares series with: landmarks, or training series of nearest neighbours
snippets     the strongest snippets of each class, and those that occur at a step
packing      arrays, paths, times and numbers in the short form in which the page holds them

page         `render` and `write_report`, which fill page.html, page.css and page.js
sections     the sections of the page, and their elements; their text is in sections.html
"""

from slts.report.collect import collect
from slts.report.page import render, write_report

__all__ = ["collect", "render", "write_report"]
