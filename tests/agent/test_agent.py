"""Composer: the problem it builds, the weights it finds, and the ways to make an agent."""

import subprocess
import sys
import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from policychord import Composer, Outcome, certify, problem, solve
from policychord.actions import Finite, Grid
from policychord.gym import Predictor
from policychord.loops import replay, rollout, to_dataset
from policychord.models import Cost, Reference, Sum
from policychord.population import Groups, Population
from policychord.primitives import Gaussian, Table
from policychord.worlds import Pendulum

LINE = Grid(-2.0, 2.0, 41)
TORQUE = np.asarray(LINE.points)[:, 0]
X, K = jnp.array([0.7, -0.3]), 4


def push(x, k):
    return x[:1] + 0.1 * k


def pull(x, k):
    return -2.0 * x[1:]


def price(x, u, k):
    return (x[0] + 0.3 * u[0]) ** 2 + 0.1 * k


BASE = Composer({"push": Gaussian(push, 0.3), "pull": Gaussian(pull, 0.5)}, Cost(price), LINE, 0.1, prior=[0.3, 0.7])
build = eqx.filter_jit(lambda agent, x, k: agent.problem(x, k))
weigh = eqx.filter_jit(lambda agent, x, k, memory=None: agent.weigh(x, k, memory))
decide = eqx.filter_jit(lambda agent, key, x, k, memory=None: agent.decide(key, x, k, memory))


def by_hand(eps=0.1, prior=(0.3, 0.7)):
    pi = np.exp(-0.5 * ((TORQUE[:, None] - np.array([1.1, 0.6])) / np.array([0.3, 0.5])) ** 2)
    return problem(pi=pi / pi.sum(0), action_cost=(0.7 + 0.3 * TORQUE) ** 2 + 0.4, eps=eps, prior=np.array(prior))


def assert_same_problem(found, expected):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def test_builds_the_problem_of_a_state():
    assert_same_problem(BASE.problem(X, K), by_hand())
    assert_same_problem(build(BASE, X, K), by_hand())
    assert BASE.names == ("push", "pull")
    np.testing.assert_allclose(BASE.terms(X, K)["action"], by_hand().action_cost, rtol=1e-14)


def test_primitives_that_are_not_products_build_the_same_problem():
    slow = BASE.replace(primitives={"push": Gaussian(push, 0.3), "pull": Table(np.full(41, 1 / 41))})
    assert BASE.by_axes
    assert not slow.by_axes
    pi = np.stack([by_hand().pi[:, 0], np.full(41, 1 / 41)], axis=-1)
    assert_same_problem(build(slow, X, K), by_hand()._replace(pi=pi))


def test_more_primitives_join_by_name_and_one_takes_the_others_place():
    grown = BASE.with_primitives(idle=Table(np.full(41, 1 / 41)))
    assert grown.names == (*BASE.names, "idle")
    np.testing.assert_allclose(build(grown, X, K).pi[:, :-1], build(BASE, X, K).pi, atol=1e-12)
    np.testing.assert_allclose(build(grown, X, K).log_prior, -np.log(3))
    lazy = BASE.with_primitives(pull=Table(np.full(41, 1 / 41)))
    assert lazy.names == BASE.names
    np.testing.assert_array_equal(lazy.log_prior, BASE.log_prior)


def test_weights_are_optimal_and_certified():
    weighed = weigh(BASE, X, K)
    np.testing.assert_allclose(weighed.weights, solve(by_hand()).weights, atol=1e-5)
    assert weighed.outcome == Outcome.CONVERGED
    assert weighed.certificate.gap <= BASE.tol
    # judged anew, from the problem built by hand
    judged = certify(by_hand(), np.asarray(weighed.weights))
    assert judged.gap <= 1.01e-10


