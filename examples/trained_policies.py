"""Acrobot-v1 from two Q-networks that were trained for a short while: what are their policies and critics good for?

Each is a primitive (a softmax of its values) and a critic. Composed are the policies, by rollouts
in the task's equations; the rivals use the critics as costs instead, with generalised policy improvement (Barreto
et al., 2017) among them, or sequences of labels. It needs `pip install '.[sb3]'`.
"""

import numpy as np
import torch
from stable_baselines3 import DQN
from style import SEEDS, show

import policychord as pc
from policychord.loops import Greedy
from policychord.models import BlackBox, Value

pc.enable_x64()
torch.set_num_threads(1)

ACTIONS, STEPS, TRAINED = pc.Finite(3), 25, 4_000 if SEEDS else 40_000


def change(x, torque):
    """The equations of Gymnasium's Acrobot, for rows of two angles and their speeds."""
    a, b, v, w = x.T
    near, far = 3.5 + np.cos(b), 1.25 + 0.5 * np.cos(b)
    outer = 4.9 * np.sin(a + b)
    inner = 14.7 * np.sin(a) + outer - (0.5 * w**2 + v * w) * np.sin(b)
    second = (torque + far / near * inner - 0.5 * v**2 * np.sin(b) - outer) / (1.25 - far**2 / near)
    return np.stack([v, w, -(far * second + inner) / near, second], axis=1)


def move(x, u, k):
    """The next observations, 0.2 s later, by a Runge-Kutta step."""
    y, torque = np.stack([np.arctan2(x[:, 1], x[:, 0]), np.arctan2(x[:, 3], x[:, 2]), x[:, 4], x[:, 5]], 1), u - 1.0
    first = change(y, torque)
    second = change(y + 0.1 * first, torque)
    third = change(y + 0.1 * second, torque)
    y = y + (first + 2 * second + 2 * third + change(y + 0.2 * third, torque)) / 30
    v, w = np.clip(y[:, 2], -4 * np.pi, 4 * np.pi), np.clip(y[:, 3], -9 * np.pi, 9 * np.pi)
    return np.stack([np.cos(y[:, 0]), np.sin(y[:, 0]), np.cos(y[:, 1]), np.sin(y[:, 1]), v, w], axis=1)


def stage(x, u, k):
    """A step costs one until the tip is high enough, and less the higher it is."""
    height = -x[:, 0] - (x[:, 0] * x[:, 2] - x[:, 1] * x[:, 3])
    return np.where(height > 1.0, 0.0, 1.0 - 0.1 * height)


def trained(seed):
    settings = {"learning_rate": 1e-3, "learning_starts": 1000, "exploration_fraction": 0.3, "device": "cpu"}
    network = DQN("MlpPolicy", "Acrobot-v1", seed=seed, target_update_interval=250, **settings)
    return network.learn(TRAINED)


def play(agent):
    return pc.gym.play(agent, "Acrobot-v1", seeds=range(1000, 1000 + (SEEDS or 20)), steps=300).total_reward


if __name__ == "__main__":
    networks = {f"DQN {seed}": trained(seed) for seed in (0, 1)}
    parts = {name: pc.Policy(network, distribution="own") for name, network in networks.items()}
    world, critics = (BlackBox(move), BlackBox(stage)), list(networks.values())
    later = pc.Rollouts(parts, ACTIONS, *world, steps=STEPS)
    agent = pc.Composer(parts, pc.Cost(world[1], predict=world[0], cost_to_go=later), ACTIONS, eps=0.05)
    budget = {"steps": STEPS, "samples": ACTIONS.size * len(parts)}
    by_critics = pc.Cost(world[1], predict=world[0], cost_to_go=Value(critics))
    rivals = {
        "posterior": agent.replace(selection="posterior"),
        "best action by both critics (GPI)": Greedy(pc.Cost(Value(critics)), ACTIONS),
        "best action, one step and critics": Greedy(by_critics, ACTIONS),
        "composed by critics": agent.replace(model=by_critics),
        "commitment": pc.Commitment(agent, *world, **budget),
        "random shooting": pc.rivals.random_shooting(ACTIONS, *world, **budget, hold=5),
    }
    show(pc.contest(agent, play, rivals=rivals), "trained_policies")
