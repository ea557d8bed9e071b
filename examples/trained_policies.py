"""Acrobot-v1 from two Q-networks that were trained for a short while: what are their policies and critics good for?

Each is a primitive (a softmax of its values) and a critic. Composed are the policies, by rollouts
in Gymnasium's own equations; the rivals use the critics as costs instead, with generalised policy improvement (Barreto
et al., 2017) among them, or sequences of labels. It needs `pip install '.[sb3]'`.
"""

import gymnasium
import numpy as np
from stable_baselines3 import DQN
from style import SEEDS, show

import policychord as pc
from policychord.loops import Greedy
from policychord.models import BlackBox, Value

pc.enable_x64()

WORLD, TASK = gymnasium.make("Acrobot-v1").unwrapped, "Acrobot-v1"
ACTIONS, STEPS, TRAINED = pc.Finite(3), 25, 4_000 if SEEDS else 40_000


def move(x, u, k):
    """Where Gymnasium's equations lead from rows of observations."""
    angles = np.stack([np.arctan2(x[:, 1], x[:, 0]), np.arctan2(x[:, 3], x[:, 2]), x[:, 4], x[:, 5]], axis=1)
    after = np.empty_like(x)
    for i, (state, push) in enumerate(zip(angles, u, strict=True)):
        WORLD.state = state
        WORLD.step(int(push))
        after[i] = WORLD._get_ob()
    return after


def stage(x, u, k):
    """A step costs one until the tip is high enough, and less the higher it is."""
    height = -x[:, 0] - (x[:, 0] * x[:, 2] - x[:, 1] * x[:, 3])
    return np.where(height > 1.0, 0.0, 1.0 - 0.1 * height)


def trained(seed):
    network = DQN("MlpPolicy", TASK, seed=seed, learning_rate=1e-3, learning_starts=1000, exploration_fraction=0.3,
                  target_update_interval=250, device="cpu", policy_kwargs={"net_arch": [64]})  # fmt: skip
    return network.learn(TRAINED)


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
    play = lambda one: pc.gym.play(one, TASK, seeds=range(1000, 1000 + (SEEDS or 20)), steps=500).total_reward  # noqa: E731
    show(pc.contest(agent, play, rivals=rivals), "trained_policies")
