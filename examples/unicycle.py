"""A unicycle among obstacles, modelled in plain NumPy: do its four habits compose, and does a plan around them pay?

Everything is a function over NumPy batches, as somebody has it who does not know JAX. `diagnose` looks at the composed
agent first; then everybody drives the same courses. The table says how many model steps a decision takes.
"""

import gymnasium
import jax.numpy as jnp
import numpy as np
from style import SEEDS, show

import policychord as pc
from policychord.models import BlackBox, diagnose

pc.enable_x64()

LOW, HIGH = np.array([0.0, -2.0]), np.array([1.5, 2.0])  # speed in m/s, turning in rad/s
GOAL, RADIUS = np.array([6.0, 0.0]), 0.45
OBSTACLES = np.array([[1.5, 0.1], [3.0, -0.6], [3.2, 0.9], [4.6, 0.0]])


def move(x, u, k):
    """The next place and heading, 0.1 s later."""
    u = 0.1 * np.clip(u, LOW, HIGH)
    heading = x[..., 2] + u[..., 1]
    return np.stack([x[..., 0] + u[..., 0] * np.cos(heading), x[..., 1] + u[..., 0] * np.sin(heading), heading], -1)


def cost(x, u, k):
    """Distance to the goal, nearness of obstacles, turning."""
    gap = np.linalg.norm(x[..., None, :2] - OBSTACLES, axis=-1) - RADIUS
    near = np.sum(np.maximum(0.3 - gap, 0.0) ** 2, axis=-1)
    return 0.1 * np.linalg.norm(x[..., :2] - GOAL, axis=-1) + 20.0 * near + 0.002 * u[..., 1] ** 2


def towards(speed, offset=0.0):
    """A habit: turn so that the goal lies `offset` radians to the side."""

    def habit(x):
        away = GOAL - x[..., :2]
        error = (np.arctan2(away[..., 1], away[..., 0]) + offset - x[..., 2] + np.pi) % (2 * np.pi) - np.pi
        return np.clip(np.stack([np.full(error.shape, speed), 2.5 * error], axis=-1), LOW, HIGH)

    return pc.Policy(habit, 0.2, batched=True)


class Unicycle(gymnasium.Env):
    """The same world with a little noise."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (3,), np.float64)
    action_space = gymnasium.spaces.Box(LOW, HIGH, dtype=np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = np.array([0.0, self.np_random.uniform(-0.8, 0.8), self.np_random.uniform(-0.5, 0.5)])
        return self.x.copy(), {}

    def step(self, action):
        paid = cost(self.x, action, 0)
        self.x = move(self.x, action, 0) + 0.01 * self.np_random.normal(size=3)
        return self.x.copy(), -float(paid), False, False, {}


HABITS = {"go": towards(1.5), "left": towards(1.0, 0.8), "right": towards(1.0, -0.8), "creep": towards(0.3)}
WORLD, GRID = (BlackBox(move), BlackBox(cost)), pc.Grid(LOW, HIGH, [9, 13], saturates=True)
MODEL = pc.Cost(WORLD[1], predict=WORLD[0], cost_to_go=pc.Rollouts(HABITS, GRID, *WORLD, steps=20))
AGENT = pc.Composer(HABITS, MODEL, GRID, eps=0.05, selection="mean")


def play(agent, seeds=SEEDS or 30):
    return pc.gym.play(agent, Unicycle, seeds=seeds, steps=80)


if __name__ == "__main__":
    met = play(AGENT, range(1000, 1004)).state.observation[:, ::8].reshape(-1, 3)
    print(diagnose(AGENT, jnp.asarray(met), tried=8))
    around, posterior = AGENT.replace(gate="prior"), AGENT.replace(selection="posterior mean")
    rivals = {"posterior": posterior, "plan": pc.Planner(around, *WORLD), "commitment": pc.Commitment(around, *WORLD),
              "MPPI": pc.rivals.mppi(GRID, *WORLD)}  # fmt: skip
    show(pc.contest(AGENT, lambda agent: play(agent).total_reward, rivals=rivals), "unicycle")
