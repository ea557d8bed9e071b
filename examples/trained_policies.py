"""Three policies that Stable-Baselines3 trained on CartPole-v1 for a short while, with their own distributions.

PPO and A2C bring their categorical distributions, DQN the softmax of its values. It needs `pip install '.[sb3]'`.
"""

import jax
import jax.numpy as jnp
import torch
from cart_pole import predict, price
from contest import certain, compare, contestants, draw, show
from stable_baselines3 import A2C, DQN, PPO
from style import SEEDS, save

import policychord as pc

pc.enable_x64()
torch.set_num_threads(1)  # networks this small only wait for each other's threads

TRAINED = 4000 if SEEDS is None else 300  # steps in the environment, far too few to solve it
SIZES = {"net_arch": [32]}
SHARPNESS = 100.0  # nats for a unit of cost, of 1, 10 and 100 the best in episodes 500 to 515


def train():
    """Each with its usual settings, a small network and little experience."""
    common = {"policy_kwargs": SIZES, "seed": 0, "device": "cpu"}
    return {
        "PPO": PPO("MlpPolicy", "CartPole-v1", n_steps=256, **common).learn(TRAINED),
        "A2C": A2C("MlpPolicy", "CartPole-v1", **common).learn(TRAINED),
        "DQN": DQN("MlpPolicy", "CartPole-v1", learning_starts=100, **common).learn(TRAINED),
    }


def controller(model):
    """The same network in JAX: rollouts ask it thousands of times for a decision."""
    policy = model.policy
    if hasattr(policy, "q_net"):
        layers, last = list(policy.q_net.q_net), []
    else:
        layers, last = list(policy.mlp_extractor.policy_net), [policy.action_net]
    numbers = {torch.nn.Tanh: jnp.tanh, torch.nn.ReLU: jax.nn.relu}

    def label(state, k):
        for layer in [*layers, *last]:
            if isinstance(layer, torch.nn.Linear):
                state = jnp.asarray(layer.weight.detach().numpy()) @ state + jnp.asarray(layer.bias.detach().numpy())
            else:
                state = numbers[type(layer)](state)
        return jnp.argmax(state)

    return label


def sharp(state, k):
    """The price of a state in nats: too few of them, and the entropies of the policies set the weights."""
    return SHARPNESS * price(state, k)


if __name__ == "__main__":
    models = train()
    composer = pc.Composer(
        {name: pc.Policy(model, distribution="own") for name, model in models.items()},
        pc.Cost(predict=predict, state_cost=sharp), pc.Finite(2), eps=0.05, selection="mode",
    )  # fmt: skip
    agents = contestants(
        composer, one_step=composer.model, predict=predict, stage=lambda state, label, k: sharp(state, k),
        follow=[certain(controller(model)) for model in models.values()], steps=50,
    )  # fmt: skip
    _, returns = compare(agents, "CartPole-v1", range(50))
    show(f"CartPole-v1, policies after {TRAINED} steps of training", returns)
    save(draw("CartPole-v1, trained policies", returns), "trained_policies")
