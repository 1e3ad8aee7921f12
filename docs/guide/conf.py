"""Sphinx: the guide of the Python package. Built by docs/guide/build."""

from pathlib import Path

import hdsl
from docutils import nodes
from latex2mathml.converter import convert

import hdsl.dask  # so that its pages can be made

project = "hdsl"
author = "the hdsl developers"
version = release = hdsl.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["examples/README.rst", "scripts/*"]
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
autodoc_default_options = {"members": True, "inherited-members": True}
suppress_warnings = ["config.cache"]

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "auto_examples",
    "within_subsection_order": "ExampleTitleSortKey",
    "abort_on_example_error": True,
    "show_memory": False,
    "download_all_examples": False,
    "backreferences_dir": None,
    "remove_config_comments": True,
    "write_computation_times": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "hdsl"
html_theme_options = {"show_toc_level": 2, "navigation_with_keys": False, "navbar_persistent": ["search-button"]}
html_context = {"default_mode": "auto"}
# Pages without subpages, whose sidebar would be empty.
html_sidebars = {page: [] for page in ("index", "install", "using", "theory", "choosing", "which_tool", "dask", "search", "genindex")}
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["guide.css"]
html_math_renderer = "mathml"
# Browsers draw MathML themselves: no script, no font and no network are needed.
linkcheck_ignore = [r"https?://.*"]  # links to other sites change without us


def inline_math(translator, node):
    """A formula within a line, as MathML."""
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def block_math(translator, node):
    """A formula by itself. It can be reached by keyboard, since it scrolls where the screen is narrow."""
    formula = convert(node.astext(), display="block")
    translator.body.append(f'<div class="math" tabindex="0" role="group" aria-label="formula">{formula}</div>')
    raise nodes.SkipNode


def quiet(app, error):
    """Takes the theme's messages out of its scripts: whoever opens the console finds errors there, or nothing."""
    if error is None and app.builder.format == "html":
        for script in [*Path(app.outdir, "_static").rglob("*.js"), Path(app.outdir, "search.html")]:
            text = script.read_text(encoding="utf-8")
            if "console.log(" in text and "[PST]" in text:
                script.write_text(text.replace("console.log(", "void("), encoding="utf-8")


def cells(app, page, template, context, doctree):
    """Makes the empty corner of a data frame a cell, since a heading has to have a text."""
    if "body" in context:
        context["body"] = context["body"].replace("<th></th>", "<td></td>")


def setup(app):
    """Leaves out what scikit-learn's own classes bring along: its pages describe it, with links that lead nowhere here."""

    def skip(app, what, name, obj, skip, options):
        return True if (getattr(obj, "__module__", None) or "").startswith("sklearn.") else None

    app.connect("autodoc-skip-member", skip)
    app.add_html_math_renderer("mathml", inline_renderers=(inline_math, None), block_renderers=(block_math, None))
    app.connect("build-finished", quiet)
    app.connect("html-page-context", cells)
