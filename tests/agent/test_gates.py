"""Gates in time: the flow and the circuit inside an agent are the paper's dynamics, and end at the optimum."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import logsumexp

from policychord import Composer, Outcome, Population, TimeScales, certify, flow, problem, rollout, solve, time_scales
from policychord.actions import Grid
from policychord.agent import GATES, Circuit, Flow, Memory, Options
from policychord.choices.learners import believe
from policychord.choices.models import PAPER, columns
from policychord.choices.simulate import synthetic
from policychord.models import Cost
from policychord.primitives import Gaussian
from policychord.worlds import Pendulum
from policychord.worlds.flock import agents as flock_study
from policychord.worlds.flock.settings import scenario
from policychord.worlds.quadrotor import agents as quadrotor_study
from policychord.worlds.quadrotor.physics import QuadrotorView
from policychord.worlds.quadrotor.settings import CompositionSettings, QuadrotorSettings

LINE = Grid(-2.0, 2.0, 21)
OPTIONS = Options(1e-10, "auto")
X, Y = jnp.array([0.7, -0.3]), jnp.array([-0.5, 0.4])
BASE = Composer(
    {"push": Gaussian(lambda x, k: x[:1], 0.4), "pull": Gaussian(lambda x, k: -2.0 * x[1:], 0.5)},
    Cost(lambda x, u, k: 3.0 * (x[0] + 0.3 * u[0]) ** 2), LINE, 0.1, prior=[0.3, 0.7], selection="mean",
)  # fmt: skip
weigh = eqx.filter_jit(lambda agent, x, memory: agent.weigh(x, 0, memory))
decide = eqx.filter_jit(lambda agent, x, memory: agent.decide(jax.random.key(0), x, 0, memory))


def remembering(agent, weights):
    return agent.start()._replace(weights=jnp.asarray(weights))


@pytest.mark.parametrize(("duration", "tau"), [(0.5, 1.0), (1.5, 0.5), (None, 1.0)])
def test_the_flow_of_an_agent_is_the_flow(duration, tau):
    agent = BASE.replace(gate=Flow(duration, tau))
    weighed = weigh(agent, X, remembering(agent, [0.9, 0.1]))
    by_path = flow(BASE.problem(X), t1=duration or 20.0, start=[0.9, 0.1], tau=tau, save=2)
    np.testing.assert_allclose(weighed.weights, by_path.weights[-1], atol=1e-6)
    assert weighed.outcome == Outcome.NOT_OPTIMISED
    judged = certify(BASE.problem(X), np.asarray(weighed.weights))
    np.testing.assert_allclose(weighed.certificate.gap, judged.gap, rtol=1e-6, atol=1e-14)


def six_layers(given, scales, layers, duration):
    """The circuit as the paper writes it, all neurons, by another integrator."""
    pi, s, eps, log_prior = (np.asarray(a) for a in given)
    s = s + logsumexp(-s)  # -ln q, of a q that sums to one
    d, n = pi.shape
    cut = np.cumsum([d, d, n, 1, n])

    def velocity(t, x):
        a, b, y, m, r, w = np.split(x, cut)
        return np.concatenate([
            (pi @ w - a) / scales.hidden, (np.log(a) - b) / scales.hidden,
            (-eps * y - (b + s) @ pi + eps * log_prior) / scales.gradient,
            (-m + np.exp(y).sum()) / scales.softmax, (-r + y - np.log(m)) / scales.softmax,
            (-w + np.exp(r)) / scales.weights,
        ])  # fmt: skip

    y, log_m, r, w = (np.atleast_1d(np.asarray(part)) for part in layers)
    a = pi @ w
    begin = np.concatenate([a, np.log(a), y, np.exp(log_m), r, w])
    end = solve_ivp(velocity, (0.0, duration), begin, method="Radau", rtol=1e-9, atol=1e-11).y[:, -1]
    return np.split(end, cut)[-1], np.split(end, cut)[2]


def test_the_circuit_of_an_agent_is_six_layers_that_go_on():
    """Two decisions of .5 tau, the second from what the first one left, on another problem."""
    agent = BASE.replace(gate=Circuit(0.5))
    scales = time_scales(0.1)
    first = weigh(agent, X, remembering(agent, [0.9, 0.1]))
    again = weigh(agent, Y, remembering(agent, first.weights)._replace(carried=first.carried))
    assert not np.allclose(first.weights, again.weights, atol=1e-3)
    w, y = six_layers(BASE.problem(Y), scales, first.carried, 0.5)
    np.testing.assert_allclose(again.carried.w, w, atol=1e-6)
    np.testing.assert_allclose(again.weights, w / w.sum(), atol=1e-6)
    np.testing.assert_allclose(again.carried.y, y, rtol=1e-5)
    # before the first decision the layers rest at the weights that are remembered
    w0 = np.array([0.9, 0.1])
    given = BASE.problem(X)
    s = np.asarray(given.action_cost)
    cost = np.asarray(given.pi).T @ (np.log(np.asarray(given.pi) @ w0) + s + logsumexp(-s))
    y0 = np.asarray(given.log_prior) - cost / 0.1
    log_m = np.log(np.exp(y0).sum())
    w, _ = six_layers(given, scales, (y0, log_m, y0 - log_m, w0), 0.5)
    np.testing.assert_allclose(first.carried.w, w, atol=1e-6)


@pytest.mark.parametrize("gate", ["flow", "circuit"])
def test_a_long_duration_ends_at_the_optimum_also_in_populations_and_loops(gate):
    agent = BASE.replace(gate=gate)
    crowd = Population(agent, 3)
    seen = jnp.stack([X, Y, 2 * X])
    found = jax.jit(lambda seen: crowd.decide(jax.random.key(0), seen, 0, crowd.start()))(seen)
    best = jax.vmap(lambda x: BASE.weigh(x, 0).weights)(seen)
    np.testing.assert_allclose(found.weights, best, atol=2e-6)
    assert np.all(found.certificate.distance < 1e-3)


def test_a_lagging_agent_carries_its_circuit_through_a_rollout():
    env = Pendulum()
    swing = {"left": Gaussian([-1.0], 0.4), "right": Gaussian([1.0], 0.4)}
    model = Cost(lambda x, u, k: (x.velocity - u[0]) ** 2)
    agent = Composer(swing, model, LINE, 0.2, selection="mean", gate=Circuit(0.2))
    lagging = rollout(agent, env, steps=12, episodes=2)
    prompt = rollout(agent.replace(gate="equilibrium"), env, steps=12, episodes=2)
    assert np.all(np.asarray(lagging.gap) > 1e-6)
    change = [float(np.abs(np.diff(np.asarray(t.weights[..., 0]), axis=1)).max()) for t in (lagging, prompt)]
    assert change[0] < change[1]


def test_an_unstable_circuit_does_not_settle():
    """The paper's condition on the time scales holds, and the weights oscillate for ever."""
    apart = {"left": Gaussian([-0.8], 0.25), "right": Gaussian([0.8], 0.25)}
    calm = Composer(apart, Cost(np.zeros(21)), LINE, 0.01, selection="mean", gate="circuit")
    wild = calm.replace(gate=Circuit(duration=8.0, scales=TimeScales(1e-3, 1e-2, 1e-1, 1.0)))
    gaps = [float(weigh(agent, X, remembering(agent, [0.6, 0.4])).certificate.gap) for agent in (calm, wild)]
    assert gaps[0] < 1e-9
    assert gaps[1] > 1e-4


