"""Learning: the gradients, that no step goes the wrong way, recovery, going on after an interruption, wrong input."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import policychord as pc
from policychord import inference
from policychord.inference import learning
from policychord.inference.learning.objectives import (
    among,
    learn_posed,
    log_prob,
    pose,
    read_optimum,
    with_data,
    write_optimum,
)
from policychord.inference.optimise import log_posterior
from policychord.inference.parameters import natural, unconstrained
from policychord.primitives.base import AbstractPrimitive

EPS, OFFERS, PEOPLE = 0.1, 40, 50
TRUTH = np.array([[0.7, 0.1, 0.1, 0.1], [0.05, 0.75, 0.15, 0.05], [0.1, 0.1, 0.3, 0.5]])
BEGIN = np.array([[0.4, 0.2, 0.2, 0.2], [0.2, 0.4, 0.2, 0.2], [0.2, 0.2, 0.2, 0.4]])


def price(offer, arm, k):
    return offer[arm]


def chooser(rows, eps=EPS):
    return pc.Composer([pc.Table(row) for row in rows], pc.Cost(price), pc.Finite(4), eps)


@pytest.fixture(scope="module")
def decisions():
    rng = np.random.default_rng(5)
    cost = 2.0 * rng.normal(size=(OFFERS, 4))
    posed = pc.problem(pi=TRUTH.T, action_cost=cost, eps=EPS)
    prob = np.einsum("tdn,tn->td", posed.pi, pc.solve(posed).weights)
    action = (np.cumsum(prob, axis=1)[None] < rng.random((PEOPLE, OFFERS, 1))).sum(axis=-1).clip(max=3).ravel()
    who = np.repeat(np.arange(PEOPLE), OFFERS)
    return inference.observations(np.tile(cost, (PEOPLE, 1)), action, k=np.zeros(action.size, int), subject=who)


@pytest.fixture(scope="module")
def posed(decisions):
    return pose(chooser(BEGIN), "likelihood", decisions)


@pytest.fixture(scope="module")
def found(posed):
    return learn_posed(posed, starts=3)


@pytest.fixture(scope="module")
def lowered(decisions):
    return pose(chooser(BEGIN), "energy", decisions)


def test_same_situations_are_solved_once(posed, decisions):
    assert posed.likelihood.units == OFFERS
    assert posed.likelihood.data["count"].sum() == decisions.size
    z = unconstrained(posed.parameters, {})
    each = log_prob(posed, z)
    agent = chooser(BEGIN)
    for t in (0, 41, 777):
        by_hand = agent.problem(decisions.observation[t], 0)
        expected = np.log(by_hand.pi[decisions.action[t]] @ pc.solve(by_hand).weights)
        np.testing.assert_allclose(each[t], expected, atol=1e-9)


def test_gradient_counts_what_the_gate_does(posed):
    """Along random directions, differences of the likelihood; with the weights held, as EM does, it is another one."""
    z = unconstrained(posed.parameters, {})
    value, slope = log_posterior(posed.likelihood, z)
    direction = np.random.default_rng(0).normal(size=len(z))
    h = 1e-5
    up, down = (log_posterior(posed.likelihood, z + s * h * direction)[0] for s in (1, -1))
    np.testing.assert_allclose(slope @ direction, (up - down) / (2 * h), rtol=1e-5)
    weights = np.asarray(posed.weigh(z, posed.likelihood.data)[0])
    count = posed.likelihood.data["count"]

    def frozen(z):
        pi = jnp.stack(list(natural(posed.parameters, z).values()), axis=1)
        return jnp.sum(count * jnp.log(weights @ pi.T))

    np.testing.assert_allclose(frozen(z), value, rtol=1e-12)
    assert np.linalg.norm(jax.grad(frozen)(z) - slope) > 0.05 * np.linalg.norm(slope)


def test_energy_has_the_envelope_gradient(lowered):
    """dV*/dl_a = w_a pi_a o (g - pi_a^T g), g = ln(Pi w) + s, and it agrees with differences of V*."""
    z = unconstrained(lowered.parameters, {})
    slope = log_posterior(lowered.likelihood, z)[1]
    data = lowered.likelihood.data
    best = pc.solve(pc.problem(pi=BEGIN.T, action_cost=data["observation"], eps=EPS), tol=1e-13).weights
    g = np.log(best @ BEGIN) + data["observation"]
    own = best[:, :, None] * BEGIN * (g[:, None, :] - (g @ BEGIN.T)[:, :, None])
    by_hand = -np.einsum("t,tad->ad", data["count"].sum(axis=1), own)
    np.testing.assert_allclose(slope.reshape(3, 3), by_hand[:, :-1], rtol=1e-3, atol=1e-3)  # weights to 1e-5
    direction, h = np.random.default_rng(1).normal(size=len(z)), 1e-5
    up, down = (log_posterior(lowered.likelihood, z + s * h * direction)[0] for s in (1, -1))
    np.testing.assert_allclose(slope @ direction, (up - down) / (2 * h), rtol=1e-5)


def test_no_step_goes_the_wrong_way(found, lowered):
    """Accepted steps raise the likelihood, or lower the energy, but for rounding of the sum."""
    low = learn_posed(lowered, starts=3)
    assert len(found.paths) >= 3
    assert sum(len(path) for path in (*found.paths, *low.paths)) > 30
    for path in found.paths:
        assert np.all(np.diff(path) >= -1e-11 * np.abs(path[:-1]))
    for path in low.paths:
        assert np.all(np.diff(path) <= 1e-11 * np.abs(path[:-1]))
    assert low.value <= low.paths[0][0] - 0.05
    assert np.all(low.gap <= 1e-10)


def test_planted_primitives_are_found_up_to_their_order(found, decisions):
    both = learning.match(found.agent, chooser(TRUTH[[2, 0, 1]]), decisions)
    assert both.distance.max() < 0.08  # 2,000 choices; the benchmark has 9,000
    assert sorted(both.order) == [0, 1, 2]
    assert found.value >= np.mean(log_prob(found.posed, unconstrained(found.posed.parameters, {
        f"primitive {a}[0]": row for a, row in enumerate(TRUTH)})))  # fmt: skip
    assert learning.degenerate(found, decisions) == ()
    rebuilt = found.agent.problem(decisions.observation[3], 0)
    np.testing.assert_allclose(pc.solve(rebuilt).weights, found.weights[3], atol=1e-5)


def test_some_decisions_with_the_same_programs(posed, decisions):
    rows = decisions.subject < 20
    some = among(posed, rows)
    z = unconstrained(posed.parameters, {})
    np.testing.assert_allclose(log_prob(some, z), log_prob(posed, z)[rows], atol=1e-12)
    part = jax.tree_util.tree_map(lambda leaf: leaf[rows], decisions)
    again = with_data(posed, part)
    assert again.likelihood.programs is posed.likelihood.programs
    np.testing.assert_allclose(log_posterior(again.likelihood, z)[0], log_prob(some, z).sum())


def test_interrupted_learning_goes_on_from_its_file(posed, found, tmp_path):
    file = tmp_path / "learned.npz"

    def stop(what, done, total):
        if done == 2:
            raise KeyboardInterrupt

    first = learn_posed(posed, starts=3, file=file, progress=stop)
    assert first.notes
    assert not first.optimum.complete
    assert np.isfinite(first.value)
    seen = []
    second = learn_posed(posed, starts=3, file=file, progress=lambda what, done, total: seen.append(done))
    np.testing.assert_allclose(second.value, found.value, atol=1e-9)
    assert second.optimum.complete
    again = read_optimum(file, posed.likelihood)
    np.testing.assert_array_equal(again.z, second.optimum.z)
    assert [len(path) for path in again.paths] == [len(path) for path in second.optimum.paths]


def test_a_file_of_other_decisions_is_refused(posed, found, tmp_path):
    file = tmp_path / "learned.npz"
    write_optimum(file, posed.likelihood, found.optimum)
    other = among(posed, np.arange(len(posed.situation)) < 500)
    with pytest.raises(ValueError, match="other parameters or other decisions"):
        learn_posed(other, file=file)
    whole = file.read_bytes()
    changed = bytearray(whole)
    changed[whole.index(found.optimum.z.tobytes())] ^= 255  # the checksum does not fit any more
    for content in (b"no archive", whole[:400], whole[:-60], bytes(changed)):
        file.write_bytes(content)
        with pytest.raises(ValueError, match="holds no results of learning"):
            learn_posed(posed, file=file)
    write_optimum(file, posed.likelihood, found.optimum._replace(heights=np.zeros(7)))
    with pytest.raises(ValueError, match="arrays of the shapes"):
        learn_posed(posed, file=file)


# ------------------------------------------------------------------------------------------------- parts


class Own(AbstractPrimitive):
    """A part of a user: two numbers that are learned, and one that is not."""

    slope: jax.Array
    bias: jax.Array
    scale: float

    def log_prob(self, actions, observation, k):
        return jax.nn.log_softmax(self.scale * (self.slope * observation + self.bias))


def test_numbers_of_every_kind_of_part():
    grid = pc.Grid(-2.0, 2.0, 21)
    agent = pc.Composer(
        {"fixed": pc.Gaussian(lambda x, k: x, 0.5), "constant": pc.Gaussian([0.3], [0.4]),
         "pushed": pc.Gaussian(eqx.Partial(lambda x, k, *, gain: gain * x, gain=jnp.array([2.0])), 0.7)},
        pc.Cost(eqx.Partial(lambda x, u, k, *, weight: weight * (u[0] - x[0]) ** 2, weight=jnp.array(3.0))), grid, 0.2,
    )  # fmt: skip
    family = learning.family_of_agent(agent)
    names = {one.name: one for one in family.parameters}
    assert [one.transform for one in names.values()].count("positive") == 3
    assert len(names) == 5
    assert any("gain" in name for name in names)
    other = {name: np.asarray(one.start) + 0.1 for name, one in names.items()}
    built = family.build(other)
    assert float(built.primitives[0].sd) == pytest.approx(0.6)
    whole = learning.family_of_agent(agent, ("sd", "weight", "eps", "prior"))
    assert {one.name.split(".")[0] for one in whole.parameters} == {
        "fixed", "constant", "pushed", "model", "eps", "prior"}  # fmt: skip
    np.testing.assert_allclose(
        family.build({n: np.asarray(p.start) for n, p in names.items()}).problem(jnp.array([0.5])).pi,
        agent.problem(jnp.array([0.5])).pi, atol=1e-12,
    )  # fmt: skip
    own = pc.Composer([Own(jnp.ones(3), jnp.zeros(3), 2.0)], pc.Cost(jnp.zeros(3)), pc.Finite(3), 1.0)
    assert [one.free for one in learning.family_of_agent(own).parameters] == [3, 3]
    assert learning.family_of_agent(own, ("bias", "prior")).parameters[0].free == 3


GRID = pc.Grid(-2.0, 2.0, 15)


def pushed(gains, sds):
    """Gaussians whose mean is a gain times what is seen."""
    parts = [pc.Gaussian(eqx.Partial(lambda x, k, *, gain: gain * x, gain=jnp.array([g])), s)
             for g, s in zip(gains, sds, strict=True)]  # fmt: skip
    return pc.Composer(parts, pc.Cost(lambda x, u, k: 2.0 * (u[0] - jnp.sin(3.0 * x[0])) ** 2), GRID, 0.2)


def owned(slopes):
    """Parts of a user."""
    parts = [Own(jnp.asarray(slope), jnp.zeros(3), 1.0) for slope in slopes]
    return pc.Composer(parts, pc.Cost(lambda x, u, k: jnp.array([1.0, 0.0, -1.0])[u] * x[0]), pc.Finite(3), 0.2)


@pytest.mark.parametrize(
    ("truth", "begin"),
    [(pushed([1.0, -1.0], [0.3, 0.6]), pushed([0.3, -0.3], [0.5, 0.5])),
     (owned([[2.0, 0.0, -1.0], [0.0, 2.0, 1.0]]), owned([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]))],
    ids=["Gaussian", "own"],
)  # fmt: skip
def test_other_parts_are_learned_for_both_objectives(truth, begin, rng):
    """Gaussian primitives and parts of a user: no less likely than the planted ones, and no step goes the wrong way.

    400 decisions tell the Gaussians. They do not tell twelve numbers of parts that see one number.
    """
    seen = rng.uniform(-1.5, 1.5, size=(400, 1))
    pi = np.stack([np.asarray(truth.problem(x).pi) for x in seen])
    posed = pc.problem(pi=pi, action_cost=np.stack([np.asarray(truth.problem(x).action_cost) for x in seen]), eps=0.2)
    prob = np.einsum("tdn,tn->td", pi, pc.solve(posed).weights)
    prob /= prob.sum(axis=1, keepdims=True)
    action = (np.cumsum(prob, axis=1) < rng.random((400, 1))).sum(axis=1).clip(max=prob.shape[1] - 1)
    data = inference.observations(seen, action)
    told = []
    found = pc.learn(begin, "likelihood", data, starts=2, progress=lambda *what: told.append(what))
    planted = pose(truth, "likelihood", data)
    assert found.value >= log_prob(planted, unconstrained(planted.parameters, {})).mean()
    if isinstance(truth.primitives[0], pc.Gaussian):
        assert learning.match(found.agent, truth, data).distance.max() < 0.12
    assert [what for what, _, _ in told[:2]] == ["optimising from several starts"] * 2
    low = pc.learn(begin, "energy", data, starts=1)
    assert low.value < low.paths[0][0] - 0.01
    for path, way in (*((path, 1) for path in found.paths), *((path, -1) for path in low.paths)):
        assert np.all(way * np.diff(path) >= -1e-11 * np.abs(path[:-1]))
    assert np.all(low.gap <= 1e-9)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"objective": "fun"}, "objective = 'fun'"),
        ({"mixing": "magic"}, "mixing = 'magic'"),
        ({"free": ("gains",)}, "no array of this agent"),
        ({"objective": "energy", "free": ("primitives", "eps")}, "would lower it for nothing"),
        ({"mixing": "softmax"}, "pass both or neither"),
        ({"data": None}, "exactly one of data"),
        ({"agent": chooser(TRUTH).replace(gate="prior")}, "gate='equilibrium'"),
        ({"rounds": 0}, "rounds = 0"),
        ({"rounds": 2}, "rounds = 2: .* with env alone"),
        ({"data": None, "env": lambda agent, number: None}, "needs data"),
    ],
)
def test_wrong_input_is_named(change, words, decisions):
    given = {"agent": chooser(TRUTH), "data": decisions} | change
    with pytest.raises(ValueError, match=words):
        learning.learn(**given)


def test_energy_in_an_environment():
    """Situations come from the agent's own episodes."""
    from policychord.worlds import Bandit

    agent = pc.Composer(
        [pc.Table([0.6, 0.4]), pc.Table([0.3, 0.7])],
        pc.Cost(lambda belief, arm, k: -0.3 * belief.mean[arm]), pc.Finite(2), 0.2,
    )  # fmt: skip
    found = pc.learn(agent, "energy", env=Bandit((10.0, 10.0)), steps=4, episodes=3, starts=1)
    assert found.weights.shape == (12, 2)
    assert found.value < found.paths[0][0]


