"""Nobody is forgotten: every part that the package defines keeps its contract in a test."""

import inspect
import pkgutil
from importlib import import_module

import pytest

import policychord
from policychord.models import AbstractModel
from policychord.primitives import AbstractPrimitive
from policychord.worlds import AbstractEnv

from .parts import ENVS, MODELS, PRIMITIVES

TESTED = {
    AbstractPrimitive: {type(case.part) for case in PRIMITIVES.values()},
    AbstractModel: {type(case.part) for case in MODELS.values()},
    AbstractEnv: {type(env) for env in ENVS.values()},
}


def classes():
    """Every class that is defined somewhere in the package."""
    for module in pkgutil.walk_packages(policychord.__path__, "policychord."):
        last = module.name.rsplit(".", 1)[-1]
        if last in ("__main__", "cli", "gym", "pettingzoo", "torch", "figures"):  # doors, drawings: no parts there
            continue
        for _, value in inspect.getmembers(import_module(module.name), inspect.isclass):
            if value.__module__.startswith("policychord"):
                yield value


@pytest.mark.parametrize("kind", TESTED, ids=lambda kind: kind.__name__)
def test_every_part_is_in_its_table(kind):
    concrete = {found for found in classes() if issubclass(found, kind) and not inspect.isabstract(found)}
    assert concrete, "the walk through the package found nothing"
    missing = {found.__name__ for found in concrete - TESTED[kind]}
    assert not missing, f"add a line for {missing} to tests/contracts/parts.py"


@pytest.mark.parametrize("kind", TESTED, ids=lambda kind: kind.__name__)
def test_parts_are_final(kind):
    """A class is either abstract or final: nothing that can be used is built upon."""
    for found in TESTED[kind]:
        assert found.__bases__ == (kind,)
        assert not found.__subclasses__()
