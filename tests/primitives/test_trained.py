"""Policies of the real Stable-Baselines3 with their own distributions, judged by their own samples and densities.

They are no dependencies of ours: these tests run where somebody has installed them.
"""

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces
from scipy.stats import norm

pytest.importorskip("stable_baselines3", reason="stable-baselines3 is not installed, and need not be")

import torch
from stable_baselines3 import A2C, DQN, PPO, SAC, TD3

from policychord.actions import Finite, Grid, Sampled
from policychord.agent import Composer
from policychord.models import Cost, Rollouts
from policychord.primitives import Gaussian, Policy

torch.set_num_threads(1)
SEEN = np.array([[0.5, 0.1, -0.3], [-0.2, 0.9, 1.4], [1.0, 0.0, 0.0]], dtype=np.float32)
LINE = Grid(-2.0, 2.0, 41)
PLANE = Grid([-1.0, -2.0], [1.0, 2.0], [21, 31])


class Still(gymnasium.Env):
    """Three numbers to look at, and nothing happens."""

    def __init__(self, action_space):
        self.observation_space, self.action_space = spaces.Box(-2.0, 2.0, (3,)), action_space

    def reset(self, *, seed=None, options=None):
        return np.zeros(3, np.float32), {}

    def step(self, action):
        return np.zeros(3, np.float32), 0.0, False, False, {}


TORQUE = spaces.Box(-2.0, 2.0, (1,))
PLANAR = spaces.Box(np.array([-1, -2], np.float32), np.array([1, 2], np.float32))


def untrained(kind, action_space, **options):
    """Networks as they are drawn, with a spread that is not one everywhere."""
    options = {"seed": 3, "device": "cpu", "policy_kwargs": {"net_arch": [16]}} | options
    model = kind("MlpPolicy", Still(action_space), **options)
    for name, parameter in model.policy.named_parameters():
        if name == "log_std" and parameter.ndim == 1:
            torch.nn.init.constant_(parameter, -0.5)
        elif name.endswith(("action_net.weight", "mu.weight", "q_net.2.weight")):
            torch.nn.init.normal_(parameter, std=0.4)
    return model


def asked(model, actions, **options):
    primitive = Policy(model, distribution="own", **options)
    together = jax.jit(jax.vmap(lambda seen: primitive.log_prob(actions, seen, 0)))(SEEN)
    np.testing.assert_allclose(together[0], primitive.log_prob(actions, jnp.asarray(SEEN[0]), 0), atol=1e-6, rtol=1e-6)
    np.testing.assert_allclose(np.exp(together).sum(axis=1), 1.0, atol=1e-12)
    inside = eqx.filter_jit(lambda actions, seen: primitive.log_prob(actions, seen, 0))  # as in a composer
    np.testing.assert_allclose(together[1], inside(actions, SEEN[1]), atol=1e-6, rtol=1e-6)  # networks are float32
    return np.asarray(together)


@pytest.mark.parametrize("kind", [PPO, A2C])
def test_labels(kind):
    model = untrained(kind, spaces.Discrete(4))
    with torch.no_grad():
        expected = model.policy.get_distribution(torch.as_tensor(SEEN)).distribution.probs.numpy()
    assert np.ptp(expected, axis=0).max() > 0.05
    np.testing.assert_allclose(np.exp(asked(model, Finite(4))), expected, atol=1e-6)
    # of some of the labels only, the others are left out
    kept = expected[:, [1, 3]] / expected[:, [1, 3]].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(np.exp(asked(model, Finite([1, 3]))), kept, atol=1e-6)


def test_labels_that_begin_elsewhere():
    model = untrained(PPO, spaces.Discrete(3, start=5))
    with torch.no_grad():
        expected = model.policy.get_distribution(torch.as_tensor(SEEN)).distribution.probs.numpy()
    np.testing.assert_allclose(np.exp(asked(model, Finite([7, 5, 6]))), expected[:, [2, 0, 1]], atol=1e-6)