def test_agents_within_an_agent_learn(rng):
    """Their tables stay probabilities, temperatures and priors stay as they are, and the gradient is that of V*."""
    cost, rows = 2.0 * rng.normal(size=(30, 4)), rng.dirichlet(np.full(4, 2.0), size=4)
    whole = chooser(TRUTH[:2]).replace(primitives={"low": chooser(rows[:2], 0.5), "high": chooser(rows[2:], 2.0)})
    seen = inference.observations(cost, np.zeros(30, int), k=np.zeros(30, int))
    posed = pose(whole, "energy", seen)
    assert [one.name for one in posed.parameters] == [f"{a}.primitive {i}[0]" for a in ("low", "high") for i in (0, 1)]
    z = unconstrained(posed.parameters, {})
    slope = log_posterior(posed.likelihood, z)[1]
    for direction in rng.normal(size=(3, len(z))):
        up, down = (log_posterior(posed.likelihood, z + h * direction)[0] for h in (1e-5, -1e-5))
        np.testing.assert_allclose(slope @ direction, (up - down) / 2e-5, rtol=1e-4)
    found = pc.learn(whole, "energy", seen, starts=1)
    assert found.value < found.paths[0][0] - 0.2
    low, high = found.agent.primitives
    assert (float(low.eps), float(high.eps)) == (0.5, 2.0)
    for table in (*low.primitives, *high.primitives):
        np.testing.assert_allclose(np.exp(table.log_rows).sum(), 1.0, atol=1e-12)
    assert {one.name for one in learning.family_of_agent(whole, ("eps", "prior")).parameters} == {
        "eps", "prior", "low.eps", "low.prior", "high.eps", "high.prior"}  # fmt: skip


