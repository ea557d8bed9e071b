"""Commands that other packages add, as docs/contribute shows it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "contribute" / "index.md"
INSTALL = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
           "--no-build-isolation"]  # fmt: skip


def example():
    """The files of the example on the page, by name."""
    blocks = re.findall(r"```(?:python|toml)\n# (\S+)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return dict(blocks)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The example, installed into a folder of its own."""
    source, site = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    for name, text in example().items():
        (source / name).write_text(text, encoding="utf-8")
    subprocess.run([*INSTALL, "--target", str(site), str(source)], check=True)
    return site


def policychord(site, *words):
    paths = filter(None, [str(site), os.environ.get("PYTHONPATH")])
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "100"}
    command = [sys.executable, "-m", "policychord", *words]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def test_the_example_of_the_page_adds_a_command(installed):
    files = example()
    assert sum(len(text.strip().splitlines()) for name, text in files.items() if name.endswith(".py")) <= 10
    done = policychord(installed, "greet", "--name", "gate")
    assert (done.returncode, done.stderr) == (0, "")
    assert "hello, gate" in done.stdout
    assert "greet" in policychord(installed, "--help").stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("raise RuntimeError('out of order')", "out of order"),
        ("raise SystemExit('out of order')", "out of order"),
        ("def add_commands(app): app.command()(lambda name: None); app.out_of_order()", "out_of_order"),
        ("def greet(name: int | str): pass\ndef add_commands(app): app.command()(greet)", "Union"),
    ],
)
def test_a_broken_plug_in_is_one_warning(installed, text, said):
    """Whatever it does wrong: the other commands work, and one line says whose are missing."""
    module = next(installed.glob("*.py"))
    whole = module.read_text(encoding="utf-8")
    module.write_text(text, encoding="utf-8")
    try:
        done = policychord(installed, "--version")
    finally:
        module.write_text(whole, encoding="utf-8")
    assert done.returncode == 0
    assert done.stdout.startswith("policychord ")
    (line,) = done.stderr.strip().splitlines()
    assert said in line
    assert "are missing" in line
