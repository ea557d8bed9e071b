"""Anybody's policy as a primitive: plain callables, and objects with Stable-Baselines3's `predict`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from policychord import Composer
from policychord.actions import Finite, Grid, Sampled
from policychord.models import Cost
from policychord.primitives import Gaussian, Policy

LINE = Grid(-2.0, 2.0, 21)
LABELS = Finite([3, 5, 9])
SEEN = np.array([[0.5, 1.0], [-0.2, 0.4], [3.0, 3.0]])


def steer(observation):
    """A plain NumPy policy: one observation in, one action out."""
    assert isinstance(observation, np.ndarray)
    assert observation.shape == (2,)
    return np.array([observation[0] - 0.1 * observation[1]])


def pick(observation):
    return 9 if observation[0] > 0 else 3


class Trained:
    """Something with Stable-Baselines3's signature that answers many observations at once."""

    def __init__(self, one, state=None):
        self.one, self.state, self.calls, self.certain = one, state, 0, set()

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        assert isinstance(observation, np.ndarray)
        self.calls += 1
        self.certain.add(deterministic)
        return np.array([self.one(each) for each in observation], dtype=np.float32), self.state


def expected_on(actions, seen):
    if actions is LINE:
        return Gaussian(np.clip(steer(seen), -2.0, 2.0), 0.3).log_prob(LINE, None, 0)
    return np.log(np.where(np.asarray(LABELS.points) == pick(seen), 0.7, 0.15))


CASES = {"grid": (LINE, steer), "labels": (LABELS, pick)}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("trained", [False, True])
def test_the_answer_with_a_spread_around_it(name, trained):
    actions, function = CASES[name]
    primitive = Policy(Trained(function) if trained else function, 0.3)
    expected = np.array([expected_on(actions, seen) for seen in SEEN])
    tolerance = {"atol": 1e-5} if trained else {"atol": 1e-12}  # trained policies answer in single precision

    def log_prob(seen):
        return primitive.log_prob(actions, seen, 0)

    np.testing.assert_allclose(log_prob(jnp.asarray(SEEN[0])), expected[0], **tolerance)
    np.testing.assert_allclose(jax.jit(log_prob)(SEEN[1]), expected[1], **tolerance)
    np.testing.assert_allclose(jax.jit(jax.vmap(log_prob))(SEEN), expected, **tolerance)
    _, scanned = jax.jit(lambda seen: jax.lax.scan(lambda carry, x: (carry, log_prob(x)), 0, seen))(SEEN)
    np.testing.assert_allclose(scanned, expected, **tolerance)


def test_a_batch_is_one_question_and_answers_are_deterministic():
    policy = Trained(steer)
    np.asarray(jax.jit(jax.vmap(lambda seen: Policy(policy, 0.3).log_prob(LINE, seen, 0)))(SEEN))
    assert policy.calls == 1
    assert policy.certain == {True}


def test_observe_makes_the_observation():
    primitive = Policy(steer, 0.3, observe=lambda state, k: jnp.stack([state["angle"], 1.0 * k]))
    found = primitive.log_prob(LINE, {"angle": 0.5}, 2)
    np.testing.assert_allclose(found, expected_on(LINE, np.array([0.5, 2.0])), atol=1e-12)


def test_answers_outside_the_grid_are_clipped():
    found = Policy(lambda seen: np.array([1e6]), 0.3).log_prob(LINE, jnp.zeros(2), 0)
    np.testing.assert_allclose(found, Gaussian(2.0, 0.3).log_prob(LINE, None, 0), atol=1e-12)


@pytest.mark.parametrize("outside", ["clip", "tail"])
def test_outside_is_that_of_a_gaussian(outside):
    found = Policy(lambda seen: np.array([2.2]), 0.3, outside=outside).log_prob(LINE, jnp.zeros(2), 0)
    expected = Gaussian([2.2], 0.3, outside=outside).log_prob(LINE, None, 0)
    np.testing.assert_allclose(found, expected, atol=1e-12)


FORMS = {
    "of the observation": (lambda x: x[:1], 0.5),
    "and of the step": (lambda x, k: x[:1] + k, 3.5),
    "with a default": (lambda x, gain=2.0: gain * x[:1], 1.0),
    "with the step as a default": (lambda x, k=0: x[:1] + k, 3.5),
}


