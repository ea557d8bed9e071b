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


def returns_of(table: str) -> dict[str, tuple[float, float]]:
    """Mean and standard deviation of each agent in the pendulum's table."""
    lines = re.findall(r"^(\S.*?) {2,}(-\d+\.\d) ± +(\d+\.\d)", table, re.MULTILINE)
    return {name: (float(mean), float(sd)) for name, mean, sd in lines}


def composing_beats_each_controller_and_their_average(printed: str) -> None:
    assert "100 episodes" in printed
    returns = returns_of(printed)
    ours, _ = returns["composed, cost-to-go"]
    for other in ("pump alone", "balance alone", "fixed 50/50", "composed, one-step cost"):
        assert ours > returns[other][0]
        gain, error = re.search(rf"^{other}.* (\d+\.\d) ± +(\d+\.\d) +\d+$", printed, re.MULTILINE).groups()
        assert float(gain) > 4 * float(error), f"the gain over {other} could be luck"
        assert float(gain) == pytest.approx(ours - returns[other][0], abs=0.11)
    # golden numbers: the bare controllers in a plain NumPy loop, without primitives or Composer
    assert returns["pump alone"] == pytest.approx((-561.9, 59.7), abs=0.5)
    assert returns["fixed 50/50"] == pytest.approx((-194.5, 135.1), abs=0.5)
    # a horizon of one step is worse than no model at all
    assert returns["composed, one-step cost"][0] < returns["fixed 50/50"][0]


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
    "pendulum": composing_beats_each_controller_and_their_average,
}


def compares_with_all_controls(printed: str) -> None:
    """The table has a line for every agent, and what ours gains is the difference of the means."""
    rows = re.findall(r"^(\S.*?) {2,}(-?\d\S*) ± +\S+ +(-?\d\S*) ± +\S+ +(\d+) +(\d+)$", printed, re.MULTILINE)
    ours = float(re.search(r"^composed, rollouts +(-?\d\S*) ± +\S+$", printed, re.MULTILINE)[1])
    names = {name for name, *_ in rows}
    assert {"fixed mixture", "cheapest, rollouts", "composed, one step"} <= names
    assert names & {"MPPI, same budget", "random shooting, same budget"}
    assert sum(name.endswith(" alone") for name in names) >= 2
    for _, mean, gain, won, lost in rows:
        assert float(gain) == pytest.approx(ours - float(mean), abs=0.11)
        assert int(won) + int(lost) <= 2


PROMISES |= dict.fromkeys(("cart_pole", "mountain_car", "pusher", "trained_policies"), compares_with_all_controls)


def flies_better_than_its_controllers_and_says_what_is_better(printed: str) -> None:
    """Two flights, no crash: cheaper than every controller alone, dearer than those that know the acceleration."""
    rows = re.findall(r"^(\S.*?) {2,}(\d+\.\d) +(\d+)", printed, re.MULTILINE)
    medians = {name: float(median) for name, median, _ in rows}
    ours = medians["composed, rollouts"]
    assert len(rows) == 14
    assert all(crashes == "0" for _, _, crashes in rows)
    assert all(ours < median for name, median in medians.items() if name.endswith(" alone"))
    better = ("planned around them", "MPPI, same budget", "Mellinger p, v, a", "PD, feed-forward")
    assert all(ours > medians[name] for name in better)


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
PROMISES["crazyflie"] = flies_better_than_its_controllers_and_says_what_is_better
# two episodes; the tables are made with fifty
SHORT = {"cart_pole", "crazyflie", "mountain_car", "pusher", "trained_policies"}
NEEDS = {"pusher": "mujoco", "trained_policies": "stable_baselines3"}

# They take long, and pages of the documentation, which tests build, go the same way.
LONG = (
    "crazyflie",
    "habit",
    "mountain_car",
    "own_environment",
    "pendulum",
    "two_controllers",
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