@pytest.mark.parametrize("temperature", [None, 0.3])
def test_values_become_a_softmax(temperature):
    model = untrained(DQN, spaces.Discrete(4), buffer_size=10)
    with torch.no_grad():
        values = model.policy.q_net(torch.as_tensor(SEEN)).double() / (temperature or 1.0)
    found = asked(model, Finite(4), spread=temperature)
    np.testing.assert_allclose(found, torch.log_softmax(values, -1).numpy(), atol=1e-6)


@pytest.mark.parametrize("kind", [PPO, A2C])
@pytest.mark.parametrize(("space", "grid"), [(TORQUE, LINE), (PLANAR, PLANE)], ids=["line", "plane"])
def test_a_gaussian_cut_to_the_limits(kind, space, grid):
    """A point has the probability that an action of the policy, as `predict` cuts it, is nearest to it."""
    model = untrained(kind, space)
    with torch.no_grad():
        inner = model.policy.get_distribution(torch.as_tensor(SEEN)).distribution
    found = np.exp(asked(model, grid)).reshape(len(SEEN), *(len(axis) for axis in grid.axes))
    for i in range(space.shape[0]):
        axis = np.asarray(grid.axes[i])
        below = norm(inner.mean.numpy()[:, i], inner.stddev.numpy()[:, i]).cdf(((axis[1:] + axis[:-1]) / 2)[:, None])
        expected = np.diff(below, axis=0, prepend=0.0, append=1.0).T
        others = tuple(1 + j for j in range(space.shape[0]) if j != i)
        np.testing.assert_allclose(found.sum(axis=others), expected, atol=1e-6)


def test_a_squashed_gaussian_is_what_is_sampled():
    model = untrained(SAC, TORQUE, buffer_size=10)
    found = np.exp(asked(model, Grid(-2.0, 2.0, 9)))
    torch.manual_seed(0)
    actions, _ = model.predict(np.repeat(SEEN[:1], 40_000, axis=0), deterministic=False)
    nearest = np.rint((actions[:, 0] + 2.0) / 0.5).astype(int)
    frequency = np.bincount(nearest, minlength=9) / len(nearest)
    assert frequency.min() > 0.005
    np.testing.assert_allclose(found[0], frequency, atol=5 * np.sqrt(0.25 / len(nearest)))


def test_a_squashed_gaussian_on_points_has_its_density():
    model = untrained(SAC, PLANAR, buffer_size=10)
    points = np.array([[0.2, -1.9], [-0.7, 0.4], [0.0, 1.2], [0.95, 0.0]])
    found = asked(model, Finite(points))
    seen = torch.as_tensor(SEEN)
    with torch.no_grad():
        mean, log_sd, _ = model.policy.actor.get_action_dist_params(seen)
        shown = torch.as_tensor(points / [1.0, 2.0], dtype=torch.float32)
        own = model.policy.actor.action_dist.proba_distribution(mean[:1], log_sd[:1])
        density = own.log_prob(shown).double().numpy()
    np.testing.assert_allclose(found[0], density - np.log(np.exp(density).sum()), atol=2e-5, rtol=1e-6)


@pytest.mark.parametrize("mean", [0.0, 1.9, 50.0, -1e6])
def test_cells_share_everything_however_far_out_the_mean_is(mean):
    model = untrained(PPO, TORQUE)
    torch.nn.init.constant_(model.policy.action_net.bias, mean)
    torch.nn.init.constant_(model.policy.action_net.weight, 0.0)
    found = np.exp(asked(model, LINE))
    assert np.argmax(found[0]) == np.argmin(np.abs(np.asarray(LINE.points)[:, 0] - mean)) or abs(mean) > 1


SIX, MORE = spaces.Box(-2.0, 2.0, (6,)), {"buffer_size": 10}


