"""Record flights of crazyflow's first-principles model in float64, for the test that replays them.

python record_crazyflie.py tests/envs/crazyflie.npz

Run by hand, in an environment of its own with crazyflow 0.4.0 and jax 0.10.1; Policychord needs neither for this.
Eight drones that move at random get random commands and forces for a second; every fifth decision is kept.
"""

import os
import sys

os.environ["SCIPY_ARRAY_API"] = "1"  # crazyflow asks for it before SciPy is loaded

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
from crazyflow.sim import Sim  # noqa: E402

WORLDS, DECISIONS, HELD = 8, 50, 10  # physics steps of 2 ms in a decision
HOVERING = 15899.876687339  # rpm of a rotor that carries a quarter of the drone


def doubles(tree):
    """The same in float64: crazyflow's defaults are float32 whatever JAX is told."""
    return jax.tree.map(lambda leaf: leaf.astype(jnp.float64) if leaf.dtype == jnp.float32 else leaf, tree)


def main() -> None:
    rng = np.random.default_rng(2026)
    sim = Sim(n_worlds=WORLDS, dynamics="first_principles", control="attitude", freq=500, attitude_freq=500)
    velocity = rng.normal(0, 0.5, (WORLDS, 3))
    limits = np.array([[-0.4, -0.4, -1.6, 0.2], [0.4, 0.4, 1.6, 0.7]])  # roll, pitch, turn, thrust
    action = rng.uniform(*limits, (WORLDS, DECISIONS, 4))
    force = rng.normal(0, 0.05, (WORLDS, DECISIONS, 3))
    begin = sim.data.states.replace(
        pos=jnp.tile(jnp.asarray([0.0, 0.0, 1.5]), (WORLDS, 1, 1)),
        vel=jnp.asarray(velocity[:, None]),
        rotor_vel=jnp.full((WORLDS, 1, 4), HOVERING),
    )
    sim.data = doubles(sim.data.replace(states=begin))
    heading, states = np.zeros(WORLDS), []
    for k in range(DECISIONS):
        heading = heading + 0.02 * action[:, k, 2]  # it is told a heading, we a turn
        command = np.stack([action[:, k, 0], action[:, k, 1], heading, action[:, k, 3]], axis=-1)
        sim.data = sim.data.replace(states=sim.data.states.replace(force=jnp.asarray(force[:, k][:, None])))
        sim.attitude_control(jnp.asarray(command[:, None]))
        sim.step(HELD)
        now = sim.data.states
        parts = (now.pos, now.quat, now.vel, now.ang_vel, now.rotor_vel)
        states.append(np.concatenate([np.asarray(part)[:, 0] for part in parts], axis=-1))
    kept = np.stack(states, axis=1)[:, 4::5]
    np.savez_compressed(sys.argv[1], velocity=velocity, action=action, force=force, states=kept)
    print(f"Wrote {sys.argv[1]}: {kept.shape[0]} flights, {kept.shape[1]} states of {kept.shape[2]} numbers each.")


if __name__ == "__main__":
    main()
