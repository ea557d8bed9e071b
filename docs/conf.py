"""How the site is built: pages in Markdown, whose code runs when the site is built and stops it when it fails."""

import tomllib
from pathlib import Path

_ROOT = Path(__file__).parent.parent

project = "Policychord"
release = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]["version"]
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "sphinx_copybutton"]
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = f"Policychord {release}"

myst_enable_extensions = ["amsmath", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "cache"
nb_execution_cache_path = str(_ROOT / "build" / "notebooks")
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True

autodoc_typehints = "description"
autodoc_member_order = "bysource"
