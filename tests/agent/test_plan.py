"""Plans around a mixture: what is simulated, how it is averaged, what is kept, and what is proved."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

import policychord as pc
from policychord import Commitment, Composer, Planner, rivals
from policychord.actions import Finite, Grid, Sampled
from policychord.agent.plan import _Candidate, _simulate
from policychord.models import BlackBox, Cost, Random
from policychord.primitives import Categorical, Gaussian, Policy, Table

KEY = jax.random.key(0)
BOX = Grid([-1.0, -1.0], [1.0, 1.0], 5)
A = jnp.array([[1.0, 0.1], [0.0, 1.0]])
GAINS = {"soft": jnp.array([[0.5, 0.8], [0.1, 0.0]]), "stiff": jnp.array([[2.0, 1.0], [0.0, 0.4]])}
HABITS = {name: Gaussian(lambda x, k, gain=gain: -gain @ x, 0.2, outside="tail") for name, gain in GAINS.items()}
START = jnp.array([0.7, -0.4])
compiled = eqx.filter_jit(lambda agent, x, k, memory: agent.decide(KEY, x, k, memory))


def decide(agent, x, k, memory):
    return compiled(agent, x, jnp.asarray(k), memory)


def predict(x, u, k):
    return A @ x + 0.1 * u


def stage(x, u, k):
    return x @ x + 0.1 * u @ u + 0.01 * k


FIXED = Composer(HABITS, Cost(stage), BOX, 0.5, [0.3, 0.7], gate="prior", selection="mean")
PLAN = Planner(FIXED, predict, stage, steps=8, samples=16, free=3, knots=2)


def by_hand(shares, residual, x=START, k=0, steps=8):
    """Cost and residuals of a candidate in a plain loop."""
    x, cost, beside, fixed = np.asarray(x), 0.0, [], np.array([0.3, 0.7])
    for i in range(steps):
        commands = np.clip([-np.asarray(gain) @ x for gain in GAINS.values()], -1, 1)
        within = i < len(residual)
        u = (shares[i] if within else fixed) @ commands + (residual[i] if within else 0.0)
        u = np.clip(u, -1, 1)
        beside.append(u - fixed @ commands)
        cost += x @ x + 0.1 * u @ u + 0.01 * (k + i)
        x = np.asarray(A) @ x + 0.1 * u
    return cost, np.array(beside)[: len(residual)]


def test_what_is_simulated_is_a_plain_loop(rng):
    for k in (0, 5):
        shares, residual = rng.dirichlet(np.ones(2), 3), 0.5 * rng.normal(size=(3, 2))
        tried = _Candidate(jnp.asarray(shares), jnp.asarray(residual))
        weights = jnp.array([0.3, 0.7])
        cost, beside = _simulate(PLAN.rollouts, PLAN.scale, weights, START, k, tried)
        expected = by_hand(shares, residual, k=k)
        assert float(cost) == pytest.approx(expected[0], rel=1e-12)
        np.testing.assert_allclose(beside, expected[1], atol=1e-12)


def test_candidates_are_the_mixture_the_kept_plan_and_mirrored_noise():
    kept = jnp.arange(6.0).reshape(3, 2) / 10
    shares, residual = PLAN._candidates(jnp.array([0.3, 0.7]), kept)
    np.testing.assert_array_equal(residual[:2], [np.zeros((3, 2)), kept])
    np.testing.assert_array_equal(shares[:2, 0], [[0.3, 0.7]] * 2)
    own = np.asarray(residual) - np.where(np.asarray(shares[:, :1, :1]) == 0.3, kept, 0.0)
    np.testing.assert_allclose(own[2::2], -own[3::2], atol=1e-15)
    np.testing.assert_allclose(own[:, 1], (own[:, 0] + own[:, 2]) / 2, atol=1e-15)  # linear between two knots
    single = np.asarray(shares[2::2, 0]).tolist()
    assert single == [[1.0, 0.0], [0.3, 0.7], [0.0, 1.0], [0.3, 0.7], [1.0, 0.0], [0.3, 0.7], [0.0, 1.0]]
    spread = np.asarray(eqx.tree_at(lambda p: p.noise, PLAN, 0.6)._candidates(jnp.array([0.3, 0.7]), kept)[1])
    np.testing.assert_allclose(spread[3] * 0.5, own[3], atol=1e-15)


def test_constant_residuals_last_for_shares_of_the_free_steps():
    agent = Planner(FIXED, predict, stage, steps=8, samples=26, free=4)
    shares, residual = map(np.asarray, agent._candidates(jnp.array([0.3, 0.7]), jnp.zeros((4, 2))))
    lasting = np.sum(residual[2:, :, 0] != 0.0, axis=1)
    assert set(lasting) == {1, 2, 4}
    for row, mix, steps in zip(residual[2:], shares[2:], lasting, strict=True):
        np.testing.assert_array_equal(row[:steps], np.tile(row[0], (steps, 1)))
        np.testing.assert_array_equal(mix[steps:], np.tile([0.3, 0.7], (4 - steps, 1)))
    held = {(tuple(mix[0]), int(steps)) for mix, steps in zip(shares[2:], lasting, strict=True)}
    assert len(held) == 3 * 3  # the mixture and both primitives, for each time


def test_the_average_by_hand():
    first = decide(PLAN, START, 0, PLAN.start())
    shares, residual = PLAN._candidates(jnp.array([0.3, 0.7]), jnp.zeros((3, 2)))
    rolled = [by_hand(np.asarray(a), np.asarray(b)) for a, b in zip(shares, residual, strict=True)]
    cost, beside = np.array([one[0] for one in rolled]), np.stack([one[1] for one in rolled])
    np.testing.assert_allclose(first.memory.cost, cost, rtol=1e-12)
    above = cost - cost.min()
    share = np.exp(-above / (float(PLAN.temperature) * np.sort(above)[2]))
    share /= share.sum()
    plan = np.tensordot(share, beside, axes=1)
    np.testing.assert_allclose(first.memory.plan, [*plan[1:], [0.0, 0.0]], atol=1e-12)
    assert float(first.memory.effective) == pytest.approx(1 / np.sum(share**2))
    np.testing.assert_allclose(first.memory.error, np.sqrt(share**2 @ (beside[:, 0] - plan[0]) ** 2), rtol=1e-9)
    commands = np.clip([-np.asarray(gain) @ np.asarray(START) for gain in GAINS.values()], -1, 1)
    np.testing.assert_allclose(first.action, np.clip([0.3, 0.7] @ commands + plan[0], -1, 1), atol=1e-12)


def test_the_same_noise_serves_every_decision():
    first, again = (decide(PLAN, START, 0, PLAN.start()) for _ in range(2))
    np.testing.assert_array_equal(first.action, again.action)
    other = PLAN.decide(jax.random.key(9), START, 0, PLAN.start())
    np.testing.assert_allclose(other.action, first.action, atol=1e-14)  # nothing is drawn from the key
    moved = Planner(FIXED, predict, stage, steps=8, samples=16, free=3, knots=2, seed=1)
    assert not np.array_equal(decide(moved, START, 0, moved.start()).action, first.action)


def test_without_noise_it_is_the_mixture_of_what_was_tried():
    """Tiny residuals and one primitive: the plan is that primitive's own command."""
    alone = FIXED.replace(primitives={"soft": HABITS["soft"]})
    quiet = Planner(alone, predict, stage, steps=8, samples=8, noise=1e-9)
    np.testing.assert_allclose(decide(quiet, START, 0, quiet.start()).action, -GAINS["soft"] @ START, atol=1e-8)


