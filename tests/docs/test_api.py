"""Every public name has its place in the reference; the site's build says the same, minutes later."""

import importlib
import inspect
import re
import sys

import pytest

from .pages import ROOT

sys.path.insert(0, str(ROOT / "docs" / "_ext"))
import docstrings
import generated
from docstrings import PACKAGES, public_names

import policychord

PAGES = sorted((ROOT / "docs" / "reference" / "api").glob("*.md"))
API = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
ENTRIES = re.findall(r"^(policychord[\w.]+)(?::[\w,]+)?$", API, re.MULTILINE)


@pytest.mark.parametrize("package", PACKAGES)
def test_public_names_are_in_the_reference(package):
    """Functions and classes have an entry, wherever they are handed on; other names stand in a sentence."""
    module = importlib.import_module(package)
    shown = {id(generated.public(entry)) for entry in ENTRIES}
    offered = {name: getattr(module, name) for name in public_names(module)}
    written = {name for name, value in offered.items() if inspect.isroutine(value) or isinstance(value, type)}
    missing = [name for name in written if id(offered[name]) not in shown]
    others = {name for name, value in offered.items() if not inspect.ismodule(value)} - written
    missing += [name for name in others if f"`{name}`" not in API]
    assert not missing, f"add {sorted(missing)} to a page in docs/reference/api, and run `make tables`"


def test_nothing_is_in_the_reference_twice():
    assert sorted(ENTRIES) == sorted(set(ENTRIES))


def test_the_reference_shows_a_function_and_not_one_of_its_overloads():
    pytest.importorskip("sphinx")
    assert "complexity: Any=None" in docstrings.signature(policychord.problem)
