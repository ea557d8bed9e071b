"""What the contributor's page tells people to copy keeps the contracts."""

import pytest

from policychord_paper.reproduce import Chosen, reproduce

from . import test_envs, test_models, test_primitives
from .parts import BOX, DISC, Case
from .skeletons.env import Puck
from .skeletons.model import Calm
from .skeletons.primitive import Shy
from .skeletons.study import STUDY


def checks_of(module):
    """The tests of a contract, to be asked of a part that is in no table."""
    return [check for name, check in vars(module).items() if name.startswith("test_")]


def ask(check, **known):
    """Call a test with those of its arguments that it names."""
    wanted = check.__code__.co_varnames[: check.__code__.co_argcount]
    check(**{name: known[name] for name in wanted})


@pytest.mark.parametrize("actions", [BOX, DISC], ids=["box", "disc"])
def test_the_primitive(actions):
    case = Case(Shy(), actions)
    once = test_primitives.one_by_one.__wrapped__(case)
    for check in checks_of(test_primitives):
        ask(check, case=case, one_by_one=once)


def test_the_model():
    case = Case(Calm(), BOX)
    once = test_models.one_by_one.__wrapped__(case)
    for check in checks_of(test_models):
        ask(check, case=case, one_by_one=once)


def test_the_environment():
    env = Puck()
    many = test_envs.episodes.__wrapped__(env)
    for check in checks_of(test_envs):
        ask(check, env=env, episodes=many)


def test_the_study(tmp_path):
    told = STUDY.settings(quick=True)
    (chapter,), _ = reproduce([Chosen(STUDY, told)], tmp_path)
    assert [(claim.id, claim.verdict) for claim in chapter.claims] == [("M1", "reproduced")]
    assert [(tmp_path / path).exists() for path in (chapter.figures[0].png, *chapter.data)] == [True, True]
