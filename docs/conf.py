"""The documentation site: `make docs` builds it into site/, to be read from disk, offline."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "src")]

import mercer  # noqa: E402

project = "mercer"
author = "The mercer developers"
release = version = mercer.__version__
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "reference",
    "docstrings",
    "offline",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_ext", ".trees", "gallery/*.ipynb", "gallery/*.py"]
default_role = "py:obj"
smartquotes = False  # strings of code stay as they are typed

# Docstrings: numpydoc sections, long signatures with a line for each parameter.
autosummary_generate = False  # `reference` writes the pages
autodoc_member_order = "bysource"
autodoc_typehints = "none"
maximum_signature_line_length = 70
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False

# Markdown pages
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist", "attrs_inline", "attrs_block"]
myst_heading_anchors = 4
myst_dmath_double_inline = True
html_math_renderer = "mathml"
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

# The gallery: every script of examples/ is run, and is a page.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "gallery_order.Order",
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("mercer",),
    "reference_url": {"mercer": None},
    "image_srcset": ["2x"],
    "capture_repr": (),
    "show_memory": False,
    "write_computation_times": False,  # its page loads scripts from elsewhere
    "show_signature": False,
    "abort_on_example_error": True,
    "download_all_examples": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "mercer"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_context = {"default_mode": "auto"}  # as the system is; the theme logs an error without one
html_theme_options = {
    "navigation_with_keys": False,
    "header_links_before_dropdown": 8,
    "show_nav_level": 1,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
