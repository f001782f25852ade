"""Sphinx configuration."""

import re
from typing import Any

from docutils import nodes
from sphinx import addnodes

import slts

project = "slts"
author = "The slts developers"
copyright = "2026, The slts developers"
version = release = slts.__version__

extensions = [
    "matplotlib.sphinxext.plot_directive",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
plot_formats = [("png", 110)]
plot_html_show_formats = False
plot_html_show_source_link = False
html_theme = "furo"
html_title = f"slts {version}"
exclude_patterns = ["_build"]
autosummary_generate = True
templates_path = ["_templates"]
numpydoc_show_class_members = False
autodoc_typehints = "none"
nitpicky = False


def _link_names(app: Any, doctree: nodes.document) -> None:
    """Link names such as `slts.certify` to the reference: pages are plain Markdown."""
    for node in list(doctree.findall(nodes.literal)):
        name = node.astext()
        if re.fullmatch(r"slts(\.\w+)+", name) and isinstance(node.parent, nodes.TextElement):
            about = {"refdomain": "py", "reftype": "obj", "reftarget": name, "refwarn": False}
            link = addnodes.pending_xref("", refdoc=app.env.docname, **about)
            node.replace_self(link)
            link += node


def setup(app: Any) -> None:
    """Connect the hook above."""
    app.connect("doctree-read", _link_names)
