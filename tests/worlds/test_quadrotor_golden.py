"""Our drone and controllers against flights recorded from another simulator."""

from pathlib import Path

import numpy as np
import pytest

from policychord.worlds.quadrotor.agents import _regulator
from policychord.worlds.quadrotor.physics import LARGEST_THRUST, LEAST_THRUST

from .quadrotor_recorded import SETTINGS, commands, controller, flight, noise_of, total_cost

RECORDED = np.load(Path(__file__).parent / "quadrotor.npz")
CALM = np.zeros((300, 2))


@pytest.mark.parametrize("name", ["lqr_baseline", "lqr_track"])
def test_calm_lqr_flights_agree_over_300_steps(name):
    states, _ = flight(controller(name), CALM, CALM)
    off = np.abs(np.asarray(states) - RECORDED[f"{name}.calm.states"])[:, [0, 2]]
    assert off.max() < 1e-7  # m


@pytest.mark.parametrize("case", ["lqr_baseline.impulse", "lqr_track.noise"])
def test_lqr_flights_agree_under_recorded_forces_and_noise(case):
    states, asked, applied, forces = (RECORDED[f"{case}.{f}"] for f in ("states", "commands", "applied", "forces"))
    ours, thrusts = flight(controller(case.split(".")[0]), noise_of(asked, applied), forces)
    assert np.abs(np.asarray(ours) - states)[:, [0, 2]].max() < 1e-5
    assert total_cost(ours, thrusts) == pytest.approx(total_cost(states, applied), rel=1e-4)


@pytest.mark.parametrize("case", ["pid_baseline.noise", "pd_stabilise.impulse", "pd_track.noise", "lqr_track.noise"])
def test_commands_agree_at_recorded_states(case):
    asked = commands(controller(case.split(".")[0]), RECORDED[f"{case}.states"][:-1])
    np.testing.assert_allclose(asked, RECORDED[f"{case}.commands"], rtol=0, atol=1e-12)


def test_calm_pid_flight_costs_the_same():
    """Its turns are at the limits, so that positions part by a centimetre; the cost does not."""
    states, thrusts = flight(controller("pid_baseline"), CALM, CALM)
    recorded = RECORDED["pid_baseline.calm.states"]
    theirs = commands(controller("pid_baseline"), recorded[:-1])
    assert total_cost(states, thrusts) == pytest.approx(total_cost(recorded, theirs), rel=0.01)


def test_motors_cut_what_noise_asks_too_much_of():
    """The recorded noise ends at the limits; one that does not is cut by the drone's own motors."""
    thrusts = flight(controller("lqr_track"), np.full((300, 2), 1.0), CALM)[1]
    np.testing.assert_array_equal(thrusts, LARGEST_THRUST)
    thrusts = flight(controller("lqr_track"), np.full((300, 2), -1.0), CALM)[1]
    np.testing.assert_array_equal(thrusts, LEAST_THRUST)


@pytest.mark.parametrize("role", ["baseline", "track", "stabilise"])
def test_lqr_gains_agree(role):
    gain, _ = _regulator(getattr(SETTINGS, f"lqr_{role}"))
    np.testing.assert_allclose(gain, RECORDED[f"lqr_{role}.gain"], rtol=0, atol=1e-10)
