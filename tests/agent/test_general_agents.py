"""Agents with other regularisers, products of experts, and agents as primitives of agents."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from policychord import Composer, Entropy, Outcome, Population, Tsallis, certify, replay, rollout, solve
from policychord.actions import Finite, Grid
from policychord.core.complexities import pool
from policychord.models import Cost
from policychord.primitives import Categorical, Gaussian, Table

from ..loops.parts import ARMS, CHOOSER, PENDULUM, SWINGER

X = jnp.array([0.4, -0.2])
LINE = Grid(-2.0, 2.0, 41)
weigh = eqx.filter_jit(lambda agent, x: agent.weigh(x, 0))


def price(x, u, k):
    return 2.0 * (u[0] - x[0]) ** 2


def gaussian(mean, sd=0.5):
    return Gaussian(lambda x, k: jnp.array([mean]), sd)


MEANS = (-1.5, -0.5, 0.5, 1.5)
BASE = Composer([gaussian(mean) for mean in MEANS], Cost(price), LINE, 0.5, selection="mean")


def test_a_sparse_agent_weighs_few_of_its_primitives():
    sparse = weigh(BASE.replace(regulariser=Tsallis(2.0)), X)
    assert Outcome(int(sparse.outcome)) is Outcome.CONVERGED
    assert (np.asarray(sparse.weights) == 0.0).any()
    assert not (np.asarray(weigh(BASE, X).weights) == 0.0).any()
    assert certify(sparse.problem, sparse.weights).gap <= 1e-10


def test_caps_hold():
    capped = weigh(BASE.replace(regulariser=Entropy(caps=0.4)), X)
    assert np.max(capped.weights) <= 0.4
    assert np.max(weigh(BASE, X).weights) > 0.4


def test_the_problem_it_poses_is_the_one_it_solves():
    agent = BASE.replace(regulariser=Tsallis(1.5))
    np.testing.assert_allclose(solve(agent.problem(X)).weights, weigh(agent, X).weights, atol=1e-9)


@pytest.mark.parametrize("regulariser", [Tsallis(2.0), Entropy(caps=0.6)])
def test_a_primitive_that_is_no_number_is_left_out(regulariser):
    broken = BASE.replace(primitives=[*BASE.primitives[:3], gaussian(np.nan)], regulariser=regulariser)
    with pytest.warns(UserWarning, match="left out"):
        found = broken.weigh(X)
    assert found.weights[3] == 0.0
    np.testing.assert_allclose(np.sum(found.weights), 1.0, atol=1e-12)


def test_loops_and_populations_take_them():
    sparse = SWINGER.replace(regulariser=Tsallis(1.5))
    trace = rollout(sparse, PENDULUM, steps=20, episodes=2)
    assert np.all(trace.outcome == Outcome.CONVERGED)
    assert np.max(trace.gap) <= 1e-10
    pair = Population([BASE.replace(regulariser=Tsallis(a)) for a in (1.2, 1.9)])
    decided = pair.decide(jax.random.key(0), jnp.stack([X, X]), 0, pair.start())
    for k, a in enumerate((1.2, 1.9)):
        expected = weigh(BASE.replace(regulariser=Tsallis(a)), X).weights
        np.testing.assert_allclose(decided.weights[k], expected, atol=1e-8)


@pytest.mark.parametrize(
    "changes",
    [{"regulariser": Tsallis(1.5, 0.4), "gate": "circuit"}, {"combine": "product", "gate": "flow"}],
)
def test_flow_and_circuit_find_the_weights_of_any_agent(changes):
    """Also where a primitive is no number, and from the signals that the last decision left."""
    dynamic, best = BASE.replace(**changes), BASE.replace(**(changes | {"gate": "equilibrium"}))
    decide = eqx.filter_jit(lambda agent, x, memory: agent.decide(jax.random.key(0), x, 0, memory))
    then = decide(dynamic, X, decide(dynamic, 2.0 * X, dynamic.start()).memory)
    np.testing.assert_allclose(then.weights, weigh(best, X).weights, atol=2e-5)
    assert then.outcome == Outcome.NOT_OPTIMISED
    assert then.certificate.gap < 1e-6
    broken = dynamic.replace(primitives=[*BASE.primitives[:3], gaussian(np.nan)])
    found = weigh(broken, X)
    assert found.weights[3] == 0.0
    np.testing.assert_allclose(np.sum(found.weights), 1.0, atol=1e-9)


# ------------------------------------------------------------------------------------ products


def test_a_product_acts_by_the_pooled_distribution():
    """Gaussians of one width: the product is the Gaussian at the weighted mean, with the same width."""
    fine = Grid(-6.0, 6.0, 601)
    agent = Composer([gaussian(m) for m in MEANS], Cost(price), fine, 0.3, selection="mean", combine="product")
    found = agent.weigh(X)
    assert Outcome(int(found.outcome)) is Outcome.CONVERGED
    mean = found.weights @ np.array(MEANS)
    expected = np.exp(-0.5 * ((np.asarray(fine.points)[:, 0] - mean) / 0.5) ** 2)
    np.testing.assert_allclose(found.mixture, expected / expected.sum(), atol=1e-12)
    np.testing.assert_allclose(agent.decide(jax.random.key(0), X).action, [mean], atol=1e-9)


def test_a_product_explains_recorded_choices():
    agent = CHOOSER.replace(combine="product")
    belief = ARMS.observe(ARMS.reset(jax.random.key(0)))
    weighed = agent.weigh(belief)
    np.testing.assert_allclose(weighed.mixture, pool(jnp.log(weighed.problem.pi), weighed.weights), rtol=1e-12)
    np.testing.assert_allclose(np.exp(agent.log_prob(agent.actions, belief, 0)), weighed.mixture, rtol=1e-12)


def test_the_local_direction_says_that_it_is_local():
    found = BASE.replace(combine="local product").decide(jax.random.key(0), X)
    assert Outcome(int(found.outcome)) is Outcome.LOCAL
    assert not found.optimal
    assert not found.certified


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"regulariser": Tsallis(3.0)}, "between 1"), ({"regulariser": Tsallis([1.0, 2.0])}, "Population"),
        ({"combine": "product", "selection": "dither"}, "all act as one"),
        ({"regulariser": Tsallis(2.0), "gate": "one-step"}, "one-step.*this agent has a regulariser: leave"),
        ({"combine": "local product", "gate": "flow"}, 'flow.*combine="local product" is not convex'),
        ({"combine": "product", "gate": "cheapest"}, 'cheapest.*this agent has combine="product": leave'),
        ({"combine": []}, r"combine = \[\]: use one of"), ({"gate": []}, r"gate = \[\]: use one of"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("without_type_checks")
def test_what_does_not_fit_is_said(changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        BASE.replace(**changes)


# ----------------------------------------------------------------------------------- hierarchy


def test_three_levels_under_jit_are_the_flat_computation():
    """A composer's column is the mixture it would act by, at every level."""
    pairs = [Composer([gaussian(a), gaussian(b)], Cost(price), LINE, 0.3) for a, b in ((-1.5, -0.5), (0.5, 1.5))]
    middle = Composer({"left": pairs[0], "right": pairs[1]}, Cost(price), LINE, 0.2)
    top = Composer({"team": middle, "alone": gaussian(0.0, 1.0)}, Cost(price), LINE, 0.1)
    columns = [weigh(pair, X).mixture for pair in pairs]
    given = weigh(middle, X)
    np.testing.assert_allclose(given.problem.pi, np.stack(columns, axis=-1), rtol=0, atol=1e-12)
    flat = given.weights[0] * columns[0] + given.weights[1] * columns[1]
    found = weigh(top, X)
    np.testing.assert_allclose(found.problem.pi[:, 0], flat, rtol=0, atol=1e-12)
    assert Outcome(int(found.outcome)) is Outcome.CONVERGED


