"""Configuration of the documentation site. `derive docs` builds it from the pages that `pages.py` gathers."""

from derive.version import __version__

project = "two-level-dmft"
author = "the authors of two-level-dmft"
release = version = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = f"two-level-dmft {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}
pygments_style, pygments_dark_style = "friendly", "monokai"

myst_heading_anchors = 4
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "none"
napoleon_numpy_docstring = False
nitpicky = False
default_role = "code"
smartquotes = False  # options such as --json keep their dashes
add_module_names = True