def test_it_lowers_the_cost_that_it_plans_for():
    """In closed loop, in the model itself, it beats the mixture, the best primitive, and every fixed weight."""

    def played(agent):
        def advance(carry, k):
            x, memory = carry
            decision = agent.decide(KEY, x, k, memory)
            return (predict(x, decision.action, k), decision.memory), stage(x, decision.action, 0)

        return float(jnp.sum(jax.lax.scan(advance, (START, agent.start()), jnp.arange(40))[1]))

    planned = played(Planner(FIXED, predict, stage, steps=12))
    fixed = [played(FIXED.replace(prior=[w, 1 - w])) for w in (1e-9, 0.3, 0.7, 1 - 1e-9)]
    assert planned < min(fixed)
    descended = played(Planner(FIXED, predict, stage, steps=12, free=4, knots=2, by="gradient"))
    assert descended < min(fixed)


def test_the_weights_of_a_gate_keep_their_certificate_and_the_plan_has_none():
    fixed = decide(PLAN, START, 0, PLAN.start())
    assert fixed.outcome == pc.agent.Outcome.NOT_OPTIMISED
    assert not bool(fixed.certified)
    weighing = FIXED.replace(gate="equilibrium")
    agent = Planner(weighing, predict, stage, steps=8)
    decision = decide(agent, START, 0, agent.start())
    alone = weighing.decide(KEY, START)
    np.testing.assert_allclose(decision.weights, alone.weights, atol=1e-9)
    assert decision.optimal
    assert pc.certify(weighing.problem(START), np.asarray(decision.weights)).gap <= 1e-9
    np.testing.assert_allclose(decision.memory.inner.weights, alone.weights, atol=1e-9)