def test_a_group_of_one_is_its_member():
    """A level with one primitive, or with twice the same, changes nothing."""
    alone = Composer({"only": BASE}, Cost(price), LINE, 0.3)
    twice = Composer({"one": BASE, "other": BASE}, Cost(price), LINE, 0.3)
    for agent in (alone, twice):
        np.testing.assert_allclose(weigh(agent, X).mixture, weigh(BASE, X).mixture, rtol=0, atol=1e-12)


def test_members_may_decide_on_another_grid():
    coarse = Composer([gaussian(m) for m in MEANS], Cost(price), Grid(-2.0, 2.0, 21), 0.5)
    above = Composer({"member": coarse, "other": gaussian(1.0)}, Cost(price), LINE, 0.3)
    found = weigh(above, X)
    np.testing.assert_allclose(np.sum(found.problem.pi, axis=0), 1.0, atol=1e-12)


def test_a_member_that_cannot_decide_is_left_out():
    lost = Composer({"a": Table([0.5, 0.5])}, Cost(lambda x, u, k: x[0] * jnp.nan), Finite(2), 0.1)
    group = Composer({"lost": lost, "fine": Categorical(lambda x, k: x)}, Cost([0.0, 1.0]), Finite(2), 0.1)
    found = weigh(group, X)
    np.testing.assert_allclose(found.weights, [0.0, 1.0], atol=1e-12)


def test_derivatives_pass_through_the_levels():
    def cost(goal):
        inner = Composer([gaussian(m) for m in MEANS], Cost(lambda x, u, k: (u[0] - goal) ** 2), LINE, 0.3)
        return Composer({"inner": inner, "rest": gaussian(0.0)}, Cost(price), LINE, 0.3).weigh(X).weights[0]

    step, both = 1e-5, jax.jit(jax.value_and_grad(cost))
    expected = (both(0.3 + step)[0] - both(0.3 - step)[0]) / (2 * step)
    np.testing.assert_allclose(both(0.3)[1], expected, rtol=1e-4)


def test_replay_weighs_a_hierarchy():
    group = Composer({"group": CHOOSER, "habit": Table([0.7, 0.3])}, Cost([0.0, 0.1]), Finite(2), 0.1)
    assert callable(replay)
    belief = ARMS.observe(ARMS.reset(jax.random.key(1)))
    np.testing.assert_allclose(np.sum(group.weigh(belief).mixture), 1.0, atol=1e-12)


def test_a_product_takes_logarithms_where_probabilities_underflow():
    """Two narrow Gaussians far apart: as a probability, each is exactly zero where the other is."""
    wide = Grid(-40.0, 40.0, 321)
    cost = Cost(lambda x, u, k: 0.5 * u[0] ** 2)
    agent = Composer([gaussian(-20.0), gaussian(20.0)], cost, wide, 1.0, selection="mean", combine="product")
    found = agent.weigh(X)
    assert np.asarray(found.problem.pi).min() == 0.0
    assert found.certificate.gap <= 1e-10
    np.testing.assert_allclose(found.weights, 0.5, atol=1e-6)  # the product of both is at zero, where the cost is least
    assert abs(float(agent.decide(jax.random.key(0), X).action[0])) < 1e-3


def test_an_expert_that_never_takes_an_action_has_no_weight_in_a_product():
    agent = Composer(
        [Table([0.5, 0.5]), Table([1.0, 0.0])], Cost(lambda x, u, k: 0.0 * u), Finite(2), 0.1, combine="product"
    )
    assert agent.weigh(X).weights.tolist() == [1.0, 0.0]
    assert weigh(agent, X).weights.tolist() == [1.0, 0.0]
