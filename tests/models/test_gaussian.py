"""Gaussian targets: the divergence in closed form, judged by numerical integration and by Monte Carlo."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import multivariate_normal, norm

from policychord.actions import Finite, Grid
from policychord.models import GaussianTarget, action_cost, gaussian_kl

FULL = np.array([[0.5, 0.2], [0.2, 0.4]])
OTHER = np.array([[0.9, -0.3], [-0.3, 0.6]])
COVARIANCES = {"number": 0.3, "diagonal": np.array([0.2, 0.5]), "full": FULL, "other": OTHER}


def as_matrix(covariance):
    covariance = np.asarray(covariance)
    return covariance if covariance.ndim == 2 else np.diag(np.broadcast_to(covariance, 2))


@pytest.mark.parametrize(("p", "q"), [(0.3, 0.3), (0.3, 1.2), (2.0, 0.1)])
def test_against_numerical_integration(p, q):
    mean, target = 0.7, -0.4
    given, wanted = norm(mean, np.sqrt(p)), norm(target, np.sqrt(q))
    expected, _ = quad(
        lambda x: given.pdf(x) * (given.logpdf(x) - wanted.logpdf(x)), *given.interval(1 - 1e-15), epsabs=1e-12
    )
    np.testing.assert_allclose(gaussian_kl(mean, p, target, q), expected, rtol=1e-9)


@pytest.mark.parametrize("p", COVARIANCES)
@pytest.mark.parametrize("q", COVARIANCES)
def test_against_monte_carlo(p, q, rng):
    mean, target = np.array([0.3, -0.2]), np.array([-0.1, 0.4])
    given = multivariate_normal(mean, as_matrix(COVARIANCES[p]))
    wanted = multivariate_normal(target, as_matrix(COVARIANCES[q]))
    x = given.rvs(100_000, random_state=rng)
    sample = given.logpdf(x) - wanted.logpdf(x)
    found = gaussian_kl(mean, COVARIANCES[p], target, COVARIANCES[q])
    assert abs(found - sample.mean()) <= 5 * sample.std() / np.sqrt(len(x)) + 1e-12


@pytest.mark.parametrize("p", COVARIANCES)
@pytest.mark.parametrize("q", COVARIANCES)
def test_against_the_formula_with_matrices(p, q):
    mean, target = np.array([0.3, -0.2]), np.array([-0.1, 0.4])
    P, Q = as_matrix(COVARIANCES[p]), as_matrix(COVARIANCES[q])
    away = mean - target
    expected = 0.5 * (
        np.trace(np.linalg.solve(Q, P)) - 2 + np.linalg.slogdet(Q)[1] - np.linalg.slogdet(P)[1]
        + away @ np.linalg.solve(Q, away)
    )  # fmt: skip
    np.testing.assert_allclose(gaussian_kl(mean, COVARIANCES[p], target, COVARIANCES[q]), expected, rtol=1e-12)


PUSHES = Grid([-1.0, -1.0], [1.0, 1.0], 3)


def test_prices_every_action_by_where_it_leads():
    """All arguments as functions, each of which gets the state, the action and the time it should."""
    x = jnp.array([0.5, -0.5])
    model = GaussianTarget(
        predict=lambda x, u, k: x + u * k,
        target=lambda x, k: -x + k,
        covariance=lambda x, u, k: jnp.array([0.1, 0.2]) * (1 + u[0] ** 2) + 0.01 * k,
        target_covariance=lambda x, k: jnp.asarray(FULL) * k,
    )
    parts = model.terms(PUSHES, x, 3)
    for i, u in enumerate(np.asarray(PUSHES.points)):
        covariance = np.array([0.1, 0.2]) * (1 + u[0] ** 2) + 0.03
        expected = gaussian_kl(x + 3 * u, covariance, -x + 3, 3 * FULL)
        np.testing.assert_allclose(parts["distance"][i] + parts["spread"][i], expected, rtol=1e-12)


def test_distance_and_spread_are_kept_apart():
    model = GaussianTarget(lambda x, u, k: x + u, [1.0, 0.0], [0.1, 0.2])
    parts = model.terms(PUSHES, jnp.zeros(2), 0)
    assert set(parts) == {"distance", "spread"}
    away = np.asarray(PUSHES.points) - [1.0, 0.0]
    np.testing.assert_allclose(parts["distance"], 0.5 * (away**2 / [0.1, 0.2]).sum(1), rtol=1e-12)
    np.testing.assert_allclose(parts["spread"], 0.0, atol=1e-15)  # as wide as the prediction unless told


def test_a_state_may_be_one_number():
    model = GaussianTarget(lambda x, u, k: x + u, 1.0, 0.5)
    found = action_cost(model, Finite([0.0, 1.0, 2.0]), jnp.asarray(0.5), 0)
    np.testing.assert_allclose(found, [0.25, 0.25, 2.25], rtol=1e-12)


def still(x, u, k):
    return x


ORIGIN = jnp.zeros(2)
COMPLAINTS = {
    "predict": (lambda: GaussianTarget(np.eye(2), [0.0, 0.0], 1.0), "predict must be a function of"),
    "covariance alone": (lambda: GaussianTarget(still, [0.0], still), "target_covariance must be given"),
    "negative": (lambda: GaussianTarget(still, [0.0], -1.0), "covariance = -1.0: pass a positive number"),
    "nan": (lambda: GaussianTarget(still, [0.0, 0.0], [1.0, np.nan]), r"covariance = \[1.0, nan\]"),
    "indefinite": (lambda: GaussianTarget(still, [0.0, 0.0], 1.0, [[1.0, 2.0], [2.0, 1.0]]), "target_covariance = "),
    "lopsided": (lambda: GaussianTarget(still, [0.0, 0.0], [[1.0, 0.5], [0.1, 1.0]]), "symmetric positive definite"),
    "kl": (lambda: gaussian_kl(0.0, 1.0, 0.0, 0.0), "target_covariance = 0.0"),
    "shape of predict": (
        lambda: GaussianTarget(still, [0.0, 0.0, 0.0], 1.0).terms(PUSHES, ORIGIN, 0),
        r"predict gives shape \(2,\) but the target has shape \(3,\)",
    ),
    "shape of covariance": (
        lambda: GaussianTarget(still, [0.0, 0.0], [1.0, 1.0, 1.0]).terms(PUSHES, ORIGIN, 0),
        r"covariance of shape \(3,\) does not fit a state of 2 numbers",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPLAINTS)
@pytest.mark.usefixtures("without_type_checks")
def test_complaints_name_the_argument(name):
    make, message = COMPLAINTS[name]
    with pytest.raises(ValueError, match=message):
        make()
