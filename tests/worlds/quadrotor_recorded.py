"""Replaying recorded flights: our physics and controllers under the recorded forces and noise."""

import jax
import jax.numpy as jnp
import numpy as np

from policychord.worlds.quadrotor.agents import controllers
from policychord.worlds.quadrotor.physics import HOVER, Quadrotor, QuadrotorView, _actuated, saturated, seen
from policychord.worlds.quadrotor.settings import QuadrotorSettings

SETTINGS = QuadrotorSettings()
ENV = Quadrotor(disturbance="stale-point", force_sd=0.0, thrust_sd=0.0)


def controller(name):
    """The controller with a recorded name, such as pid_baseline."""
    kind, role = name.split("_")
    return controllers(SETTINGS, "lqr" if kind == "lqr" else "pd")[role]


@jax.jit
def commands(pilot, states):
    """What our controller asks for when it sees the recorded states."""
    before = jnp.concatenate([jnp.zeros(1), states[:-1, 4]])

    def turn(memory, now):
        k, x, previous = now
        thrust, memory = pilot.act(QuadrotorView(x, previous), k, memory)
        return memory, thrust

    return jax.lax.scan(turn, pilot.start(), (jnp.arange(len(states)), states, before))[1]


@jax.jit
def flight(pilot, noise, forces):
    """(states, applied thrusts) of our drone under our controller, with recorded forces and thrust noise."""

    def turn(now, disturbances):
        state, memory = now
        k, noise, force = disturbances
        thrust, memory = pilot.act(ENV.observe(state), k, memory)
        applied = _actuated(thrust, noise)
        state = ENV.move(state, applied, force)
        return (state, memory), (seen(state), applied)

    start = ENV.reset(jax.random.key(0))
    _, (states, applied) = jax.lax.scan(turn, (start, pilot.start()), (jnp.arange(len(noise)), noise, forces))
    return jnp.concatenate([seen(start)[None], states]), applied


def noise_of(commands, applied):
    """The actuators' noise, as far as the limits let it be seen."""
    return applied - np.asarray(saturated(commands))


def total_cost(states, applied):
    error = np.asarray(states)[1:] - np.asarray(ENV.path)[1 : len(states)]
    weights = np.asarray(SETTINGS.cost.state)
    return float((weights * error**2).sum() + SETTINGS.cost.thrust * ((np.asarray(applied) - HOVER) ** 2).sum())