@pytest.mark.parametrize(("kind", "squash"), [(PPO, False), (SAC, True)])
def test_in_six_dimensions_actions_are_drawn_from_policies(kind, squash):
    """A policy among primitives of which one is the same Gaussian: it gets the same weight, and acts as it would."""
    model = untrained(kind, SIX, **(MORE if squash else {}))
    box = Sampled([-2.0] * 6, 2.0, squash=squash, count=64)
    with torch.no_grad():
        seen = torch.as_tensor(SEEN[:1])
        if squash:
            mean, log_sd, _ = model.policy.actor.get_action_dist_params(seen)
            sd = log_sd.exp()
        else:
            inner = model.policy.get_distribution(seen).distribution
            mean, sd = inner.mean, inner.stddev
    copy = Gaussian(mean[0].double().numpy(), sd[0].double().numpy(), outside="tail")
    parts = {"policy": Policy(model, distribution="own"), "copy": copy, "other": Gaussian([0.2] * 6, 0.5)}
    agent = Composer(parts, Cost(lambda x, u, k: jnp.sum((u - 0.3) ** 2)), box, 0.5, selection="mean")
    weights = np.asarray(agent.compiled()(jax.random.key(0), jnp.asarray(SEEN[0])).weights)
    assert weights[0] == pytest.approx(weights[1], rel=1e-4)
    inside = eqx.filter_jit(lambda agent, seen: agent.weigh(seen).weights)(agent, jnp.asarray(SEEN[0]))  # as in `play`
    np.testing.assert_allclose(inside, weights, atol=1e-6)
    assert 0 < weights[2] < 1
    # rollouts follow it by the action that it would take
    rollouts = Rollouts({"policy": parts["policy"]}, box, lambda x, u, k: x, lambda x, u, k: jnp.sum(u), steps=1)
    expected, _ = model.predict(SEEN[0], deterministic=True)
    assert float(rollouts(jnp.asarray(SEEN[0]), 0)) == pytest.approx(expected.sum(), abs=1e-4)


def test_noise_that_follows_the_state():
    """gSDE: PPO and SAC with a spread that is a function of the state."""
    for kind, more in ((PPO, {}), (SAC, {"buffer_size": 10})):
        asked(untrained(kind, TORQUE, use_sde=True, **more), LINE)


def test_a_policy_taken_out_of_its_algorithm_is_the_same():
    model = untrained(PPO, TORQUE)
    np.testing.assert_array_equal(asked(model, LINE), asked(model.policy, LINE))


REFUSED = {
    "no distribution": (lambda: Policy(untrained(TD3, TORQUE, **MORE), distribution="own"), "policy is a TD3 .*spread"),
    "no network": (lambda: Policy(lambda seen: 0, distribution="own"), "policy is a function"),
    "several labels": (
        lambda: Policy(untrained(PPO, spaces.MultiBinary(2)), distribution="own"),
        "for labels or for numbers between limits",
    ),
    "a spread besides": (lambda: Policy(untrained(PPO, TORQUE), 0.3, distribution="own"), "spread = 0.3: PPO has a"),
    "neither": (lambda: Policy(untrained(PPO, TORQUE)), "spread = nan: pass a positive number, or distribution='own'"),
    "labels on a line": (
        lambda: Policy(untrained(PPO, spaces.Discrete(2)), distribution="own").log_prob(LINE, SEEN[0], 0),
        r"chooses among 2 labels from 0 on.*Finite\(2\)",
    ),
    "labels that are drawn": (
        lambda: Policy(untrained(PPO, spaces.Discrete(2)), distribution="own").gaussian(Sampled(dim=1), SEEN[0], 0),
        r"Sampled actions are numbers: Finite\(2\)",
    ),
    "a squashed policy in an open box": (
        lambda: Policy(untrained(SAC, TORQUE, **MORE), distribution="own").gaussian(Sampled(-2.0, 2.0), SEEN[0], 0),
        r"squashes its actions into low = \[-2.0\], high = \[2.0\]: use Sampled with these and squash=True",
    ),
    "a policy that does not squash": (
        lambda: Policy(untrained(PPO, TORQUE), distribution="own").gaussian(
            Sampled(-2.0, 2.0, squash=True), SEEN[0], 0
        ),
        "use Sampled without squash",
    ),
    "a line in a plane": (
        lambda: Policy(untrained(PPO, TORQUE), distribution="own").log_prob(PLANE, SEEN[0], 0),
        "acts with 1 numbers, but the grid has 2 axes",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    make, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        make()
