"""The site is built as `make docs` builds it, without a warning, and no link in it is broken."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

from .links import broken, log_lines
from .pages import ROOT


def test_make_docs_builds_a_site_without_broken_links(tmp_path):
    """Every tutorial and guide runs here, unless one of the same code ran before."""
    recipe = re.search(r"^docs:.*\n\t(.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]
    command = [word.replace("$(BIN)", str(Path(sys.executable).parent)) for word in shlex.split(recipe)]
    assert command[-1] == "build/site"
    done = subprocess.run([*command[:-1], tmp_path], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-5000:]
    assert len(list(tmp_path.rglob("*.html"))) > 20
    assert broken(tmp_path) == []
    assert log_lines(tmp_path) == []


def test_broken_links_are_found(tmp_path):
    (tmp_path / "other.html").write_text('<p id="there">')
    good = '<a href="other.html#there"><a href="#here" id="here"><a href="https://example.org/x"><img src="a%20b.png">'
    (tmp_path / "a b.png").touch()
    bad = '<a href="other.html#gone"><a href="nowhere.html"><img src="gone.png"><a href="#gone">'
    (tmp_path / "page.html").write_text(good + bad)
    assert broken(tmp_path) == [f"page.html -> {t}" for t in ("#gone", "gone.png", "nowhere.html", "other.html#gone")]


def test_log_lines_are_found(tmp_path):
    logged = "E1118 21:16:39.123456   4242 cpu_aot_loader.cc:210] Machine type used for compilation doesn't match"
    (tmp_path / "page.html").write_text(f"<p>E 1118</p><pre>gap 2e-19\n{logged}\n</pre>")
    (tmp_path / "other.html").write_text("<pre>I1118 of 2026: equilibrium.py:12] in text\n</pre>")
    (tmp_path / "third.html").write_text("<pre>This could lead to execution errors such as SIGILL.</pre>")
    assert [line.partition(": ")[0] for line in log_lines(tmp_path)] == ["page.html", "third.html"]


def test_pages_run_without_the_log_of_xla():
    """A page's process inherits it; set later, XLA would not read it."""
    conf = (ROOT / "docs" / "conf.py").read_text(encoding="utf-8")
    assert conf.index('os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"') < conf.index("from policychord")
