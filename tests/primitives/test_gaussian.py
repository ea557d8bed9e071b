"""Gaussians on action sets, judged by SciPy's density normalised on the points."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from policychord.actions import Finite, Grid
from policychord.primitives import Gaussian
from policychord.primitives.columns import columns, separable

BOX = Grid([-1.0, -2.0], [1.0, 2.0], [7, 9])
DISC = Grid([-1.0, -1.0], [1.0, 1.0], 9, radius=1.0)
BALL = Grid([-1.0, -1.0, -1.0], [1.0, 1.0, 1.0], 5, radius=1.0)
LISTED = Finite([[0.0, 1.0], [1.0, 0.0], [-0.5, -0.5]])
SETS = {"box": BOX, "disc": DISC, "ball": BALL, "list": LISTED}


# compiled once for each set and kind of spread
log_prob = eqx.filter_jit(lambda primitive, actions: primitive.log_prob(actions, None, 0))
by_columns = eqx.filter_jit(lambda primitive, actions, by_axes: columns((primitive,), actions, None, 0, by_axes)[:, 0])


def judge(actions, mean, covariance):
    log_density = multivariate_normal(mean, covariance).logpdf(np.asarray(actions.points))
    return log_density - logsumexp(log_density)


def covariance_of(kind, dim, rng):
    if kind == "one sd":
        return {"sd": 0.3}, 0.09 * np.eye(dim)
    if kind == "an sd for each axis":
        sd = rng.uniform(0.1, 0.6, dim)
        return {"sd": sd}, np.diag(sd**2)
    if kind == "diagonal":
        variance = rng.uniform(0.05, 0.3, dim)
        return {"covariance": np.diag(variance)}, np.diag(variance)
    root = rng.normal(size=(dim, dim))
    full = 0.05 * (root @ root.T + 0.3 * np.eye(dim))
    return {"covariance": full}, full


@pytest.mark.parametrize("kind", ["one sd", "an sd for each axis", "diagonal", "full"])
@pytest.mark.parametrize("name", SETS)
def test_is_the_density_normalised_on_the_points(name, kind, rng):
    actions = SETS[name]
    dim = actions.points.shape[1]
    given, covariance = covariance_of(kind, dim, rng)
    mean = rng.uniform(-0.4, 0.4, dim)
    primitive = Gaussian(mean, **given, outside="tail")
    expected = judge(actions, mean, covariance)
    np.testing.assert_allclose(log_prob(primitive, actions), expected, atol=1e-11)


def test_the_mean_may_follow_state_and_time():
    primitive = Gaussian(lambda x, k: x * k, 0.3)
    found = jax.jit(lambda x, k: primitive.log_prob(BOX, x, k))(np.array([0.1, 0.2]), 3)
    np.testing.assert_allclose(found, judge(BOX, [0.3, 0.6], 0.09 * np.eye(2)), atol=1e-12)


@pytest.mark.parametrize("name", ["box", "disc", "ball"])
def test_clip_moves_the_mean_and_tail_does_not(name):
    actions = SETS[name]
    dim = actions.points.shape[1]
    mean = np.full(dim, 2.3)
    inside = np.asarray(actions.inside(jnp.asarray(mean)))
    clipped, tail = (log_prob(Gaussian(mean, 0.4, outside=how), actions) for how in ("clip", "tail"))
    np.testing.assert_allclose(clipped, judge(actions, inside, 0.16 * np.eye(dim)), atol=1e-11)
    np.testing.assert_allclose(tail, judge(actions, mean, 0.16 * np.eye(dim)), atol=1e-11)
    # inside the set they are one and the same
    mean = np.full(dim, 0.1)
    both = [log_prob(Gaussian(mean, 0.4, outside=how), actions) for how in ("clip", "tail")]
    np.testing.assert_allclose(*both, atol=1e-12)


@pytest.mark.parametrize("how", ["clip", "tail"])
@pytest.mark.parametrize("name", ["box", "disc", "ball"])
@pytest.mark.parametrize("far", [1e6, 1e15])
def test_a_mean_far_outside_leaves_all_digits(name, how, far):
    """Along the first axis: the nearest point takes nearly all, and points that mirror each other get the same."""
    actions = SETS[name]
    dim = actions.points.shape[1]
    for given in ({"sd": 0.2}, {"covariance": 0.04 * np.eye(dim) + 0.004 * (np.ones((dim, dim)) - np.eye(dim))}):
        primitive = Gaussian(np.eye(dim)[0] * far, **given, outside=how)
        prob = np.exp(log_prob(primitive, actions))
        assert np.isfinite(prob).all()
        np.testing.assert_allclose(prob.sum(), 1.0, atol=1e-12)
        farthest = np.asarray(actions.points)[:, 0].max()
        assert np.asarray(actions.points)[np.argmax(prob), 0] == farthest
    if how == "tail" and name == "box":
        # far out only the second axis still has a spread, and that mean is in the middle
        by_rows = np.exp(log_prob(Gaussian([far, 0.0], 0.2, outside="tail"), BOX)).reshape(7, 9)
        np.testing.assert_allclose(by_rows[-1], by_rows[-1, ::-1], rtol=1e-12)


def test_the_products_of_a_coarse_disc_never_underflow():
    """Narrow spreads on lopsided grids: a mean in a corner of the disc is many spreads away from every point."""
    lopsided = Grid([-1.0, -1.0], [1.0, 1.0], [401, 4], radius=0.9)
    coarse = Grid([-1.0, -1.0, -1.0, -1.0], [1.0, 1.0, 1.0, 1.0], 4, radius=1.0)
    for actions, mean in ((lopsided, [0.9, 0.0]), (coarse, [1.0, 0.0, 0.0, 0.0]), (DISC, [0.7, 0.7])):
        for sd in (3e-4, 3e-3, 0.02, 0.04, 0.1):
            primitive = Gaussian(mean, sd)
            if not separable((primitive,), actions):
                continue  # then the columns are log_prob's own
            found = by_columns(primitive, actions, True)
            expected = np.exp(log_prob(primitive, actions))
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)
    assert separable((Gaussian([0.0, 0.0], 0.2),), DISC)
    assert not separable((Gaussian([0.0, 0.0], 3e-3),), lopsided)


def test_which_products_are_taken_by_axes():
    flat, tilted = Gaussian([0.0, 0.0], 0.2), Gaussian([0.0, 0.0], covariance=[[1.0, 0.5], [0.5, 1.0]])
    assert separable((flat, flat), BOX)
    assert not separable((flat, tilted), BOX)
    assert not separable((flat,), LISTED)
    assert separable((Gaussian([0.0, 0.0], covariance=np.diag([0.1, 0.2])),), BOX)


def test_one_number_is_a_mean_on_one_axis():
    line, points = Grid(-2.0, 2.0, 5), Finite([-2.0, -1.0, 0.0, 1.0, 2.0])
    expected = judge(line, [1.0], [[0.25]])
    for mean in (1.0, [1.0], lambda x, k: jnp.asarray(1.0), lambda x, k: jnp.asarray([1.0])):
        for actions in (line, points):
            np.testing.assert_allclose(Gaussian(mean, 0.5).log_prob(actions, None, 0), expected, atol=1e-13)


def test_whole_numbers_do_not_round_the_mean():
    found = Gaussian(0.4, 0.5, outside="tail").log_prob(Finite([-1, 0, 1]), None, 0)
    np.testing.assert_allclose(found, judge(Grid(-1.0, 1.0, 3), [0.4], [[0.25]]), atol=1e-13)


@pytest.mark.parametrize("given", ["sd", "covariance"])
def test_spreads_have_derivatives(given):
    def of(scale):
        spread = scale * jnp.ones(2) if given == "sd" else scale**2 * jnp.array([[1.0, 0.3], [0.3, 1.0]])
        return Gaussian([0.2, 0.1], **{given: spread}).log_prob(BOX, None, 0)[5]

    step = 1e-5
    slope = (of(0.5 + step) - of(0.5 - step)) / (2 * step)
    np.testing.assert_allclose(jax.jit(jax.grad(of))(0.5), slope, rtol=1e-7)


FLAT = lambda x, k: jnp.zeros(2)  # noqa: E731
COMPLAINTS = {
    "no spread": (lambda: Gaussian(FLAT), "exactly one of sd .* and covariance"),
    "two spreads": (lambda: Gaussian(FLAT, 0.1, covariance=np.eye(2)), "exactly one of sd .* and covariance"),
    "outside": (lambda: Gaussian(FLAT, 0.1, outside="wrap"), "outside = 'wrap': use 'clip'"),
    "negative sd": (lambda: Gaussian(FLAT, [0.1, -0.1]), r"sd = \[0.1, -0.1\]: pass a positive number"),
    "nan sd": (lambda: Gaussian(FLAT, np.nan), "sd = nan"),
    "matrix sd": (lambda: Gaussian(FLAT, np.eye(2)), "sd = .* one for each axis"),
    "nan mean": (lambda: Gaussian([0.0, np.nan], 0.1), r"mean = \[0.0, nan\]: pass finite numbers"),
    "lopsided": (lambda: Gaussian(FLAT, covariance=[[1.0, 0.2], [0.1, 1.0]]), "covariance has .* a symmetric matrix"),
    "vector": (lambda: Gaussian(FLAT, covariance=[1.0, 2.0]), r"covariance has shape \(2,\)"),
    "indefinite": (
        lambda: Gaussian(FLAT, covariance=[[1.0, 2.0], [2.0, 1.0]]),
        r"covariance is not positive definite \(smallest eigenvalue -1\)",
    ),
    "mean's shape": (
        lambda: Gaussian([0.0, 0.0, 0.0], 0.1).log_prob(BOX, None, 0),
        r"mean\(observation, k\) has shape \(3,\), but an action has shape \(2,\)",
    ),
    "sd's shape": (lambda: Gaussian(FLAT, [0.1, 0.1, 0.1]).log_prob(BOX, None, 0), r"sd has shape \(3,\): .* 2 axes"),
    "sd's shape, early": (lambda: separable((Gaussian(FLAT, [0.1, 0.1, 0.1]),), DISC), r"sd has shape \(3,\)"),
    "covariance's shape": (
        lambda: Gaussian(FLAT, covariance=np.eye(3) + 0.1).log_prob(BOX, None, 0), r"covariance has shape \(3, 3\)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPLAINTS)
@pytest.mark.usefixtures("without_type_checks")
def test_complaints_name_the_argument(name):
    make, message = COMPLAINTS[name]
    with pytest.raises(ValueError, match=message):
        make()


def grow(x, k):
    """A spread that grows with the first number of the state."""
    return 0.2 + 0.1 * jnp.abs(x) + 0.05 * k


@pytest.mark.parametrize("name", SETS)
def test_the_spread_may_follow_state_and_time(name):
    actions = SETS[name]
    x = jnp.full(actions.points.shape[1], 0.3).at[0].set(-0.6)
    follows = Gaussian(lambda x, k: x, grow)
    fixed = Gaussian(lambda x, k: x, np.asarray(grow(x, 2)))
    found = jax.jit(lambda x, k: follows.log_prob(actions, x, k))(x, 2)
    np.testing.assert_allclose(found, fixed.log_prob(actions, x, 2), atol=1e-11)
    by_axes = separable((follows,), actions)
    assert by_axes == (name == "box")  # on a ball the spread would have to be known before
    column = jax.jit(lambda x, k: columns((follows,), actions, x, k, by_axes)[:, 0])(x, 2)
    np.testing.assert_allclose(column, np.exp(found), atol=1e-13)


@pytest.mark.parametrize("sd", [0.0, -0.1, np.nan, np.inf])
@pytest.mark.parametrize("actions", [BOX, DISC], ids=["box", "disc"])
def test_a_spread_that_is_none_is_not_a_number(actions, sd):
    """So a composer leaves the primitive out, as it does with a mean that is not one."""
    primitive = Gaussian([0.1, 0.2], lambda x, k: sd)
    assert np.isnan(primitive.log_prob(actions, None, 0)).all()
    assert np.isnan(columns((primitive,), actions, None, 0, separable((primitive,), actions))).all()
