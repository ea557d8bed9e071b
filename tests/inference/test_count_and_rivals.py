"""Degenerate answers, the number of primitives, and rivals."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from policychord import energy, inference, problem, solve, time_scales
from policychord.inference import learning, optimise
from policychord.inference.comparison import held_out_by
from policychord.inference.learning.count import _choose, _grown, _match_columns, estimator_of
from policychord.inference.learning.markov import expect
from policychord.inference.learning.objectives import learn_posed, log_prob, pose
from policychord.inference.parameters import unconstrained

from .test_learn import BEGIN, TRUTH, chooser, decisions, found, posed  # noqa: F401  (fixtures)


def test_matching_finds_any_order(rng):
    columns = rng.dirichlet(np.ones(5), size=(7, 4)).transpose(0, 2, 1)
    order = rng.permutation(4)
    both = _match_columns(columns[..., order], columns)
    np.testing.assert_array_equal(order[both.order], np.arange(4))
    np.testing.assert_allclose(both.distance, 0.0, atol=1e-15)
    fewer = _match_columns(columns, columns[..., [2, 0]])
    np.testing.assert_array_equal(fewer.order, [2, 0])


def test_degenerate_answers_are_named(found, decisions):  # noqa: F811
    same = found._replace(agent=chooser(TRUTH[[0, 0, 1]]))
    assert "primitive 0 and primitive 1 are equal" in learning.degenerate(same, decisions)[0]
    unused = found._replace(weights=np.tile([0.995, 0.0045, 0.0005], (len(found.weights), 1)))
    said = " ".join(learning.degenerate(unused, decisions))
    assert "primitive 1 is unused" in said
    assert "primitive 0 explains everything" in said
    assert "the weights do not move" in said
    assert "the data tell the mixture" in said
    own = " ".join(learning.degenerate(unused._replace(objective="energy"), decisions))
    assert "the data tell" not in own
    assert "one primitive can be that mixture" in own


def test_number_is_the_smallest_that_is_not_behind(found):  # noqa: F811
    subject = np.repeat(np.arange(10), 20)
    base = np.random.default_rng(0).normal(size=200)
    wobble = np.tile([0.02, -0.02], 100)
    rows = [(1, found, base - 0.5, ()), (2, found, base, ()), (3, found, base + 1e-4 + wobble, ())]
    told = _choose(rows, subject)
    assert told.best == 3
    assert told.chosen == 3  # errors over subjects are exact here: the wobble has mean zero in each
    rows[2] = (3, found, base + 1e-4 + 0.02 * (2 * (subject % 2) - 1), ())
    assert (told := _choose(rows, subject)).chosen == 2
    assert "as well as 3 do" in told.sentence
    assert told.tried[0].behind.clear
    rows = [(1, found, base - 0.5, ()), (2, found, base, ())]
    assert _choose(rows, subject).sentence.startswith("2 primitives explain held-out decisions best")


@pytest.mark.parametrize("mixing", ["gate", "constant", "softmax"])
def test_more_primitives_begin_where_fewer_ended(mixing, decisions):  # noqa: F811
    """The grown start is as likely as what fewer learned, but for the small weight of the new primitive."""
    features = (lambda offer: offer) if mixing == "softmax" else None
    free = ("primitives", "prior") if mixing == "gate" else ("primitives",)
    two = learn_posed(pose(chooser(BEGIN[:2]), "likelihood", decisions, free, mixing, features), starts=1)
    three = pose(chooser(BEGIN), "likelihood", decisions, free, mixing, features)
    there = log_prob(three, _grown(two.theta, three)).mean()
    assert there > two.value - 0.05
    assert there > log_prob(three, unconstrained(three.parameters, {})).mean()
    assert learn_posed(three, starts=_grown(two.theta, three)[None]).value > two.value - 1e-9


def test_numbers_are_searched_from_smaller_ones(decisions):  # noqa: F811
    """A run from two equal primitives keeps them equal; one from what a single primitive learned does not."""
    alike = np.tile([[0.26, 0.25, 0.25, 0.24]], (2, 1))
    one, two = learning.how_many(lambda n: chooser(alike[:n]), decisions, (1, 2), starts=1, folds=2).tried
    assert two.learned.value > one.learned.value + 0.01


@pytest.fixture
def asked(monkeypatch):
    """How often the objective was asked for; the fourth time somebody presses Ctrl-C."""
    count, real = [], optimise.by_group

    def interrupted(*given):
        count.append(1)
        if len(count) == 4:
            raise KeyboardInterrupt
        return real(*given)

    monkeypatch.setattr(optimise, "by_group", interrupted)
    return count


def test_interruption_ends_the_comparison_of_rivals(asked, decisions):  # noqa: F811
    """A run answers Ctrl-C with the best so far; what is made of many runs must not go on with the next."""
    with pytest.raises(KeyboardInterrupt):
        learning.compare_mixings(chooser(BEGIN[:2]), decisions, lambda offer: offer, starts=1, folds=2)
    assert len(asked) <= 5  # the run asks once more for the best so far


def test_rivals_are_compared_with_each_other_and_with_chance(decisions):  # noqa: F811
    """All on the same held-out people, those of a hidden-Markov mixture with its own estimates among them."""
    compared = learning.compare_mixings(chooser(BEGIN[:2]), decisions, lambda offer: offer, starts=1, folds=2)
    assert set(compared.names) == {"gate", "constant", "softmax", "markov", "chance"}
    np.testing.assert_allclose(compared.score("chance").each, -np.log(4))
    posed = pose(chooser(BEGIN[:2]), "likelihood", decisions)  # noqa: F811
    fold = inference.folds_of(decisions.subject, 2)
    best = learn_posed(posed, starts=1)
    np.testing.assert_allclose(compared.score("gate").each, held_out_by(estimator_of(posed), fold, best.z), atol=1e-9)
    expected = inference.paired(compared.score("gate").each, compared.score("markov").each, decisions.subject)
    assert compared.difference("gate", "markov") == pytest.approx(expected)
    assert compared.score("markov").parameters == 2 * 3 + 3  # two primitives over four actions, and a chain of two


def test_interruption_ends_the_search_for_the_number_and_a_folder_goes_on(asked, decisions, tmp_path):  # noqa: F811
    def search(numbers, progress=None):
        return learning.how_many(lambda n: chooser(BEGIN[:n]), decisions, numbers, starts=1, folds=2, folder=tmp_path,
                                 progress=progress)  # fmt: skip

    with pytest.raises(KeyboardInterrupt):
        search((2, 3))
    assert (interrupted := len(asked)) <= 5
    told = []
    first = search((2,), lambda *what: told.append(what))
    assert told == [("2 primitives", 0, 1)]
    before = len(asked)
    again = search((2,))
    assert again.tried[0].held_out == first.tried[0].held_out
    assert len(asked) - before < before - interrupted  # folds are learned again, the whole is not


# ----------------------------------------------------------------------------------------------- hidden Markov


def test_expected_counts_agree_with_every_path(rng):
    n, lengths = 2, (4, 3)
    start, move = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(n), size=n)
    log_b = np.log(rng.uniform(0.1, 1.0, size=(sum(lengths), n)))
    place = np.array([[0, 1, 2, 3], [4, 5, 6, -1]])
    got, total = expect(log_b, place, start, move), np.zeros((n, n))
    for q, length in enumerate(lengths):
        rows = place[q, :length]
        prob, pairs, belief = [], np.zeros((n, n)), np.zeros((length, n))
        for path in itertools.product(range(n), repeat=length):
            p = start[path[0]] * np.exp(log_b[rows, path].sum())
            p *= np.prod([move[a, b] for a, b in itertools.pairwise(path)])
            prob.append(p)
            belief[np.arange(length), path] += p
            for a, b in itertools.pairwise(path):
                pairs[a, b] += p
        np.testing.assert_allclose(got.each[q, :length].sum(), np.log(sum(prob)), atol=1e-12)
        np.testing.assert_allclose(got.belief[q, :length], belief / sum(prob), atol=1e-12)
        total += pairs / sum(prob)
    np.testing.assert_allclose(got.transition, total, atol=1e-12)


def test_hidden_markov_mixture_is_learned(rng):
    """Sticky states are found, the likelihood never falls, and predictions are those of the filter."""
    truth, stays = np.array([[0.85, 0.1, 0.05], [0.05, 0.15, 0.8]]), 0.95
    state = (np.cumsum(rng.random((8, 100)) > stays, axis=1) + rng.integers(2, size=(8, 1))) % 2
    action = (np.cumsum(truth, axis=1)[state] < rng.random((8, 100, 1))).sum(axis=-1).clip(max=2).ravel()
    data = inference.observations(
        np.zeros((800, 3)), action, k=np.zeros(800, int), subject=np.repeat(np.arange(8), 100)
    )
    agent = chooser(np.array([[0.5, 0.3, 0.1, 0.1], [0.1, 0.3, 0.5, 0.1]]))
    agent = type(agent)([type(agent.primitives[0])(row) for row in ([0.5, 0.3, 0.2], [0.2, 0.3, 0.5])], agent.model,
                        type(agent.actions)(3), 0.1)  # fmt: skip
    hidden = learning.hide(agent, data)
    one = learning.learn_markov(hidden, starts=1)
    assert np.all(np.diff(one.path) >= -1e-7)
    pi = np.exp(np.stack([np.asarray(p.log_rows[0]) for p in one.agent.primitives], axis=1))
    assert _match_columns(pi[None], truth.T[None]).distance.max() < 0.1
    assert abs(np.diag(one.transition).mean() - stays) < 0.06
    np.testing.assert_allclose(learning.predict_markov(hidden, one), one.each, atol=1e-9)
    guessed = one.belief.argmax(axis=1)
    assert max(np.mean(guessed == state.ravel()), np.mean(guessed != state.ravel())) > 0.9


@pytest.mark.parametrize("mixing", ["constant", "softmax"])
def test_rivals_learn_their_own_weights(mixing, decisions):  # noqa: F811
    posed = pose(chooser(BEGIN[:2]), "likelihood", decisions, mixing=mixing,  # noqa: F811
                 features=(lambda offer: offer) if mixing == "softmax" else None)  # fmt: skip
    one = learn_posed(posed, starts=1)
    assert one.value > one.paths[0][0]
    np.testing.assert_allclose(one.weights.sum(axis=1), 1.0)
    moved = one.weights.std(axis=0).max()
    assert moved < 1e-12 if mixing == "constant" else moved > 0.05
    assert np.isnan(one.gap).all()


# --------------------------------------------------------------------------------------------------- local rule


def test_local_rule_steps_down_the_envelope(rng):
    cost, logits, rate = rng.normal(size=(1, 4)), rng.normal(size=(2, 4, 3)), 1e-4
    moved = learning.drift(cost, 0.2, logits, rate=rate, passes=1)
    from policychord.inference.learning.local import _mean_energy

    slope = jax.vmap(jax.grad(lambda one: _mean_energy(one, jnp.asarray(cost), 0.2, jnp.log(jnp.full(3, 1 / 3)))))(
        jnp.asarray(logits)
    )
    np.testing.assert_allclose((moved.logits - logits) / rate, -np.asarray(slope), atol=1e-6)


def test_what_is_sampled_is_the_same_step_on_average(rng):
    cost, logits, rate = rng.normal(size=(1, 4)), rng.normal(size=(4, 3)), 1.0
    many = np.tile(logits, (20_000, 1, 1))
    drawn = learning.drift(cost, 0.2, many, signal="sampled", rate=rate, passes=1, seed=3).logits - logits
    whole = learning.drift(cost, 0.2, logits, rate=rate, passes=1).logits[0] - logits
    error = drawn.std(axis=0) / np.sqrt(len(many))
    assert np.all(np.abs(drawn.mean(axis=0) - whole) < 5 * error)


def test_flow_lowers_the_energy_of_slow_synapses(rng):
    cost, logits = 2.0 * rng.normal(size=(3, 4)), rng.normal(size=(1, 4, 2))
    flowing = learning.drift(cost, 0.5, logits, signal="flow", rate=0.2, passes=30, hold=5.0)
    assert flowing.energy[0, -1] < flowing.energy[0, 0] - 0.02
    np.testing.assert_allclose(flowing.pi.sum(axis=1), 1.0)


@pytest.mark.thorough
def test_circuit_drifts_like_the_flow(rng):
    """Slow synapses see settled weights in both."""
    cost, logits = 2.0 * rng.normal(size=(3, 4)), rng.normal(size=(1, 4, 2))
    flowing = learning.drift(cost, 0.5, logits, signal="flow", rate=0.2, passes=3, hold=5.0)
    circuit = learning.drift(cost, 0.5, logits, signal="flow", circuit=True, rate=0.2, passes=3, hold=5.0)
    np.testing.assert_allclose(circuit.energy, flowing.energy, atol=0.02)


def test_local_rule_refuses_wrong_shapes():
    with pytest.raises(ValueError, match="logits has shape"):
        learning.drift(np.zeros((2, 3)), 0.1, np.zeros((4, 2)))
    with pytest.raises(ValueError, match="signal = 'loud'"):
        learning.drift(np.zeros((2, 3)), 0.1, np.zeros((3, 2)), signal="loud")
    with pytest.raises(ValueError, match="positive numbers that sum to one"):
        learning.drift(np.zeros((2, 3)), 0.1, np.zeros((3, 2)), prior=[0.5, 0.6])


@pytest.mark.parametrize("eps", [0.05, 1.0])
def test_accumulated_steps_never_raise_the_energy(rng, eps):
    """From any start and at any rate up to one, and by at least the divergence that the page promises."""
    cost, logits, prior = 3.0 * rng.normal(size=(5, 4)), 4.0 * rng.normal(size=(8, 4, 3)), [0.2, 0.3, 0.5]
    for rate in (1.0, 0.3):
        went = learning.drift(cost, eps, logits, signal="accumulated", rate=rate, passes=60, prior=prior)
        assert np.diff(went.energy, axis=1).max() <= 1e-12
        one = learning.drift(cost, eps, logits, signal="accumulated", rate=rate, passes=1, prior=prior)
        assert one.energy.shape == (8, 1)
        for k in range(8):
            before, after = (
                np.asarray(jax.nn.softmax(jnp.asarray(rows), axis=0)) for rows in (logits[k], one.logits[k])
            )
            given = problem(pi=before, action_cost=cost, eps=np.full(5, eps), prior=np.tile(prior, (5, 1)))
            best = solve(given)
            fell = energy(given, best.weights).mean() - one.energy[k, 0]
            shared = (before * np.log(before / after)).sum(axis=0)
            assert fell >= best.weights.mean(axis=0) @ shared / rate - 1e-12


def test_accumulated_steps_leave_corners():
    """Where a softmax is flat the gradient vanishes; these steps do not, and here all starts end alike."""
    rng = np.random.default_rng(0)
    cost, begin = 2.0 * rng.normal(size=(4, 4)), 10.0 * rng.normal(size=(16, 4, 2))
    ends = learning.drift(cost, 0.1, begin, signal="accumulated", rate=1.0, passes=400).energy[:, -1]
    np.testing.assert_allclose(ends, -2.50688, atol=1e-4)
    assert learning.drift(cost, 0.1, begin, rate=0.5, passes=400).energy[:, -1].max() > -2.2


@pytest.mark.thorough
def test_accumulated_steps_in_the_circuit_are_those_of_settled_weights(rng):
    cost, logits = 2.0 * rng.normal(size=(3, 4)), rng.normal(size=(1, 4, 2))
    settled = learning.drift(cost, 0.5, logits, signal="accumulated", rate=1.0, passes=5)
    circuit = learning.drift(cost, 0.5, logits, signal="accumulated", circuit=True, passes=5, rate=1.0, hold=20.0)
    np.testing.assert_allclose(circuit.energy, settled.energy, atol=1e-6)


def test_accumulated_steps_refuse_a_rate_that_may_raise_the_energy():
    for circuit in (False, True):
        with pytest.raises(ValueError, match=r"rate = 1\.5: accumulated steps"):
            learning.drift(np.zeros((2, 3)), 0.1, np.zeros((3, 2)), signal="accumulated", rate=1.5, circuit=circuit)
    with pytest.raises(ValueError, match=r"signal = 'settled': use 'flow', 'accumulated'"):
        learning.drift(np.zeros((2, 3)), 0.1, np.zeros((3, 2)), circuit=True)
    with pytest.raises(ValueError, match=r"pass circuit=True too"):
        learning.drift(np.zeros((2, 3)), 0.1, np.zeros((3, 2)), scales=time_scales(0.1))