def test_temperature_and_habits_may_follow_the_situation():
    agent = BASE.replace(
        eps=lambda x, k: 0.1 * k + x[0],
        prior=lambda x, k: jnp.array([0.1 * k, 1 - 0.1 * k]) + 0.1 * jnp.array([x[0], -x[0]]),
    )
    assert_same_problem(agent.problem(X, K), by_hand(eps=1.1, prior=(0.47, 0.53)))
    assert_same_problem(build(agent, X, K), by_hand(eps=1.1, prior=(0.47, 0.53)))
    np.testing.assert_allclose(agent.start().weights, [0.5, 0.5])  # a habit is not known before the first state


def test_a_habit_that_is_no_distribution_has_no_certificate():
    bad = BASE.replace(prior=lambda x, k: jnp.array([0.5, 0.6]))
    with pytest.raises(ValueError, match=r"prior\(observation, k\) sums to 1.1"):
        bad.problem(X, K)
    assert weigh(bad, X, K).outcome == Outcome.BAD_INPUT


def test_a_warm_start_changes_nothing_but_the_way():
    cold = weigh(BASE.replace(tol=1e-14), X, K)
    for first in ([0.999, 0.001], [1e-12, 1 - 1e-12]):
        memory = BASE.start()._replace(weights=jnp.array(first))
        warm = weigh(BASE.replace(tol=1e-14), X, K, memory)
        np.testing.assert_allclose(warm.weights, cold.weights, atol=1e-7)
        assert warm.certificate.gap <= 1e-14


def test_the_prior_as_a_gate_is_a_fixed_mixture():
    weighed = weigh(BASE.replace(gate="prior"), X, K)
    np.testing.assert_allclose(weighed.weights, [0.3, 0.7], rtol=1e-14)
    judged = certify(by_hand(), np.array([0.3, 0.7]))
    np.testing.assert_allclose(weighed.certificate.gap, judged.gap, rtol=1e-9)
    assert judged.gap > 1e-3  # and says how far from optimal it is


def test_the_cheapest_primitive_takes_it_all():
    weighed = weigh(BASE.replace(gate="cheapest"), X, K)
    expected = by_hand().action_cost @ by_hand().pi
    np.testing.assert_allclose(weighed.weights, expected == expected.min(), atol=1e-12)
    assert weighed.outcome == Outcome.NOT_OPTIMISED
    assert np.isfinite(weighed.certificate.gap)  # and says how far from optimal it is


def test_one_step_swings_where_the_optimum_stands_still():
    """The released scripts' 2-cycle between 4.5e-5 and 1 - 4.5e-5, on two narrow primitives of equal cost."""
    narrow = {"left": Gaussian([-0.8], 0.15), "right": Gaussian([0.8], 0.15)}
    agent = Composer(narrow, Cost(np.zeros(41)), LINE, 0.05, selection="mean", gate="one-step")
    memory = agent.start()._replace(weights=jnp.array([0.6, 0.4]))
    path = []
    for k in range(12):
        decision = decide(agent, jax.random.key(0), X, jnp.asarray(k), memory)
        memory = decision.memory
        path.append(float(decision.weights[0]))
    np.testing.assert_allclose(path[6::2], np.exp(-10), rtol=1e-2)
    np.testing.assert_allclose(1 - np.array(path[7::2]), np.exp(-10), rtol=1e-2)
    assert decision.certified
    assert not decision.optimal
    assert decision.outcome == Outcome.NOT_OPTIMISED
    assert decision.certificate.gap > 0.1
    still = decide(agent.replace(gate="equilibrium"), jax.random.key(0), X, jnp.asarray(0), memory)
    np.testing.assert_allclose(still.weights, [0.5, 0.5], atol=1e-4)


def test_replace_keeps_the_rest():
    changed = BASE.replace(selection="mean", eps=0.2)
    assert changed.selection == "mean"
    assert changed.names == BASE.names
    assert_same_problem(changed.problem(X, K), by_hand(eps=0.2))
    same_names = BASE.replace(primitives={"push": BASE.primitives[1], "pull": BASE.primitives[0]})
    np.testing.assert_allclose(np.exp(same_names.log_prior), [0.3, 0.7])
    other_names = BASE.replace(primitives=[BASE.primitives[0]] * 3)
    np.testing.assert_allclose(np.exp(other_names.log_prior), [1 / 3] * 3)
    assert other_names.names == ("primitive 0", "primitive 1", "primitive 2")