def test_a_constant_in_the_cost_changes_nothing_in_the_circuit():
    """The flock's cost has one of some 500 nats, which changes from decision to decision: m took a long time to follow,
    and meanwhile all weights went down together, so that they seemed to stand still."""
    plain = BASE.replace(gate=Circuit(1.0), eps=0.02)
    shifted = plain.replace(
        model=Cost(lambda x, u, k: 3.0 * (x[0] + 0.3 * u[0]) ** 2 + jnp.where(x[0] > 0, 40.0, 90.0))
    )
    weights = []
    for agent in (plain, shifted):
        first = decide(agent, X, agent.start())
        weights.append(decide(agent, Y, first.memory).weights)
    np.testing.assert_allclose(*weights, atol=1e-6)


@pytest.mark.parametrize("gate", ["flow", "circuit"])
def test_dynamics_that_cannot_be_followed_are_said_to_be(gate, monkeypatch):
    """Nothing given is wrong then, so the outcome is another one; the fallback is taken as ever."""
    monkeypatch.setattr("policychord.agent.gates.MAX_STEPS", 3)
    agent = BASE.replace(gate=gate, tol=1.1e-10)  # a tolerance of its own, so that it is compiled with the limit
    now = decide(agent, X, remembering(agent, [0.9, 0.1]))
    assert now.outcome == Outcome.NOT_INTEGRATED
    assert not now.certified
    np.testing.assert_allclose(now.weights, [0.9, 0.1])
    with pytest.warns(UserWarning, match="could not be followed.*fallback was taken"):
        trace = rollout(agent.replace(primitives={"a": Gaussian([0.5], 0.4), "b": Gaussian([-0.5], 0.4)},
                                      model=Cost(np.zeros(21))), Pendulum(), steps=2, episodes=1)  # fmt: skip
    assert trace.fallbacks.tolist() == [2]


