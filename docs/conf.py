"""Sphinx configuration."""

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