@pytest.mark.parametrize("lost", [jnp.nan, jnp.inf])
def test_a_model_without_numbers_leaves_the_mixture(lost):
    agent = Planner(FIXED, predict, lambda x, u, k: lost, steps=4)
    commands = jnp.clip(jnp.stack([-gain @ START for gain in GAINS.values()]), -1, 1)
    np.testing.assert_allclose(decide(agent, START, 0, agent.start()).action, jnp.array([0.3, 0.7]) @ commands)


def test_a_primitive_that_is_no_number_is_left_out():
    lost = Gaussian(lambda x, k: jnp.array([jnp.nan, 0.0]), 0.2)
    broken = FIXED.replace(primitives=HABITS | {"lost": lost}, prior=[0.3, 0.3, 0.4])
    whole = FIXED.replace(prior=[0.5, 0.5])
    tried = _Candidate(jnp.tile(jnp.array([0.3, 0.3, 0.4]), (3, 1)), jnp.zeros((3, 2)))
    cost, _ = _simulate(
        Planner(broken, predict, stage).rollouts, PLAN.scale, jnp.array([0.3, 0.3, 0.4]), START, 0, tried
    )
    fine = _Candidate(jnp.full((3, 2), 0.5), jnp.zeros((3, 2)))
    other, _ = _simulate(Planner(whole, predict, stage).rollouts, PLAN.scale, jnp.array([0.5, 0.5]), START, 0, fine)
    assert float(cost) == pytest.approx(float(other), rel=1e-12)
    agent = Planner(broken, predict, stage, steps=8, samples=16)
    assert np.all(np.isfinite(decide(agent, START, 0, agent.start()).action))


def test_a_simulator_is_asked_for_all_candidates_at_once():
    rows = []

    def simulator(x, u, k):
        rows.append(len(x))
        return x @ np.asarray(A).T + 0.1 * u

    prices = BlackBox(lambda x, u, k: np.sum(x**2, 1) + 0.1 * np.sum(u**2, 1) + 0.01 * k, number=True)
    agent = Planner(FIXED, BlackBox(simulator), prices, steps=8, samples=16, free=3, knots=2)
    decision = decide(agent, START, 0, agent.start())
    np.testing.assert_allclose(decision.action, decide(PLAN, START, 0, PLAN.start()).action, atol=1e-9)
    assert rows == [16] * 8
    with pytest.raises(ValueError, match="this one has a BlackBox"):
        Planner(FIXED, BlackBox(simulator), stage, by="gradient")


