"""Recorded choices, explained: the likelihood against a plain loop, and trials that are not there."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from policychord import Composer, problem, replay, solve
from policychord.actions import Finite
from policychord.loops import to_dataset
from policychord.models import Cost
from policychord.primitives import Categorical, Table
from policychord.worlds import Belief, update_belief

from .parts import BELIEF, CHOOSER

EPISODES, TRIALS = 5, 10
RNG = np.random.default_rng(8)
CHOICES = RNG.integers(0, 2, size=(EPISODES, TRIALS))
REWARDS = RNG.normal(2.0, 6.0, size=(EPISODES, TRIALS))


def update(belief, choice, reward, k):
    return update_belief(belief, choice, reward, 10.0)


def softmax(z):
    return np.exp(z - z.max()) / np.exp(z - z.max()).sum()


def by_hand(choices, rewards):
    """ln p(choice) of one episode, and its weights, with NumPy and one solve for each trial."""
    mean, variance = np.zeros(2), np.full(2, 100.0)
    log_prob, weights = [], []
    for choice, reward in zip(choices, rewards, strict=True):
        pi = np.stack([softmax(mean / 5), softmax(np.sqrt(variance)), [0.7, 0.3]], axis=-1)
        w = solve(problem(pi=pi, action_cost=-mean / 10, eps=0.05), tol=1e-13).weights
        log_prob.append(np.log(pi @ w)[choice])
        weights.append(w)
        gain = variance[choice] / (variance[choice] + 10)
        mean[choice] += gain * (reward - mean[choice])
        variance[choice] *= 1 - gain
    return np.array(log_prob), np.array(weights)


@pytest.fixture(scope="module")
def trace():
    return replay(CHOOSER, BELIEF, update, choices=CHOICES, observed=REWARDS)


def test_the_likelihood_is_that_of_a_plain_loop(trace):
    for i in range(EPISODES):
        log_prob, weights = by_hand(CHOICES[i], REWARDS[i])
        np.testing.assert_allclose(trace.log_prob[i], log_prob, atol=1e-5)
        np.testing.assert_allclose(trace.weights[i], weights, atol=1e-4)
    assert trace.converged.all()
    assert (trace.gap <= CHOOSER.tol).all()


def test_the_trace_holds_beliefs_before_each_choice(trace):
    assert isinstance(trace.state, Belief)
    np.testing.assert_array_equal(trace.state.mean[:, 0], np.zeros((EPISODES, 2)))
    np.testing.assert_array_equal(trace.action, CHOICES)
    last = jax.vmap(lambda b, c, r: update(b, c, r, 0))(
        jax.tree.map(lambda a: a[:, -1], trace.state), CHOICES[:, -1], REWARDS[:, -1]
    )
    np.testing.assert_allclose(trace.final_state.mean, last.mean, rtol=1e-12)
    assert np.isnan(trace.reward).all()  # what a reward is, only `update` knows


def test_missing_trials_are_neither_scored_nor_learned_from(trace):
    """Ragged ends and holes, filled with nonsense."""
    recorded = np.ones((EPISODES, TRIALS), bool)
    recorded[1, 6:] = recorded[2, [0, 4]] = recorded[4] = False
    choices, rewards = np.where(recorded, CHOICES, -99), np.where(recorded, REWARDS, np.nan)
    found = replay(CHOOSER, BELIEF, update, choices=choices, observed=rewards, recorded=recorded)
    np.testing.assert_array_equal(found.alive, recorded)
    assert (np.asarray(found.log_prob)[~recorded] == 0).all()
    assert found.converged.all()
    for i in range(EPISODES):
        here = recorded[i]
        log_prob, _ = by_hand(CHOICES[i, here], REWARDS[i, here])
        np.testing.assert_allclose(np.asarray(found.log_prob)[i, here], log_prob, atol=1e-5)
    np.testing.assert_allclose(found.log_prob[0], trace.log_prob[0], atol=1e-12)
    np.testing.assert_array_equal(found.final_state.mean[4], np.zeros(2))


def test_a_one_step_gate_does_not_relax_where_there_is_no_trial():
    """Its weights move on from those of the last recorded trial: holes change nothing."""
    gate = CHOOSER.replace(gate="one-step")
    recorded = np.ones((1, TRIALS), bool)
    recorded[0, [2, 3, 7]] = False
    still = lambda belief, choice, seen, k: belief  # noqa: E731
    holes = replay(gate, BELIEF, still, choices=CHOICES[:1], recorded=recorded)
    dense = replay(gate, BELIEF, still, choices=CHOICES[:1, recorded[0]])
    np.testing.assert_allclose(np.asarray(holes.weights)[recorded], dense.weights[0], rtol=1e-12)
    assert np.abs(np.diff(dense.weights[0], axis=0)).max() > 1e-3  # so a step too many would show


def test_time_and_nothing_seen():
    """Without observations, `update` still gets the choice and the time."""
    found = replay(CHOOSER, BELIEF, lambda b, choice, seen, k: Belief(b.mean + k, b.variance), choices=CHOICES)
    np.testing.assert_array_equal(found.state.mean[0, :, 0], np.concatenate([[0], np.cumsum(np.arange(TRIALS - 1))]))


def test_a_choice_that_was_impossible_has_no_likelihood():
    from policychord import Composer
    from policychord.primitives import Table

    sure = Composer([Table([1.0, 0.0])], CHOOSER.model, CHOOSER.actions, 0.1)
    found = replay(sure, BELIEF, lambda b, c, r, k: b, choices=CHOICES[:1])
    np.testing.assert_array_equal(found.log_prob[0], np.where(CHOICES[0] == 0, 0.0, -np.inf))


COMPLAINTS = {
    "axes": ({"choices": CHOICES[0]}, r"choices has shape \(10,\) and dtype int64: pass whole numbers"),
    "floats": ({"choices": 1.0 * CHOICES}, "choices has .* dtype float64"),
    "empty": ({"choices": np.zeros((0, 3), int)}, r"choices has shape \(0, 3\)"),
    "too large": ({"choices": CHOICES + np.eye(EPISODES, TRIALS, dtype=int) * 2}, "an index from 0 to 1"),
    "negative": ({"choices": CHOICES - 2}, r"choices\[0, 0\] = -\d"),
    "recorded": ({"recorded": np.ones((2, 2), bool)}, r"recorded has shape \(2, 2\), choices \(5, 10\)"),
    "observed": ({"observed": {"reward": REWARDS[:, :3]}}, r"observed has an array of shape \(5, 3\)"),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPLAINTS)
def test_complaints_name_the_argument(name):
    changes, message = COMPLAINTS[name]
    with pytest.raises(ValueError, match=message):
        replay(CHOOSER, BELIEF, update, **({"choices": CHOICES, "observed": jnp.asarray(REWARDS)} | changes))


def test_a_belief_in_whole_numbers_learns_fractions_and_is_labelled():
    def delta_rule(values, choice, reward, k):
        return values.at[choice].add(0.3 * (reward - values[choice]))

    chooser = Composer(
        {"greedy": Categorical(lambda q, k: 3.0 * q), "any": Table([0.5, 0.5])}, Cost([0.0, 0.1]), Finite(2), eps=0.5
    )
    whole = replay(chooser, np.array([0, 0]), delta_rule, choices=CHOICES, observed=REWARDS)
    exact = replay(chooser, np.zeros(2), delta_rule, choices=CHOICES, observed=REWARDS)
    np.testing.assert_array_equal(whole.state, exact.state)
    data = to_dataset(whole)
    assert data.belief.dims == ("episode", "time", "belief_axis_0")
    assert "reward" not in data
