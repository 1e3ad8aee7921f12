"""Sphinx: the guide of the Python package. Built by docs/guide/build."""

import hdsl
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
exclude_patterns = ["examples/README.rst"]
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
}

html_theme = "pydata_sphinx_theme"
html_title = "hdsl"
html_theme_options = {"show_toc_level": 2, "navigation_with_keys": False}
html_show_sourcelink = False


def setup(app):
    """Leaves out what scikit-learn's own classes bring along: its pages describe it, with links that lead nowhere here."""

    def skip(app, what, name, obj, skip, options):
        return True if (getattr(obj, "__module__", None) or "").startswith("sklearn.") else None

    app.connect("autodoc-skip-member", skip)
