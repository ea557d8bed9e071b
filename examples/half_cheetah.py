"""HalfCheetah-v5 at a commanded speed: do two trained gaits and a brake compose, with MuJoCo itself as the model?

Each gait is a linear policy, trained for one speed by random search (Mania et al., 2018) in half a minute; the command
is another speed, and changes halfway. It needs `pip install '.[mujoco]'`.
"""

import gymnasium
import mujoco
import numpy as np
from style import SEEDS, show

import policychord as pc
from policychord.models import BlackBox

pc.enable_x64()

STEPS, HORIZON, COUNT = 100, 15, 12
SCALE = np.r_[np.ones(8), np.full(9, 0.1)]  # of places and speeds, as a gait sees them
CHEETAH = gymnasium.make("HalfCheetah-v5").unwrapped


def command(k):
    return np.where(np.asarray(k) < STEPS // 2, 1.5, 0.5)  # the speed that is asked for, in m/s


def move(x, u, k):
    """Where MuJoCo goes from rows of observations, which hold all of the state but the distance covered."""
    data, after = CHEETAH.data, np.empty_like(x)
    for i, (row, torque) in enumerate(zip(x, u, strict=True)):
        data.qpos[:], data.qvel[:], data.ctrl[:], data.qacc_warmstart[:] = np.r_[0.0, row[:8]], row[8:], torque, 0.0
        mujoco.mj_step(CHEETAH.model, data, nstep=CHEETAH.frame_skip)
        after[i] = np.r_[data.qpos[1:], data.qvel]
    return after


def act(gait, x):
    return np.clip((x * SCALE) @ gait.T, -1.0, 1.0)


def train(speed):
    """Steps along the differences of pairs of episodes, the best half of eight pairs."""
    rng, gait = np.random.default_rng(0), np.zeros((6, 17))
    for i in range(10 if SEEDS else 200):
        tried, costs = rng.normal(size=(8, 6, 17)), np.zeros((8, 2))
        for pair, side in np.ndindex(8, 2):
            x = 0.1 * np.random.default_rng(i).normal(size=(1, 17))
            for k in range(150):
                x = move(x, act(gait + (0.15, -0.15)[side] * tried[pair], x), k)
                costs[pair, side] += abs(x[0, 8] - speed) / 150
        best = np.argsort(costs.min(axis=1))[:4]
        slope = np.einsum("i,ijk->jk", costs[best, 1] - costs[best, 0], tried[best]) / 4
        gait = gait + 0.1 * slope / (costs[best].std() + 1e-6)
    return pc.Policy(lambda x: act(gait, x), 0.2, batched=True)


class Commanded(gymnasium.Wrapper):
    def reset(self, **options):
        self.k = -1
        return self.env.reset(**options)

    def step(self, action):
        seen, _, _, _, info = self.env.step(action)
        self.k += 1
        return seen, -abs(info["x_velocity"] - float(command(self.k))), False, False, {}


def play(one):
    world = lambda: Commanded(gymnasium.make("HalfCheetah-v5"))  # noqa: E731
    return pc.gym.play(one, world, seeds=SEEDS or 12, steps=STEPS).total_reward


if __name__ == "__main__":
    brake = pc.Policy(lambda x: -np.clip(0.1 * x[:, 11:], -1.0, 1.0), 0.2, batched=True)
    gaits = {"slow": train(1.0), "fast": train(3.0), "brake": brake}
    world = BlackBox(move), BlackBox(lambda x, u, k: 10.0 * np.abs(x[:, 8] - command(k)))  # nats
    actions = pc.Sampled([-1.0] * 6, [1.0] * 6, count=COUNT)
    model = pc.Cost(world[1], predict=world[0], cost_to_go=pc.Rollouts(gaits, actions, *world, steps=HORIZON))
    agent = pc.Composer(gaits, model, actions, eps=0.05, selection="mean")
    budget = {"steps": HORIZON, "samples": COUNT * len(gaits)}  # as many simulated steps as the composer
    plans = {"plan": pc.Planner, "commitment": pc.Commitment}
    rivals = {name: kind(agent.replace(gate="prior"), *world, **budget) for name, kind in plans.items()}
    rivals["posterior"] = agent.replace(selection="posterior mean")
    rivals["MPPI"] = pc.rivals.mppi(actions, *world, **budget)
    show(pc.contest(agent, play, rivals=rivals), "half_cheetah")