def test_a_batch_is_one_by_one():
    states = np.array([[0.7, -0.3], [0.0, 0.0], [1e6, -1e6], [-2.0, 1.0]])
    batch = jax.jit(jax.vmap(lambda x: BASE.weigh(x, K)))(states)
    assert (batch.outcome == Outcome.CONVERGED).all()
    for i, x in enumerate(states):
        np.testing.assert_allclose(batch.weights[i], weigh(BASE, jnp.asarray(x), K).weights, atol=1e-7)


@pytest.mark.parametrize("kind", ["gaussian", "eps", "prior"])
def test_gradients_go_through_the_composer(kind):
    """The expected cost as a function of one parameter, against finite differences."""

    def agent(value):
        sd, eps, prior = 0.5, 0.1, jnp.array([0.3, 0.7])
        if kind == "gaussian":
            sd = value
        elif kind == "eps":
            eps = value
        else:
            prior = jnp.stack([value, 1 - value])
        primitives = {"push": Gaussian(push, 0.3), "pull": Gaussian(pull, sd)}
        return Composer(primitives, Cost(price), LINE, eps, prior, tol=1e-15)

    def expected_cost(value):
        weighed = agent(value).weigh(X, K)
        return (weighed.problem.pi @ weighed.weights) @ weighed.problem.action_cost

    at, step = 0.4, 1e-4
    slope = jax.jit(jax.grad(expected_cost))(at)
    value = jax.jit(expected_cost)
    differences = (value(at + step) - value(at - step)) / (2 * step)
    assert abs(differences) > 1e-3
    np.testing.assert_allclose(slope, differences, rtol=1e-5)


def test_forbidden_actions_and_sums_of_demands():
    """Zeros in tables and floors in references meet without NaN."""
    agent = Composer(
        [Table([0.5, 0.5, 0.0]), Table([0.0, 0.5, 0.5])],
        Sum(like=Reference(Table([1.0, 0.0, 0.0]), floor=1e-6), cost=Cost([0.0, 1.0, 2.0])),
        Finite(3), 0.1,
    )  # fmt: skip
    weighed = agent.weigh(None)
    cost = np.array([0.0, 1.0, 2.0]) - np.log([1, 1e-6, 1e-6])
    expected = problem(pi=np.array([[0.5, 0.0], [0.5, 0.5], [0.0, 0.5]]), action_cost=cost, eps=0.1)
    assert certify(expected, np.asarray(weighed.weights)).gap <= 1e-9


def test_a_compiled_agent_decides_the_same_and_is_traced_once():
    traced = []

    def counted(x, k):
        traced.append(k)
        return push(x, k)

    agent = BASE.replace(primitives={"push": Gaussian(counted, 0.3), "pull": BASE.primitives[1]}, selection="mean")
    quick, memory, key = agent.compiled(), None, jax.random.key(0)
    for k in range(3):
        decision = quick(key, np.asarray(X) + 0.1 * k, k, memory)
        memory = decision.memory
    assert len(traced) == 1
    slow = decide(agent, key, X + 0.2, jnp.asarray(2), memory)
    np.testing.assert_allclose(decision.weights, slow.weights, atol=1e-5)
    np.testing.assert_allclose(decision.action, slow.action, atol=1e-5)


def test_an_agent_prints_as_a_card():
    card = str(BASE).splitlines()
    assert card[0] == "Composer of 2 primitives"
    assert card[1:3] == ["  push: Gaussian, prior 0.3", "  pull: Gaussian, prior 0.7"]
    assert "  actions: Grid, 41 of shape (1,)" in card
    assert "  gate: equilibrium, selection: sample, fallback: previous" in card
    assert "eps: follows the observation" in str(BASE.replace(eps=lambda x, k: 0.1))