@pytest.mark.parametrize("form", FORMS)
def test_policies_and_gaussians_call_functions_alike(form):
    function, expected = FORMS[form]
    wide, seen = Grid(-5.0, 5.0, 41), jnp.array([0.5, 1.0])
    for primitive in (Policy(function, 0.3), Gaussian(function, 0.3)):
        assert float(primitive.centre(wide, seen, 3)[0]) == expected
    rows = Policy(lambda x, k: x[:, :1] + k[:, None], 0.3, batched=True)
    found = jax.jit(jax.vmap(lambda x, k: rows.log_prob(wide, x, k)))(SEEN, jnp.arange(3))
    ours = [Gaussian([x[0] + k], 0.3).log_prob(wide, None, 0) for k, x in enumerate(SEEN)]
    np.testing.assert_allclose(found, ours, atol=1e-9)


def test_a_label_that_is_not_in_the_list_is_not_a_number():
    assert np.isnan(Policy(lambda seen: 4, 0.3).log_prob(LABELS, jnp.zeros(2), 0)).all()


def test_a_single_label_takes_all():
    np.testing.assert_allclose(Policy(lambda seen: 3, 0.3).log_prob(Finite([3]), jnp.zeros(2), 0), [0.0])


def test_sampled_actions_are_drawn_from_a_policy():
    """As from the Gaussian that stands for it, and the policy is asked once for a decision."""
    policy, box = Trained(lambda seen: [seen[0], 0.3, -0.2]), Sampled([-1.0] * 3, 1.0, count=64)
    other = Gaussian([0.4, -0.3, 0.1], 0.5)
    model = Cost(lambda x, u, k: 3.0 * jnp.sum((u - 0.2) ** 2))
    seen = jnp.array([0.5, 0.0])
    found = Composer({"trained": Policy(policy, 0.3), "other": other}, model, box, 0.2, selection="mean").compiled()(
        jax.random.key(0), seen
    )
    same = Composer({"trained": Gaussian([0.5, 0.3, -0.2], 0.3), "other": other}, model, box, 0.2, selection="mean")
    expected = same.compiled()(jax.random.key(0), seen)
    np.testing.assert_allclose(found.weights, expected.weights, atol=1e-5)
    np.testing.assert_allclose(found.action, expected.action, atol=1e-5)
    assert policy.calls == 1
    assert 0.05 < found.weights[0] < 0.95
    with pytest.raises(ValueError, match="leave squash out"):
        Policy(policy, 0.3).gaussian(Sampled([-1.0] * 3, 1.0, squash=True), seen, 0)


REFUSED = {
    "recurrent": (Trained(steer, state=(np.zeros(3),)), LINE, "the policy returned a state of its own.*pass state="),
    "too many numbers": (lambda seen: np.zeros(2), LINE, r"answered with shape \(1, 2\) to 1 observations: .*\(1,\)"),
    "between labels": (lambda seen: 3.5, LABELS, r"answered \[3.5\], but the actions are whole numbers"),
    "its own trouble": (lambda seen: int("three"), LABELS, "invalid literal for int"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_reach_the_user(name):
    """As they are without a trace; as the last line of JAX's report within one."""
    policy, actions, message = REFUSED[name]
    primitive = Policy(policy, 0.3)
    with pytest.raises(ValueError, match=message):
        primitive.log_prob(actions, jnp.zeros(2), 0)
    with pytest.raises(jax.errors.JaxRuntimeError, match=message):
        jax.block_until_ready(jax.jit(lambda seen: primitive.log_prob(actions, seen, 0))(np.zeros(2)))


COMPLAINTS = {
    "no policy": (lambda: Policy("a.zip", 0.1), r"policy is a str: pass an object with predict\(observation, ...\)"),
    "no spread": (lambda: Policy(steer, 0.0), "spread = 0.0: pass a positive number"),
    "certainty": (lambda: Policy(pick, 1.0).log_prob(LABELS, jnp.zeros(2), 0), "spread = 1.0: with labels"),
    "rows of predict": (lambda: Policy(Trained(steer), 0.1, batched=True), "batched belongs to a function"),
    "nowhere": (lambda: Policy(steer, 0.1, outside="cut"), "outside = 'cut': use 'clip'"),
    "many": (lambda: Policy(pick, [0.1, 0.2]).log_prob(LABELS, jnp.zeros(2), 0), "spread = .*one probability"),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPLAINTS)
def test_complaints_name_the_argument(name):
    make, message = COMPLAINTS[name]
    with pytest.raises(ValueError, match=message):
        make()


class OneByOne:
    """A `predict` that forgot that it is given many observations."""

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        return float(observation[0] > 0), None


def test_a_predict_that_cannot_take_a_batch_is_told_so():
    with pytest.raises(ValueError, match=r"failed on a batch of observations of shape \(1, 2\).*pass a function"):
        Policy(OneByOne(), spread=0.3).log_prob(LINE, SEEN[0], 0)
