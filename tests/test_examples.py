"""Every example runs, draws a figure that shows something, and says what it promises to say."""

import os
import re
import subprocess
import sys
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
# What has no main guard is a module that the scripts share. A new script is covered without a line here.
SCRIPTS = sorted(path.stem for path in EXAMPLES.glob("*.py") if "__main__" in path.read_text())


def says_weights_and_their_proof(printed: str) -> None:
    weights = dict(re.findall(r"^(keep left|press on|keep right) +([\d.]+)$", printed, re.MULTILINE))
    assert weights == {"keep left": "0.2026", "press on": "0.5328", "keep right": "0.2647"}
    gap, distance = re.search(r"certificate: energy within (\S+), weights within (\S+)", printed).groups()
    assert 0 < float(gap) <= 1e-10
    assert 0 < float(distance) <= 1e-4


ROW = re.compile(r"^(\S.*?) +(\d+|\?) +(-?\d\S*) ± +\S+ +(-?\d\S*) ± +\S+ +(\d+) +(\d+)$", re.MULTILINE)


def compares_with_all_controls(printed: str) -> dict[str, float]:
    """The table has a line for every agent, and what ours gains is the difference of the means."""
    rows = ROW.findall(printed)
    ours = float(re.search(r"^composed +\d+ +(-?\d\S*) ± +\S+$", printed, re.MULTILINE)[1])
    names = {name for name, *_ in rows}
    assert {"fixed mixture", "cheapest"} <= names
    assert sum(name.endswith(" alone") for name in names) >= 2
    episodes = int(re.search(r"^(\d+) episodes, the same for all", printed, re.MULTILINE)[1])
    first = rows[: len(names)]  # of the first table
    for _, _, mean, gain, won, lost in first:
        assert float(gain) == pytest.approx(ours - float(mean), abs=0.11)
        assert int(won) + int(lost) <= episodes
    return {name: float(mean) for name, _, mean, *_ in first} | {"composed": ours}


def composing_beats_each_controller_and_their_average(printed: str) -> None:
    returns = compares_with_all_controls(printed)
    assert "100 episodes" in printed
    for other in ("pump alone", "balance alone", "fixed mixture", "one-step cost"):
        assert returns["composed"] > returns[other]
    # golden numbers: the bare controllers in a plain NumPy loop, without primitives or Composer
    assert returns["pump alone"] == pytest.approx(-561.9, abs=0.5)
    assert returns["fixed mixture"] == pytest.approx(-194.5, abs=0.5)
    # a horizon of one step is worse than no model at all
    assert returns["one-step cost"] < returns["fixed mixture"]


def costs_decide_when_cold_and_habit_when_hot(printed: str) -> None:
    found = re.findall(r"^ *([\d,]+) +([\d.]+) +(-\d+\.\d) ± +\S+ +(\d\.\d\d)$", printed, re.MULTILINE)
    rows = np.array([[float(cell.replace(",", "")) for cell in row] for row in found]).reshape(3, 4, 4)
    assert rows[0, :, 0].tolist() == [1.0, 1e2, 1e4, 1e6]
    cold, hot = rows[0], rows[-1]
    assert np.ptp(cold[:, 2]) < 5.0
    assert hot[0, 2] > -200.0
    assert hot[-1, 2] < -500.0
    assert hot[-1, 3] == 1.0
    after = dict.fromkeys(("even", "situation"))
    for name in after:
        after[name] = [float(mean) for mean in re.findall(rf"^{name} +\S+ +(-\d+\.\d) ±", printed, re.MULTILINE)]
    assert len(after["even"]) == 4
    assert all(np.array(after["situation"]) > after["even"])
    # the hotter, the closer to the prior alone, which needs no model
    alone = float(re.search(r"alone, without a model: (\S+)", printed)[1])
    assert after["situation"][-1] == pytest.approx(alone, abs=2.0)


# One test for each script, so that no script runs twice however tests are spread over the cores.
PROMISES = {
    "first_composition": says_weights_and_their_proof,
    "habit": costs_decide_when_cold_and_habit_when_hot,
    "swing_up": composing_beats_each_controller_and_their_average,
}


