"""A unicycle among obstacles in plain NumPy, as somebody has it who does not know JAX: four habits, a model, a contest.

python -m benchmarks.unicycle --episodes 30
"""

import argparse

import gymnasium
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

import policychord as pc
from policychord.models import BlackBox

pc.enable_x64()  # before the grid is made

DT, SPREAD, STEPS = 0.1, 0.2, 20
GOAL, RADIUS = np.array([6.0, 0.0]), 0.45
OBSTACLES = np.array([[1.5, 0.1], [3.0, -0.6], [3.2, 0.9], [4.6, 0.0]])
LOW, HIGH = np.array([0.0, -2.0]), np.array([1.5, 2.0])  # speed in m/s, turning in rad/s


def move(x, u, k):
    """The next place and heading."""
    u = np.clip(u, LOW, HIGH)
    heading, along = x[..., 2] + DT * u[..., 1], DT * u[..., 0]
    return np.stack([x[..., 0] + along * np.cos(heading), x[..., 1] + along * np.sin(heading), heading], axis=-1)


def cost(x, u, k):
    """Distance to the goal, nearness of obstacles, turning."""
    gap = np.linalg.norm(x[..., None, :2] - OBSTACLES, axis=-1) - RADIUS
    near = np.sum(np.maximum(0.3 - gap, 0.0) ** 2, axis=-1)
    return 0.1 * np.linalg.norm(x[..., :2] - GOAL, axis=-1) + 20.0 * near + 0.002 * u[..., 1] ** 2


def towards(speed, offset=0.0):
    """A habit: turn so that the goal lies `offset` radians to the side, within the limits."""

    def habit(x):
        away = GOAL - x[..., :2]
        error = (np.arctan2(away[..., 1], away[..., 0]) + offset - x[..., 2] + np.pi) % (2 * np.pi) - np.pi
        return np.clip(np.stack([np.full(error.shape, speed), 2.5 * error], axis=-1), LOW, HIGH)

    return habit


HABITS = {"go": towards(1.5), "left": towards(1.0, 0.8), "right": towards(1.0, -0.8), "creep": towards(0.3)}
GRID = pc.Grid(LOW, HIGH, [9, 13], saturates=True)


def composer(habits=None, predict=None, stage=None, spread=SPREAD, steps=STEPS):
    """The habits composed, in NumPy over batches unless other parts are given."""
    ways = habits or {name: pc.Policy(habit, spread, batched=True) for name, habit in HABITS.items()}
    predict, stage = predict or BlackBox(move), stage or BlackBox(cost)
    later = pc.Rollouts(ways, GRID, predict, stage, steps=steps)
    return pc.Composer(ways, pc.Cost(stage, predict=predict, cost_to_go=later), GRID, eps=0.05, selection="mean")


class Unicycle(gymnasium.Env):
    """The same world, with a little noise."""

    observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float64)
    action_space = spaces.Box(LOW, HIGH, dtype=np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = np.array([0.0, self.np_random.uniform(-0.8, 0.8), self.np_random.uniform(-0.5, 0.5)])
        return self.x.copy(), {}

    def step(self, action):
        paid = cost(self.x, action, 0)
        self.x = move(self.x, action, 0) + 0.01 * self.np_random.normal(size=3)
        return self.x.copy(), -float(paid), False, False, {}


def main():
    """A diagnosis, and a contest with the changes that it asks for, in other episodes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=30)
    episodes = parser.parse_args().episodes
    agent = composer()
    trace = pc.gym.play(agent, Unicycle, seeds=range(1000, 1004), steps=80)
    met = trace.state.observation[trace.alive][::8]
    print(pc.models.diagnose(agent, jnp.asarray(met), tried=8))

    def play(one):
        return pc.gym.play(one, Unicycle, seeds=episodes, steps=80).total_reward

    asked_for = {"mode": agent.replace(selection="mode"), "40 steps": composer(steps=40),
                 "twice the spread": composer(spread=2 * SPREAD)}  # fmt: skip
    print(pc.contest(agent, play, rivals=asked_for))


if __name__ == "__main__":
    main()