GOOD = {"primitives": BASE.primitives, "model": BASE.model, "actions": LINE, "eps": 0.1}
COMPLAINTS = {
    "no primitives": ({"primitives": []}, "primitives is empty"),
    "one primitive": ({"primitives": BASE.primitives[0]}, "primitives is a Gaussian: pass a dict"),
    "a function": ({"primitives": [push, push]}, r"primitives\['primitive 0'\] is a .*Gaussian\(controller, sd\)"),
    "model": ({"model": price}, "model is a .*: pass an instance of AbstractModel"),
    "actions": ({"actions": TORQUE}, "actions is a ndarray: pass an instance of AbstractActions"),
    "zero eps": ({"eps": 0.0}, "eps = 0: the temperature must lie between"),
    "negative eps": ({"eps": -1.0}, "eps = -1"),
    "nan eps": ({"eps": np.nan}, "eps = nan"),
    "no eps": ({"eps": None}, "eps is missing"),
    "many eps": ({"eps": [0.1, 0.2]}, r"eps has shape \(2,\): one number .* Population"),
    "length of prior": ({"prior": [0.2, 0.3, 0.5]}, r"prior has shape \(3,\): one entry for each of the 2"),
    "many priors": ({"prior": [[0.5, 0.5], [0.5, 0.5]]}, r"prior has shape \(2, 2\)"),
    "zero prior": ({"prior": [0.0, 1.0]}, r"prior\[0\] = 0: a prior must be positive"),
    "sum of prior": ({"prior": [0.5, 0.6]}, "prior sums to 1.1"),
    "selection": ({"selection": "best"}, "selection = 'best': use one of 'sample', 'mean', 'mode', 'dither'"),
    "gate": ({"gate": "softmax"}, "gate = 'softmax': use one of 'equilibrium', 'flow', 'circuit'"),
    "tol": ({"tol": -1e-10}, "tol = -1e-10: pass a positive, finite number"),
    "mean of labels": (
        {"actions": Finite(3), "primitives": [Table([0.2, 0.3, 0.5])], "selection": "mean"}, "the actions are labels"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPLAINTS)
@pytest.mark.usefixtures("without_type_checks")
def test_complaints_name_the_argument(name):
    changes, message = COMPLAINTS[name]
    with pytest.raises(ValueError, match=message):
        Composer(**(GOOD | changes))


LATE = {
    "unknown argument": (lambda: BASE.replace(temperature=1.0), "a composer has no temperature: it has primitives"),
    "shape of eps": (lambda: BASE.replace(eps=lambda x, k: x).problem(X, K), r"eps has shape \(2,\)"),
    "shape of prior": (
        lambda: BASE.replace(prior=lambda x, k: jnp.full(4, 0.25)).problem(X, K), r"the prior \(4,\).* 2 primitives"
    ),
    "nan state": (lambda: BASE.problem(X * jnp.nan, K), "nan"),
}  # fmt: skip


@pytest.mark.parametrize("name", LATE)
@pytest.mark.usefixtures("without_type_checks")
def test_complaints_at_a_state(name):
    make, message = LATE[name]
    with pytest.raises(ValueError, match=message):
        make()


def test_single_precision_is_refused():
    """In a program of its own: this one has chosen float64."""
    code = (
        "from policychord import Composer; from policychord.actions import Finite; "
        "from policychord.models import Cost; from policychord.primitives import Table; "
        "Composer([Table([0.5, 0.5])], Cost([0.0, 1.0]), Finite(2), 0.1)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 1
    assert "ValueError: JAX is restricted to float32, in which no certificate is honest: call" in run.stderr


def test_a_primitive_that_is_not_a_number_is_named():
    broken = Composer(
        {"sound": Gaussian(push, 0.3), "broken": Gaussian(lambda x, k: x[:1] / 0.0 * 0.0, 0.3)}, Cost(price), LINE, 0.1
    )
    with pytest.raises(ValueError, match="primitives\\['broken'\\] is not a number in"):
        broken.problem(X, K)


def test_a_table_of_another_length_is_named_at_once():
    with pytest.raises(ValueError, match="primitives\\['long'\\] is a table of 3 actions, but the action set has 2"):
        Composer({"short": Table([0.5, 0.5]), "long": Table([0.2, 0.3, 0.5])}, Cost([0.0, 1.0]), Finite(2), 0.1)


def test_a_coarse_grid_says_so():
    """A mean of .25 with a spread of .3 acts .058 on three points."""
    with pytest.warns(UserWarning, match=r"the grid is coarse for primitives\['push'\].*finer grid, a wider one"):
        agent = Composer({"push": Gaussian([0.25], 0.3)}, Cost(np.zeros(3)), Grid(-1.0, 1.0, 3), 1.0, selection="mean")
    assert agent.decide(jax.random.key(0), None).action == pytest.approx(0.058, abs=1e-3)
    coarse, fine = (Gaussian([0.0], 0.3).coarseness(Grid(-6.0, 6.0, count)) for count in (7, 41))
    assert coarse > 1
    assert fine < 1e-6
    # against what the points really do to a mean between two of them
    grid, means = Grid(-6.0, 6.0, 17), np.linspace(0, 0.75, 31)
    on_grid = np.array([grid.mean(jnp.exp(Gaussian([m], 0.3).log_prob(grid, None, 0)))[0] for m in means])
    moved = np.max(np.abs(on_grid - means)) / 0.3
    assert Gaussian([0.0], 0.3).coarseness(grid) == pytest.approx(moved, rel=0.05)


def test_a_cut_grid_says_so():
    """Half of a Gaussian whose mean lies on the border is missing, and its mean moves by sqrt(2/pi) sd."""
    agent = Composer({"push": Gaussian(lambda x, k: x, 0.2)}, Cost(np.zeros(41)), LINE, 1.0, selection="mean")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        agent.decide(jax.random.key(0), jnp.array([0.3]))
    edge = float(LINE.points[-1, 0])
    with pytest.warns(UserWarning, match=r"cuts primitives\['push'\] off.*Sampled actions"):
        agent.decide(jax.random.key(0), jnp.array([edge]))
    assert agent.primitives[0].mass_on(LINE, jnp.array([edge]), 0) == pytest.approx(0.5, abs=0.15)


@pytest.mark.parametrize("radius", [None, 1.0])
@pytest.mark.parametrize("outside", ["clip", "tail"])
@pytest.mark.parametrize("spread", [{"sd": [0.2, 0.35]}, {"covariance": [[0.04, 0.03], [0.03, 0.09]]}])
def test_the_mass_on_a_grid_is_that_of_its_cells(spread, outside, radius):
    """By SciPy's density at every point, for means inside, near the border and outside."""
    grid = Grid([-1.0, -1.2], [1.0, 1.2], [23, 31], radius=radius)
    covariance = spread["covariance"] if "covariance" in spread else np.diag(np.square(spread["sd"]))
    cell = float(np.prod(np.asarray(grid.spacing)))
    bell = Gaussian(lambda x, k: x, **spread, outside=outside)
    for mean in ([0.1, -0.2], [0.9, 0.1], [1.5, -1.0]):
        wanted = np.asarray(grid.inside(jnp.array(mean))) if outside == "clip" else mean
        mass = multivariate_normal(wanted, covariance).pdf(np.asarray(grid.points)).sum() * cell
        assert bell.mass_on(grid, jnp.array(mean), 0) == pytest.approx(mass, rel=1e-9)
        assert bool(bell.spoiled_by(grid, jnp.array(mean), 0)) == (abs(mass - 1) > 0.2)


def test_a_trace_says_which_decisions_were_cut():
    """In a compiled loop too, alone, in a population and in groups; not where the ends are limits."""
    parts = {"push": Gaussian(lambda x, k: 1.2 + 0.1 * k, 0.2), "rest": Gaussian([0.0], 0.2)}
    agent = Composer(parts, Cost(np.zeros(41)), LINE, 1.0)
    said = r"cuts primitives\['push'\] off in many decisions \(trace.cut says in which\)"
    with pytest.warns(UserWarning, match=said):
        trace = rollout(agent, Pendulum(), steps=10)
    by_hand = [bool(parts["push"].spoiled_by(LINE, None, k)) for k in range(10)]
    assert 0 < sum(by_hand) < 10
    np.testing.assert_array_equal(trace.cut[0, :, 0], by_hand)
    assert not trace.cut[..., 1].any()
    assert to_dataset(trace).cut.dims == ("episode", "time", "agent", "primitive")
    for many in (Population(agent, 2), Groups(one=agent, other=agent)):
        for k in (0, 8):
            made = eqx.filter_jit(many.decide)(jax.random.key(0), jnp.zeros(2), jnp.asarray(k))
            np.testing.assert_array_equal(made.cut, [[k == 8, False]] * 2)
    limited = agent.replace(actions=Grid(-2.0, 2.0, 41, saturates=True))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rollout(limited, Pendulum(), steps=10).cut is None
        limited.decide(jax.random.key(0), None, 8)
        assert Groups(one=limited).decide(jax.random.key(0), jnp.zeros(1), 8).cut is None


@pytest.mark.parametrize("order", [">f8", ">f4", ">i4"])
def test_the_byte_order_of_what_an_agent_sees_does_not_matter(order):
    """A compiled program that has seen native numbers would read others as if they were native."""
    parts = {"left": Gaussian(lambda x, k: -jnp.ones(1) * x[0], 0.5), "right": Gaussian(lambda x, k: x[1:], 0.5)}
    cost = Cost(lambda x, u, k: (u[0] - x[1]) ** 2)
    agent = Composer(parts, cost, Grid(-3.0, 3.0, 41), 0.3, selection="mean")
    seen = np.array([1.0, 2.0]).astype(np.dtype(order).newbyteorder("="))
    decide, key = agent.compiled(), jax.random.key(0)
    native = decide(key, seen)
    memory = jax.tree.map(np.asarray, native.memory)
    swapped = jax.tree.map(lambda a: a.astype(a.dtype.newbyteorder(">")), memory)
    decide(key, seen, np.asarray(1), memory)
    for found in (decide(key, seen.astype(order)), agent.decide(key, seen.astype(order))):
        np.testing.assert_allclose(found.weights, native.weights, atol=1e-6)
        assert found.optimal
    after = decide(key, seen, 1, memory)
    for found in (
        decide(key, seen.astype(order), np.asarray(1).astype(">i8"), swapped),
        agent.decide(key, seen.astype(order), 1, swapped),
    ):
        np.testing.assert_allclose(found.weights, after.weights, atol=1e-6)
        np.testing.assert_allclose(found.action, after.action, atol=1e-6)
    many = np.stack([seen] * 3)
    together = Population(agent, 3)
    one = together.decide(key, many)
    np.testing.assert_allclose(together.decide(key, many.astype(order)).weights, one.weights, atol=1e-6)
    predictor = Predictor(agent)
    np.testing.assert_allclose(predictor.predict(seen)[0], predictor.predict(seen.astype(order))[0], atol=1e-6)


def test_the_byte_order_of_actions_and_records_does_not_matter():
    actions = Finite(np.arange(2).astype(">i4"))
    agent = Composer([Table([0.5, 0.5]), Table([0.9, 0.1])], Cost(lambda x, u, k: u * x[0]), actions, 0.3)
    choices, start = np.array([[0, 1, 1]]), np.array([2.0])

    def scored(choices, start, observed):
        return replay(agent, start, lambda x, u, seen, k: x + seen, choices=choices, observed=observed).log_prob

    wanted = scored(choices, start, np.ones((1, 3, 1)))
    swapped = scored(choices.astype(">i8"), start.astype(">f8"), np.ones((1, 3, 1), ">f8"))
    np.testing.assert_allclose(swapped, wanted, atol=1e-12)