PROMISES |= dict.fromkeys(("half_cheetah", "trained_policies", "unicycle"), compares_with_all_controls)


def looking_ahead_beats_the_fixed_mixture(printed: str) -> None:
    returns = compares_with_all_controls(printed)
    assert returns["composed"] > returns["composed, one step"]
    assert returns["composed"] > returns["fixed mixture"] > max(returns["stabilise alone"], returns["track alone"])


def flies_better_than_its_controllers_and_says_what_is_better(printed: str) -> None:
    """Two flights: better than every controller alone, worse than a plan and what knows the acceleration."""
    right, wrong = printed.split("mass of the model: 0.8")
    returns = compares_with_all_controls(right)
    assert all(returns["composed"] > one for name, one in returns.items() if name.endswith(" alone"))
    assert all(returns["composed"] < returns[name] for name in ("posterior", "plan", "gradient", "by hand"))
    returns = compares_with_all_controls(wrong)
    assert returns["plan, learning"] > max(returns["plan"], returns["composed"])


def tells_planning_from_habit_and_warns_of_both(printed: str) -> None:
    names = re.findall(r"^(\w+) +-\d\.\d+ nats per trial", printed, re.MULTILINE)
    assert names == ["planning", "both", "habit", "chance"]
    assert "planning over both" in printed
    confusion = np.array(
        [[float(share) for share in row] for row in re.findall(r"\[([\d.]+) +([\d.]+) +([\d.]+)\s*\]", printed)]
    )
    assert confusion.shape == (3, 3)
    np.testing.assert_allclose(confusion.sum(axis=1), 1.0, atol=0.02)
    assert confusion[2, 2] > 0.8, "planning is recovered"
    assert confusion[0, 0] < 0.2, "the page says that both are hardly recovered"


PROMISES["two_step"] = tells_planning_from_habit_and_warns_of_both
PROMISES |= {
    "crazyflie": flies_better_than_its_controllers_and_says_what_is_better,
    "two_controllers": looking_ahead_beats_the_fixed_mixture,
}
SHORT = {"crazyflie", "half_cheetah", "trained_policies", "unicycle"}  # two episodes
NEEDS = {"half_cheetah": "mujoco", "trained_policies": "stable_baselines3"}

# They take long, and pages of the documentation, which tests build, go the same way.
LONG = (
    "crazyflie",
    "habit",
    "half_cheetah",
    "swing_up",
    "trained_policies",
    "two_controllers",
    "unicycle",
)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.thorough] * (name in LONG)) for name in SCRIPTS]
)
def test_it_runs_draws_and_keeps_its_promise(name, tmp_path):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name], reason=f"{NEEDS[name]} is not installed, and need not be")
    command = [sys.executable, EXAMPLES / f"{name}.py", "--out", tmp_path, *(["--seeds", "2"] * (name in SHORT))]
    environment = os.environ | {"PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(command, capture_output=True, encoding="utf-8", env=environment)
    assert done.returncode == 0, done.stderr
    figures = sorted(tmp_path.glob("*.png"))
    assert figures, "no figure was saved"
    assert all(str(film) in done.stdout for film in tmp_path.glob("*.gif"))
    for figure in figures:
        assert str(figure) in done.stdout
        pixels = matplotlib.image.imread(figure)[..., :3]
        assert min(pixels.shape[:2]) > 300
        inked = np.mean(np.any(pixels < 0.9, axis=-1))
        assert 0.01 < inked < 0.9, f"{figure.name} is blank or full"
    PROMISES.get(name, lambda printed: None)(done.stdout)


def test_promises_are_those_of_examples_that_exist():
    assert set(PROMISES) <= set(SCRIPTS)


def test_there_are_few_examples():
    assert len(SCRIPTS) <= 12


@pytest.mark.parametrize("name", SCRIPTS)
def test_each_asks_a_question_and_is_short(name):
    text = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    assert "?" in text.partition('"""')[2].partition("\n")[0]
    assert len([line for line in text.splitlines() if line.strip()]) < 80, "lines, without empty ones"
