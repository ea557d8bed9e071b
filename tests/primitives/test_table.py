"""Primitives that state their probabilities."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import log_softmax

from policychord.actions import Finite
from policychord.primitives import Categorical, Table

LABELS = Finite(3)
ROWS = np.array([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]])


def test_one_row_serves_every_state():
    table = Table([0.5, 0.25, 0.25])
    for state in (None, 0, 17):
        np.testing.assert_allclose(np.exp(table.log_prob(LABELS, state, 0)), [0.5, 0.25, 0.25], rtol=1e-15)


def test_the_state_is_the_row_or_says_which():
    plain, turned = Table(ROWS), Table(ROWS, row=lambda state, k: (state + k) % 2)
    for state in (0, 1):
        for k in (0, 1):
            np.testing.assert_allclose(np.exp(plain.log_prob(LABELS, state, k)), ROWS[state], rtol=1e-15)
            np.testing.assert_allclose(np.exp(turned.log_prob(LABELS, state, k)), ROWS[(state + k) % 2], rtol=1e-15)


def test_what_is_forbidden_has_no_probability():
    assert Table(ROWS).log_prob(LABELS, 0, 0)[2] == -np.inf


@pytest.mark.parametrize("row", [2, -1, 100])
def test_a_row_that_is_not_there_is_nobody_elses(row):
    found = jax.jit(lambda i: Table(ROWS).log_prob(LABELS, i, 0))(row)
    assert np.isnan(found).all()


def test_rounding_is_taken_out():
    table = Table(np.array([0.3333333, 0.3333333, 0.3333334]) * (1 + 5e-7))
    np.testing.assert_allclose(np.exp(table.log_prob(LABELS, None, 0)).sum(), 1.0, atol=1e-15)


def test_categorical_is_a_softmax(rng):
    logits = rng.normal(size=(5, 3)) * 100
    primitive = Categorical(lambda state, k: jnp.asarray(logits)[state] + k)
    for state in range(5):
        np.testing.assert_allclose(primitive.log_prob(LABELS, state, 4), log_softmax(logits[state]), rtol=1e-12)


def test_categorical_forbids_with_minus_infinity():
    found = Categorical(lambda state, k: jnp.array([0.0, -jnp.inf, 0.0])).log_prob(LABELS, None, 0)
    np.testing.assert_allclose(np.exp(found), [0.5, 0.0, 0.5], rtol=1e-15)


COMPLAINTS = {
    "nan": (lambda: Table([[0.5, 0.5], [np.nan, 1.0]]), r"probabilities\[1, 0\] = nan: probabilities lie in \[0, 1\]"),
    "negative": (lambda: Table([1.5, -0.5]), r"probabilities\[0, 1\] = -0.5"),
    "sum": (lambda: Table([[0.5, 0.5], [0.5, 0.4]]), r"probabilities\[1\] sums to 0.9: divide every row by its sum"),
    "axes": (lambda: Table(np.full((1, 2, 2), 0.5)), r"probabilities has shape \(1, 2, 2\)"),
    "empty": (lambda: Table([]), r"probabilities has shape \(1, 0\)"),
    "size": (lambda: Table([0.5, 0.5]).log_prob(LABELS, None, 0), "the table has 2 actions, the action set 3"),
    "logits": (
        lambda: Categorical(lambda state, k: jnp.zeros(2)).log_prob(LABELS, None, 0),
        r"logits\(observation, k\) has shape \(2,\): one for each of the 3 actions",
    ),
    "a function": (lambda: Table(lambda state, k: [0.5, 0.5]), "probabilities is a function: .* use Categorical"),
    "no function": (lambda: Categorical([0.0, 1.0]), "logits is a list: pass a function of .* Table takes numbers"),
}


@pytest.mark.parametrize("name", COMPLAINTS)
@pytest.mark.usefixtures("without_type_checks")
def test_complaints_name_the_argument(name):
    make, message = COMPLAINTS[name]
    with pytest.raises(ValueError, match=message):
        make()
