"""Settings from files and options: who wins, and what is said of wrong ones."""

import json
import re

import pytest

from policychord.cli.options import Given, settle
from policychord.worlds.quadrotor.settings import QuadrotorSettings
from policychord_paper.commands.quadrotor import _build


def settled(tmp_path, content, given=None, name="own.toml"):
    (tmp_path / name).write_text(content)
    return settle(Given(QuadrotorSettings, given or {}, tmp_path / name), _build)


def test_options_win_over_the_file_and_the_file_over_defaults(tmp_path):
    given = {"--eps": ("composition.eps", 0.7), "--seeds": ("seeds", None)}
    found = settled(tmp_path, "seeds = 5\n[composition]\neps = 0.5\nmargin = 0.1", given)
    assert (found.seeds, found.composition.eps, found.composition.margin) == (5, 0.7, 0.1)
    assert (found.disturbance, found.composition.selection) == ("centre", "mean")  # a first experiment's
    same = settled(tmp_path, json.dumps({"seeds": 5, "composition": {"eps": 0.7, "margin": 0.1}}), name="own.json")
    assert found == same


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("sedes = 3", "sedes in own.toml is not a setting: did you mean seeds?"),
        ("xyz = 3", "there are seed, seeds,"),
        ("composition.epz = 3", "composition.epz in own.toml is not a setting: did you mean eps?"),
        ("seeds = 1", "seeds = 1 in own.toml: must be at least 2."),
        ("seeds = 2.5", "seeds = 2.5 in own.toml: must be a whole number."),
        ("seeds = 'many'", "seeds = 'many' in own.toml: must be a whole number."),
        ("composition.eps = 0", "composition.eps = 0 in own.toml: must be at least 1e-09."),
        ("composition.eps = 'hot'", "must be a number."),
        ("path = 'knot'", "path = 'knot' in own.toml: use 'lemniscate'"),
        ("composition = 3", "must be a table with gate, duration, tau,"),
        ("cost.thrust = 1", "cost.state in own.toml is missing"),
        ("seeds = ", "own.toml is not valid TOML"),
    ],
)
def test_wrong_settings(tmp_path, content, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        settled(tmp_path, content)


def test_all_that_is_wrong_is_said_at_once(tmp_path):
    with pytest.raises(ValueError, match=r"--seeds 1: .* at least 2\. scal in own\.toml is not"):
        settled(tmp_path, "scal = 1", {"--seeds": ("seeds", 1)})


@pytest.mark.parametrize(("name", "content"), [("a.json", "{"), ("a.json", "[1]"), ("a.toml", "\udcff")])
def test_files_that_cannot_be_read(tmp_path, name, content):
    (tmp_path / name).write_text(content, errors="surrogateescape")
    with pytest.raises(ValueError, match=name):
        settle(Given(QuadrotorSettings, {}, tmp_path / name), _build)
