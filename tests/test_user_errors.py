"""Errors of functions that users wrote: one sentence that names the part and the remedy, the original as its cause."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from policychord import Composer, rollout
from policychord.actions import Grid, Sampled
from policychord.models import Cost
from policychord.primitives import Gaussian, Policy

LINE = Grid(-1.0, 1.0, 5)
GOOD = Gaussian([0.0], 0.5)
price = lambda x, k: jnp.sum(x**2)  # noqa: E731


class Unhashable:
    __hash__ = None

    def __call__(self, x, k):
        return x


def agent(predict=lambda x, u, k: x + u, primitive=GOOD, **options):
    return Composer([primitive], Cost(predict=predict, state_cost=price), LINE, 0.3, **options)


def failing(policy_observation):
    raise KeyError("no such weight")


@pytest.mark.parametrize(
    ("make", "message", "cause"),
    [
        (lambda: agent(lambda x, u, k: np.sin(x + u)), "predict uses NumPy .* models.BlackBox", Exception),
        (lambda: agent(lambda x, u, k: x if u[0] > 0 else -x), "predict needs a number .* jnp.where", Exception),
        (lambda: agent(lambda x, u, k: x @ jnp.ones((3, 3))), r"predict failed \(TypeError.*shape \(1,\)", TypeError),
        (lambda: agent(lambda x, u: x), "predict is called with 3 arguments, which it does not accept", TypeError),
        (
            lambda: agent(primitive=Gaussian(lambda: 0.0, 0.3)),
            r"^primitives\['primitive 0'\]: mean is called with 1 arguments",
            TypeError,
        ),
        (
            lambda: agent(primitive=Gaussian(lambda x, k: x["no"], 0.3)),
            r"^primitives\['primitive 0'\]: mean failed",
            Exception,
        ),
        (
            lambda: agent(primitive=Policy(failing, 0.3)),
            r"^primitives\['primitive 0'\]: the policy failed .KeyError",
            KeyError,
        ),
        (lambda: agent(primitive=Gaussian(Unhashable(), 0.3)), "mean is a Unhashable that cannot be hashed", TypeError),
    ],
)
def test_one_sentence_with_its_cause(make, message, cause):
    with pytest.raises(ValueError, match=message) as told:
        make().decide(jax.random.key(0), jnp.zeros(1))
    assert isinstance(told.value.__cause__, cause)
    assert "\n" not in str(told.value)


@pytest.mark.usefixtures("without_type_checks")
def test_a_gymnasium_environment_in_rollout():
    with pytest.raises(ValueError, match=r"rollout compiles one of policychord.worlds.*policychord\.gym\.play"):
        rollout(agent(), gymnasium.make("Pendulum-v1"), steps=2)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"predict": lambda x, u, k: x + jnp.nan}, "the model's cost is not a number here"),
        ({"eps": lambda x, k: jnp.nan}, "eps is not a number here"),
    ],
)
def test_a_decision_without_numbers_warns_and_names_the_culprit(options, said):
    told = {"predict": lambda x, u, k: x + u} | options
    eps = told.pop("eps", 0.3)
    one = Composer([GOOD], Cost(predict=told["predict"], state_cost=price), LINE, eps)
    with pytest.warns(UserWarning, match=said):
        decision = one.decide(jax.random.key(0), jnp.zeros(1))
    assert np.isinf(decision.certificate.gap)


def test_an_error_says_which_primitive_it_is():
    """Of two controllers, in a compiled loop and with sampled actions too."""
    parts = {"stay": GOOD, "go": Gaussian(lambda x, k: jnp.zeros(3), 0.3)}
    for actions in (LINE, Sampled(-1.0, 1.0)):
        one = Composer(parts, Cost(lambda x, u, k: 0.0), actions, 0.3)
        for decide in (one.decide, one.compiled()):
            with pytest.raises(ValueError, match=r"^primitives\['go'\]: mean\(observation, k\) has shape \(3,\)"):
                decide(jax.random.key(0), jnp.zeros(1))