def test_a_world_with_chance_counts_the_mean_over_its_futures():
    noisy = Random(lambda x, u, k, key: predict(x, u, k) + 0.1 * jax.random.normal(key, (2,)), samples=8)
    agent = Planner(FIXED, noisy, stage, steps=5)
    tried = _Candidate(jnp.tile(jnp.array([0.3, 0.7]), (3, 1)), jnp.zeros((3, 2)))
    cost, _ = _simulate(agent.rollouts, agent.scale, jnp.array([0.3, 0.7]), START, 0, tried)
    gain = 0.3 * GAINS["soft"] + 0.7 * GAINS["stiff"]
    alone = pc.Rollouts({"mixture": Gaussian(lambda x, k: -gain @ x, 0.2)}, BOX, noisy, stage, steps=5)
    assert float(cost) == pytest.approx(float(alone(START, 0)), rel=0.1)
    assert np.all(np.isfinite(decide(agent, START, 0, agent.start()).action))


def test_a_constant_error_of_the_model_is_learned():
    """The true world drifts; a plan that learns how much predicts it, and pays less than one that does not."""
    drift = jnp.array([0.02, -0.05])

    def played(agent):
        def advance(carry, k):
            x, memory = carry
            decision = agent.decide(KEY, x, k, memory)
            return (predict(x, decision.action, k) + drift, decision.memory), stage(x, decision.action, 0)

        (_, memory), costs = jax.lax.scan(advance, (START, agent.start()), jnp.arange(60))
        return memory, float(jnp.sum(costs))

    _, ignorant = played(Planner(FIXED, predict, stage, steps=12))
    memory, learned = played(Planner(FIXED, predict, stage, steps=12, like=START))
    np.testing.assert_allclose(memory.missed, drift, rtol=0.01)
    assert learned < ignorant
    right, _ = played(Planner(FIXED, lambda x, u, k: predict(x, u, k) + drift, stage, steps=12, like=START))
    np.testing.assert_allclose(right.missed, 0.0, atol=1e-12)


def test_settings_that_do_not_fit():
    labels = Composer({"a": Table([0.5, 0.5])}, Cost([0.0, 1.0]), Finite(2), 1.0)
    with pytest.raises(ValueError, match="use Commitment"):
        Planner(labels, predict, stage)
    with pytest.raises(ValueError, match="no range: pass scale"):
        Planner(FIXED.replace(actions=Sampled(dim=2)), predict, stage)
    for wrong in ({"free": 9, "steps": 8}, {"knots": 4, "free": 3}, {"samples": 2}, {"by": "luck"}, {"noise": -1.0},
                  {"scale": [1.0, 0.0]}):  # fmt: skip
        with pytest.raises(ValueError, match=next(iter(wrong))):
            Planner(FIXED, predict, stage, **wrong)
    with pytest.raises(ValueError, match="pass a Composer"):
        Commitment(HABITS, predict, stage)


# ------------------------------------------------------------- commitment


def push(x, u, k):
    return x + jnp.where(u == 0, -1.0, 1.0)


def test_commitment_finds_the_best_sequence_of_labels():
    """Three steps left, then right: what is cheap now is dear later, and only a sequence finds it."""
    prices = jnp.array([0.0, 9.0, 3.0, 2.0, 2.0, 9.0, 9.0])  # of the places 0 to 6; one starts at 4

    def price(x, u, k):
        return prices[jnp.clip(x.astype(int), 0, 6)]

    habits = {"left": Table([0.9, 0.1]), "right": Table([0.1, 0.9])}
    composer = Composer(habits, Cost([0.0, 0.0]), Finite(2), 1.0)
    agent = Commitment(composer, push, price, steps=12, samples=40, hold=2)
    x, memory, places = jnp.asarray(4.0), agent.start(), []
    for k in range(6):
        decision = decide(agent, x, k, memory)
        x, memory = push(x, decision.action, k), decision.memory
        places.append(int(x))
    assert min(places) <= 0
    assert decision.weights.sum() == pytest.approx(1.0)
    assert not bool(decision.certified)
    assert decision.action.dtype == composer.actions.points.dtype