def test_members_learn_while_they_act(rng):
    """Each round the agent acts with what it has learned, and learns from all that it has met."""
    offers, met = 2.0 * rng.normal(size=(3, 12, 4)), []

    def meet(agent, number):
        met.append(agent)
        return inference.observations(offers[number], np.zeros(12, int), k=np.zeros(12, int))

    begin = chooser(BEGIN)
    found = pc.learn(begin, "energy", env=meet, rounds=3, starts=1)
    assert met[0] is begin
    assert found.weights.shape == (36, 3)
    first = pc.learn(begin, "energy", meet(begin, 0), starts=1)
    for own, other in zip(met[1].primitives, first.agent.primitives, strict=True):
        np.testing.assert_allclose(own.log_rows, other.log_rows, atol=1e-12)
    everything = inference.observations(offers.reshape(36, 4), np.zeros(36, int), k=np.zeros(36, int))
    at_first = pose(met[2], "energy", everything)
    before = -log_posterior(at_first.likelihood, unconstrained(at_first.parameters, {}))[0] / 36
    assert found.paths[0][0] == pytest.approx(before, abs=1e-5)  # zeros of tables begin at 1e-6
    assert found.value < before


def test_every_round_begins_elsewhere():
    from policychord.worlds import Pendulum

    agent = pc.Composer(
        [pc.Gaussian([torque], 0.3) for torque in (-0.5, 0.5)],
        pc.Cost(lambda x, u, k: (u[0] + x.angle) ** 2), pc.Grid(-2.0, 2.0, 17, saturates=True), 0.2,
    )  # fmt: skip
    found = pc.learn(agent, "energy", env=Pendulum(), steps=2, episodes=3, rounds=2, starts=1)
    angles = found.posed.likelihood.data["observation"].angle
    assert len(np.unique(angles)) == 12
