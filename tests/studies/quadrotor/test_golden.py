"""Our drone and controllers against flights recorded from another simulator."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from policychord.envs.quadrotor import HOVER, LARGEST_THRUST, Quadrotor
from policychord.studies.quadrotor.agents import regulator

from .recorded import SETTINGS, commands, controller, flight, noise_of, total_cost

RECORDED = np.load(Path(__file__).parent / "golden" / "rollouts.npz")
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


def test_motors_cut_a_command_before_and_after_its_noise():
    """With noise that pulls down the command is cut first, with noise that pushes up the sum is cut again."""
    env = Quadrotor(thrust_sd=0.02, force_sd=0.0, state_weights=np.zeros(6), thrust_weight=1.0)
    start = env.reset(jax.random.key(0))
    keys = jax.random.split(jax.random.key(1), 50)
    noise = np.asarray(jax.vmap(lambda key: env.disturb(key, start.time, start.impulse_time)[0])(keys))
    paid = -np.asarray(jax.vmap(lambda key: env.step(key, start, jnp.full(2, 1.0), 0).reward)(keys))
    expected = np.sum((LARGEST_THRUST + np.minimum(noise, 0.0) - HOVER) ** 2, axis=1)
    np.testing.assert_allclose(paid, expected, rtol=1e-9)
    assert 0.2 < (noise < 0).mean() < 0.8
    thrusts = np.asarray(flight(controller("lqr_track"), np.full((300, 2), 1.0), CALM)[1])
    np.testing.assert_array_equal(thrusts, LARGEST_THRUST)


@pytest.mark.parametrize("role", ["baseline", "track", "stabilise"])
def test_lqr_gains_agree(role):
    gain, _ = regulator(getattr(SETTINGS, f"lqr_{role}"))
    np.testing.assert_allclose(gain, RECORDED[f"lqr_{role}.gain"], rtol=0, atol=1e-10)
