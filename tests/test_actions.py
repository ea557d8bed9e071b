"""Action sets: their points, means and limits."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from policychord.actions import Finite, Grid


def test_labels_count_from_zero():
    labels = Finite(3)
    assert labels.points.tolist() == [0, 1, 2]
    assert labels.labels
    assert labels.size == 3
    assert labels.at(2) == 2
    assert Finite([4, 7]).labels


def test_vectors_are_quantities_even_if_they_are_whole():
    vectors = Finite([[0, 1], [1, 0]])
    assert not vectors.labels
    assert vectors.points.dtype == np.float64
    assert not Finite([0.0, 1.0]).labels


def test_mean_of_vectors_is_the_nearest_of_them():
    vectors = Finite([[0.0, 0.0], [1.0, 0.0], [0.0, 3.0]])
    np.testing.assert_array_equal(vectors.mean(jnp.array([0.4, 0.6, 0.0])), [1.0, 0.0])
    np.testing.assert_array_equal(vectors.mean(jnp.array([0.3, 0.0, 0.7])), [0.0, 3.0])
    assert Finite([0.0, 1.0]).mean(jnp.array([0.7, 0.3])) == 0.0


def test_grid_is_the_product_of_its_axes_in_row_major_order():
    grid = Grid([0.0, -1.0], [1.0, 1.0], [2, 3])
    expected = [[0.0, -1.0], [0.0, 0.0], [0.0, 1.0], [1.0, -1.0], [1.0, 0.0], [1.0, 1.0]]
    np.testing.assert_array_equal(grid.points, expected)
    np.testing.assert_array_equal(grid.spacing, [1.0, 1.0])
    np.testing.assert_array_equal(grid.low, [0.0, -1.0])
    np.testing.assert_array_equal(grid.high, [1.0, 1.0])
    assert grid.size == 6


def test_one_number_serves_all_axes():
    grid = Grid([-1.0, -1.0, -1.0], 1.0, 4)
    assert grid.size == 64
    assert Grid(-2.0, 2.0, 41).points.shape == (41, 1)


@pytest.mark.parametrize("dim", [2, 3])
def test_a_ball_holds_its_points_and_no_others(dim):
    centre, radius = 0.5, 1.5
    grid = Grid([centre - radius] * dim, [centre + radius] * dim, 11, radius=radius)
    full = Grid([centre - radius] * dim, [centre + radius] * dim, 11)
    far = np.linalg.norm(np.asarray(full.points) - centre, axis=1)
    np.testing.assert_array_equal(grid.points, np.asarray(full.points)[far <= radius + 1e-9])
    # the poles lie on the sphere up to rounding, and belong to it
    assert np.isclose(far, radius).sum() >= 2 * dim
    np.testing.assert_array_equal(np.asarray(grid.mask).ravel() == 1, far <= radius + 1e-9)
    np.testing.assert_array_equal(np.asarray(full.points)[grid.kept], grid.points)


def test_mean_of_a_distribution(rng):
    grid = Grid([-1.0, -1.0], [1.0, 1.0], 5, radius=1.0)
    prob = rng.dirichlet(np.ones(grid.size))
    np.testing.assert_allclose(grid.mean(jnp.asarray(prob)), prob @ np.asarray(grid.points), atol=1e-15)


# a box, a disc, a disc wider than its box on one side or on both, and a ball
LIMITS = {
    "box": Grid([-1.0, 0.0], [1.0, 4.0], 3),
    "disc": Grid([-1.0, -1.0], [3.0, 3.0], 5, radius=1.5),
    "disc past one side": Grid([-2.0, -0.5], [2.0, 0.5], 5, radius=1.8),
    "disc past all sides": Grid([-1.0, -1.0], [1.0, 1.0], 5, radius=1.2),
    "ball past two sides": Grid([-1.0, -0.6, -3.0], [1.0, 0.6, 3.0], 5, radius=1.4),
}


@pytest.mark.parametrize("name", LIMITS)
def test_inside_is_the_nearest_action_that_is_allowed(name, rng):
    """Judged by a general optimiser."""
    grid = LIMITS[name]
    inside = eqx.filter_jit(grid.inside)
    low, high = np.asarray(grid.low), np.asarray(grid.high)
    centre = (low + high) / 2
    limits = []
    if grid.radius is not None:
        limits = [{"type": "ineq", "fun": lambda u: grid.radius**2 - np.sum((u - centre) ** 2)}]
    for action in rng.normal(scale=3.0, size=(12, len(low))):
        judged = minimize(
            lambda u, action=action: np.sum((u - action) ** 2), centre, method="SLSQP", tol=1e-14,
            bounds=list(zip(low, high, strict=True)), constraints=limits,
        )  # fmt: skip
        np.testing.assert_allclose(inside(jnp.asarray(action)), judged.x, atol=1e-5)


@pytest.mark.parametrize("name", LIMITS)
def test_what_is_allowed_stays(name):
    grid = LIMITS[name]
    np.testing.assert_allclose(
        jax.jit(jax.vmap(lambda u: grid.inside(u)))(grid.points), grid.points, rtol=0, atol=1e-15
    )


def test_inside_has_a_derivative_at_the_centre_and_none_beyond_the_border():
    disc = LIMITS["disc"]
    slope = jax.jit(jax.jacobian(lambda u: disc.inside(u)))
    np.testing.assert_allclose(slope(jnp.array([1.0, 1.0])), np.eye(2), atol=1e-15)
    outside = slope(jnp.array([9.0, 1.0]))
    assert np.isfinite(outside).all()
    np.testing.assert_allclose(outside[0], 0.0, atol=1e-12)


def test_far_outside_does_not_overflow():
    for grid in LIMITS.values():
        found = np.asarray(eqx.filter_jit(grid.inside)(jnp.full(len(grid.axes), 1e200)))
        assert np.isfinite(found).all()
        assert (found <= np.asarray(grid.high)).all()


COMPLAINTS = {
    "no labels": (lambda: Finite(0), r"points has shape \(0,\): a finite action set needs at least one"),
    "a scalar": (lambda: Finite(2.5), r"points has shape \(\)"),
    "nan": (lambda: Finite([0.0, np.nan]), "points must be finite numbers"),
    "text": (lambda: Finite(["left", "right"]), "points must be finite numbers, .* or the number of labels"),
    "mean of labels": (lambda: Finite(2).mean(jnp.array([0.5, 0.5])), "mean of labels is not an action: use selection"),
    "axes": (lambda: Grid([0, 0], [1, 1, 1], 3), r"low \(2,\), high \(3,\) and count \(1,\) do not agree"),
    "matrix": (lambda: Grid(np.zeros((2, 2)), 1.0, 3), r"low and high have shape \(2, 2\)"),
    "empty box": (lambda: Grid([0.0, 1.0], [1.0, 1.0], 3), r"low = \[0.0, 1.0\], .* finite corners with low < high"),
    "infinite box": (lambda: Grid(0.0, np.inf, 3), "finite corners"),
    "one point": (lambda: Grid(0.0, 1.0, 1), r"count = \[1\]: a grid needs .* at least 2"),
    "half a point": (lambda: Grid(0.0, 1.0, 2.5), r"count = \[2.5\]: a grid needs a whole number"),
    "huge": (lambda: Grid([0.0] * 4, 1.0, 100), r"count = .* makes 1e\+08 points \(limit 1e\+07\)"),
    "radius": (lambda: Grid([0.0, 0.0], 1.0, 4, radius=-1.0), "radius = -1.0: pass a positive number, or None"),
    "empty ball": (lambda: Grid([0.0, 0.0], 1.0, 4, radius=0.01), "radius = 0.01 keeps none of the 16 grid points"),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPLAINTS)
def test_complaints_name_the_argument(name):
    make, message = COMPLAINTS[name]
    with pytest.raises(ValueError, match=message):
        make()
