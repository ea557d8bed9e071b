"""Every public name has its place in the reference; the site's build says the same, minutes later."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

import policychord

API = (Path(__file__).parents[2] / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
ROOMS = ("actions", "agent", "envs", "fitting", "learning", "loops", "models", "population", "primitives", "stats")


@pytest.mark.parametrize("room", ["", *ROOMS])
def test_public_names_are_in_the_reference(room):
    where = importlib.import_module(f"policychord.{room}") if room else policychord
    known = {entry.rpartition(".")[2] for entry in re.findall(r"auto\w+:: (policychord[\w.]+)", API)}
    written = [
        name
        for name in getattr(where, "__all__", ())
        if inspect.isroutine(one := getattr(where, name)) or isinstance(one, type)
    ]
    missing = [name for name in written if name not in known]
    assert not missing, f"add {missing} to docs/reference/api.md"
