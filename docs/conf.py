"""How the site is built: pages in Markdown, whose code runs when the site is built and stops it when it fails."""

import hashlib
import os
import sys
import tomllib
from pathlib import Path

# what XLA logs while a page runs is for developers of XLA; it must be set before anything imports JAX
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

from policychord.runs.compiled import programs_folder

_DOCS = Path(__file__).parent
_ROOT = _DOCS.parent
sys.path.insert(0, str(_DOCS / "_ext"))

project = "Policychord"
release = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]["version"]
extensions = [
    "myst_nb", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "sphinx_copybutton",
    "docstrings", "generated", "mathml", "printed",  # our own, in _ext
]  # fmt: skip
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = f"Policychord {release}"
html_show_copyright = False  # the licence says it
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["live.js"]  # the figure of the first page
html_math_renderer = "mathml"

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "cache"
# what a page shows comes from this code: when the code changes, pages run again
_CODE = hashlib.sha256(b"".join(file.read_bytes() for file in sorted((_ROOT / "src").rglob("*.py")))).hexdigest()
nb_execution_cache_path = str(_ROOT / "build" / "notebooks" / _CODE[:12])
nb_execution_in_temp = True
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True

# pages run in processes of their own, which find our command and draw in our style
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
os.environ["MATPLOTLIBRC"] = str(_DOCS / "matplotlibrc")
os.environ["JAX_COMPILATION_CACHE_DIR"] = str(programs_folder())  # a program that two pages need is compiled once
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.1"
os.environ["COLUMNS"] = "88"  # as wide as a page shows
os.environ["PYTHONSTARTUP"] = str(_DOCS / "startup.py")

autodoc_typehints = "none"  # they stand in the signatures, as the source has them
autodoc_member_order = "bysource"
python_maximum_signature_line_length = 90
toc_object_entries_show_parents = "hide"