def test_commitment_holds_the_kept_sequence_and_shifts_it():
    agent = Commitment(FIXED, predict, stage, steps=8, samples=12, hold=3)
    memory = agent.start()._replace(plan=jnp.array([1, 1, 0, 0, 0, 1, 1, 1]))
    sequences = np.asarray(agent._sequences(memory.plan))
    assert sequences.shape == (12, 8)
    np.testing.assert_array_equal(sequences[:3], [[0] * 8, [1] * 8, memory.plan])
    until = [int(np.argmin(row == np.asarray(memory.plan))) for row in sequences[3::2]]
    assert max(until) > 0
    costs = []
    for row in sequences:
        shares = np.eye(2)[row]
        costs.append(by_hand(shares, np.zeros((8, 2)))[0])
    decision = decide(agent, START, 0, memory)
    np.testing.assert_allclose(decision.memory.cost, costs, rtol=1e-12)
    best = sequences[int(np.argmin(costs))]
    np.testing.assert_array_equal(decision.memory.plan, [*best[1:], best[-1]])


# ------------------------------------------------------------- rivals


def test_mppi_is_a_plan_around_a_constant():
    agent = rivals.mppi(BOX, predict, stage, steps=12, samples=128, knots=4, noise=0.3, temperature=0.15)
    memory, x, cost, still = agent.start(), START, 0.0, 0.0
    y = START
    for k in range(30):
        decision = decide(agent, x, k, memory)
        cost, still = cost + stage(x, decision.action, 0), still + stage(y, jnp.zeros(2), 0)
        x, y, memory = predict(x, decision.action, k), predict(y, jnp.zeros(2), k), decision.memory
    regulator = pc.models.riccati(A, 0.1 * np.eye(2), np.eye(2), 0.1 * np.eye(2))
    best = float(START @ regulator.cost_to_go @ START)
    assert best < float(cost) < 1.5 * best < float(still)
    around = rivals.mppi(BOX, predict, stage, nominal=[0.5, 0.5], noise=1e-9)
    np.testing.assert_allclose(decide(around, START, 0, around.start()).action, [0.5, 0.5], atol=1e-8)


def test_gradient_steps_reach_the_best_plan_of_a_linear_world():
    agent = rivals.gradient(BOX, predict, stage, steps=12, samples=128, knots=12, noise=0.3)
    decision = decide(agent, START, 0, agent.start())
    again = decide(agent, START, 0, decision.memory._replace(plan=jnp.roll(decision.memory.plan, 1, axis=0)))

    def price(plan):
        x, cost = START, 0.0
        for k, u in enumerate(plan):
            x, cost = predict(x, u, k), cost + stage(x, u, k)
        return cost

    best = float(minimize(jax.jit(jax.value_and_grad(lambda u: price(u.reshape(12, 2)))), np.zeros(24), jac=True).fun)
    still = float(price(jnp.zeros((12, 2))))
    reached = float(jnp.min(again.memory.cost))
    assert best <= reached + 1e-9 < best + 0.05 * (still - best)


def test_random_shooting_draws_labels():
    agent = rivals.random_shooting(Finite(2), push, lambda x, u, k: jnp.abs(x - 3.0), steps=6, samples=64)
    x, memory = jnp.asarray(0.0), agent.start()
    for k in range(3):
        decision = decide(agent, x, k, memory)
        x, memory = push(x, decision.action, k), decision.memory
    assert float(x) == 3.0
    with pytest.raises(ValueError, match="use mppi"):
        rivals.random_shooting(BOX, predict, stage)


def test_functions_and_policies_are_primitives_like_others():
    box = FIXED.replace(actions=Sampled([-1.0, -1.0], [1.0, 1.0], count=16))
    numpy = {"soft": Policy(lambda x: -np.asarray(GAINS["soft"]) @ np.asarray(x), 0.2), "stiff": HABITS["stiff"]}
    agents = [Planner(one, predict, stage, steps=8, samples=16) for one in (box, box.replace(primitives=numpy))]
    actions = [decide(agent, START, 0, agent.start()).action for agent in agents]
    np.testing.assert_allclose(actions[1], actions[0], atol=1e-6)
    choosing = Composer({"a": Categorical(lambda x, k: jnp.array([x, -x]))}, Cost([0.0, 0.0]), Finite(2), 1.0)
    held = Commitment(choosing, push, lambda x, u, k: x**2, steps=4, samples=4)
    assert int(decide(held, jnp.asarray(-1.0), 0, held.start()).action) == 1