def test_a_primitive_that_fails_leaves_the_rest_to_flow():
    broken = BASE.replace(
        primitives={"push": BASE.primitives[0], "pull": Gaussian(lambda x, k: x[1:] / 0.0 * 0.0, 0.5)}
    )
    for gate in ("flow", "circuit", "cheapest"):
        agent = broken.replace(gate=gate)
        decision = decide(agent, X, agent.start())
        np.testing.assert_allclose(decision.weights, [1.0, 0.0], atol=1e-9)


@pytest.mark.parametrize("gate", ["flow", "circuit"])
def test_a_long_duration_is_the_optimum_on_the_three_studies(gate):
    """The bandit's first choices, a boid of a flock, a drone on its path."""
    trials = believe(synthetic("1", 3, blocks=1, trials=3, seed=0))
    pi, log_q = columns(PAPER, trials), np.log([0.3, 0.7])
    part = GATES[gate]()
    choose = jax.jit(lambda given, memory: part.weigh(given, jnp.ones(pi.shape[-1], bool), memory, OPTIONS).weights)
    for one in pi[:3]:
        given = problem(pi=one, action_cost=-log_q, eps=0.1)
        n = one.shape[1]
        memory = Memory(jnp.full(n, 1 / n), jnp.zeros(n), jnp.zeros(()), part.start(n))
        np.testing.assert_allclose(choose(given, memory), solve(given).weights, atol=2e-6)
    few = scenario("polarization", boids=3, grid=9, gate=gate)
    env = flock_study.flock_world(few)
    view = jax.tree.map(lambda a: a[0], env.observe(env.reset(jax.random.key(1))))
    assert_optimal(flock_study.boid(few, env, False), view)
    settings = QuadrotorSettings()
    agent = quadrotor_study.composer(
        settings, "pd", CompositionSettings(gate=gate, selection="mean", points=9, spread=0.04)
    )
    assert_optimal(agent, QuadrotorView(jnp.array([0.1, 0.4, 1.1, 0.2, -0.1, 0.3]), jnp.array(-0.08)))


def assert_optimal(agent, observation):
    found, best = (weigh(a, observation, a.start()) for a in (agent, agent.replace(gate="equilibrium", route="jax")))
    np.testing.assert_allclose(found.weights, best.weights, atol=2e-6)
    assert found.outcome == Outcome.NOT_OPTIMISED


def test_settings_that_no_gate_uses_are_refused():
    with pytest.raises(ValueError, match="gate = 'prior' has no duration or tau"):
        CompositionSettings(gate="prior", duration=3.0)
    with pytest.raises(ValueError, match="fixed_weights no gate is asked"):
        scenario("polarization", fixed_weights=True, gate="flow")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Flow(duration=-1.0), "duration = -1.0: pass a positive"),
        (lambda: Flow(tau=0.0), "tau = 0.0: pass a positive"),
        (lambda: Circuit(scales=TimeScales(1.0, 1.0, 1.0, 0.0)), "scales.weights = 0.0: time constants"),
        (lambda: Circuit(tau=2.0, scales=time_scales(0.1)), "differ: pass one of them"),
        (lambda: Circuit(scales=(1.0, 2.0)), "pass TimeScales"),
    ],
)
@pytest.mark.usefixtures("without_type_checks")
def test_complaints(make, message):
    with pytest.raises(ValueError, match=message):
        make()
