"""Pusher-v5: an arm with seven motors pushes a cylinder to a goal, by three habits that know nothing of each other.

The model is MuJoCo itself, behind `BlackBox`. Actions have seven dimensions, so they are drawn from the habits
(`Sampled`). Torques that bring a tip to a place can be averaged; gaits that are out of phase cannot, so an animal that
runs is no task for this. It needs `pip install '.[mujoco]'`.
"""

import gymnasium
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from contest import compare, contestants, draw, show
from style import save

import policychord as pc
from policychord.models import BlackBox

pc.enable_x64()

STEPS, POINTS, SHARPNESS = 16, 16, 10.0  # of a rollout; actions tried; nats for a unit of the task's cost
SHOULDER, OFFSETS = jnp.array([0.0, -0.6, 0.0]), (0.1, 0.4, 0.321)  # lengths of the arm along its own x axis
BENT = jnp.array([-0.3, 0.35, -1.5, -1.2, 1.5, 0.0, 0.0])  # elbow aside, so that it stays above the table
FRICTION = jnp.array([1.0, 1.0, 0.1, 0.1, 0.1, 0.1, 0.1])  # of the joints
GOAL = jnp.array([0.45, -0.05, -0.275])


def shown(env):
    """The environment with its whole state, positions and velocities of all joints, as the observation."""
    world, space = env.unwrapped, gymnasium.spaces.Box(-np.inf, np.inf, (22,))
    return gymnasium.wrappers.TransformObservation(
        env, lambda _: np.concatenate([world.data.qpos, world.data.qvel]), space
    )


def make():
    """Pusher-v5 as it is, but for what it shows."""
    return shown(gymnasium.make("Pusher-v5"))


ARM = gymnasium.make("Pusher-v5").unwrapped
DATA = mujoco.MjData(ARM.model)


def simulate(states, torques, k):
    """MuJoCo, row by row."""
    following = np.empty_like(states)
    for row, (state, torque) in enumerate(zip(states, torques, strict=True)):
        DATA.qpos[:], DATA.qvel[:], DATA.ctrl[:] = state[:11], state[11:], torque
        DATA.qacc_warmstart[:] = 0.0  # so that no row knows of the one before
        mujoco.mj_step(ARM.model, DATA, ARM.frame_skip)
        following[row, :11], following[row, 11:] = DATA.qpos, DATA.qvel
    return following


predict = BlackBox(simulate)


def turn(axis, angle):
    """The rotation about an axis of the body."""
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    rows = {
        "x": [[1.0, 0.0, 0.0], [0.0, cos, -sin], [0.0, sin, cos]],
        "y": [[cos, 0.0, sin], [0.0, 1.0, 0.0], [-sin, 0.0, cos]],
        "z": [[cos, -sin, 0.0], [sin, cos, 0.0], [0.0, 0.0, 1.0]],
    }[axis]
    return jnp.stack([jnp.stack([jnp.asarray(cell, float) for cell in row]) for row in rows])


def tip_of(joints):
    """Where the end of the arm is: three lengths along x, and the joints between them."""
    shoulder = turn("z", joints[0])
    upper = shoulder @ turn("y", joints[1]) @ turn("x", joints[2])
    fore = upper @ turn("y", joints[3])
    return SHOULDER + sum(length * part[:, 0] for length, part in zip(OFFSETS, (shoulder, upper, fore), strict=True))


def places(state):
    """(tip, cylinder)."""
    return tip_of(state[:7]), jnp.array([0.45, -0.05, -0.275]) + jnp.stack([state[8], state[7], 0.0 * state[7]])


def stage(state, torque, k):
    """What the task charges for a step, in nats."""
    tip, cylinder = places(state)
    far, near = (jnp.sqrt(jnp.sum(off**2) + 1e-12) for off in (cylinder - GOAL, cylinder - tip))
    return SHARPNESS * (far + 0.5 * near + 0.1 * jnp.sum(torque**2))


def price(state, k):
    """The same of a state, without the torques."""
    return stage(state, jnp.zeros(7), k)


def pull(state, target, speed=3.0):
    """Torques that move the tip to a place: speeds of the joints by damped least squares, the elbow bent meanwhile."""
    joints, spin = state[:7], state[11:18]
    jacobian = jax.jacfwd(tip_of)(joints)
    inverse = jacobian.T @ jnp.linalg.inv(jacobian @ jacobian.T + 0.01 * jnp.eye(3))
    way = target - tip_of(joints)
    way = way * jnp.minimum(1.0, 0.25 / jnp.sqrt(jnp.sum(way**2) + 1e-9))
    wanted = inverse @ (speed * way)
    wanted = wanted + (jnp.eye(7) - inverse @ jacobian) @ (1.5 * (BENT - joints))
    return jnp.clip(FRICTION * wanted + 0.3 * (wanted - spin), -2.0, 2.0)


def behind(state):
    """The place from which a push goes to the goal."""
    _, cylinder = places(state)
    way = GOAL - cylinder
    return cylinder - 0.12 * way / jnp.sqrt(jnp.sum(way**2) + 1e-6)


def around(state, k):
    """Go behind the cylinder, seen from the goal."""
    return pull(state, behind(state))


def push(state, k):
    """Go to the goal, whatever is in between."""
    return pull(state, GOAL)


def reach(state, k):
    """Go to the cylinder, from wherever the arm is."""
    return pull(state, places(state)[1])


def hand(state, k):
    """The rule that a person would write: go behind the cylinder first, then push."""
    tip, cylinder = places(state)
    way, gap = (GOAL - cylinder)[:2], (cylinder - tip)[:2]
    ahead = jnp.sum(way * gap) > 0.8 * jnp.sqrt(jnp.sum(way**2) * jnp.sum(gap**2))
    low = tip[2] < -0.2
    return jnp.where(ahead & low & (jnp.sum(gap**2) < 0.2**2), push(state, k), around(state, k))


if __name__ == "__main__":
    habits = {"reach": reach, "around": around, "push": push}
    composer = pc.Composer(
        {name: pc.Gaussian(habit, 0.3) for name, habit in habits.items()},
        pc.Cost(lambda x, u, k: SHARPNESS * 0.1 * jnp.sum(u**2), predict=predict, state_cost=price),
        pc.Sampled([-2.0] * 7, [2.0] * 7, count=POINTS), eps=0.05, selection="mean",
    )  # fmt: skip
    agents = contestants(
        composer, one_step=composer.model, predict=predict, stage=stage, steps=STEPS, hand=pc.Gaussian(hand, 0.3),
    )  # fmt: skip
    # habits were tried out in episodes 100 to 105, sharpness and horizon in episodes 0 to 9
    _, returns = compare(agents, make, range(1000, 1050))
    show("Pusher-v5", returns)
    save(draw("Pusher-v5", returns), "pusher")
