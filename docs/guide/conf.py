"""Sphinx: the guide of the Python package. Built by docs/guide/build."""

import hdsl

project = "hdsl"
author = "the hdsl developers"
version = release = hdsl.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["examples/README.rst"]
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
# Inherited members belong to what a class can do; those of object do not.
autodoc_default_options = {"members": True, "inherited-members": True, "exclude-members": "set_fit_request"}
# Other projects' pages are linked where there is a network, and do without where there is none.
intersphinx_mapping = {
    "sklearn": ("https://scikit-learn.org/stable", None),
    "scipy": ("https://docs.scipy.org/doc/scipy", None),
}
suppress_warnings = ["intersphinx.external", "config.cache"]

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
