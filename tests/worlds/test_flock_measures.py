"""Measures of flocks whose answers are known."""

import numpy as np
import pytest

from policychord.worlds.flock import measures


def one_frame(position, velocity=None):
    position = np.asarray(position, dtype=float)[None, None]
    return position, np.zeros_like(position) if velocity is None else np.asarray(velocity, dtype=float)[None, None]


def test_order_parameters_of_a_line_and_of_a_wheel():
    angle = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    wheel = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    turning = np.stack([-np.sin(angle), np.cos(angle)], axis=-1)
    position, velocity = one_frame(wheel, 0.3 * turning)
    assert measures.milling(position, velocity) == pytest.approx(1.0)
    assert measures.polarization(velocity) == pytest.approx(0.0, abs=1e-12)
    assert measures.polarization(one_frame(wheel, np.ones((12, 2)))[1]) == pytest.approx(1.0)


def test_standing_boids_give_zero_not_nan():
    position, velocity = one_frame(np.zeros((4, 2)))
    assert measures.polarization(velocity) == 0.0
    assert measures.milling(position, velocity) == 0.0


@pytest.mark.parametrize("boids", [30, 600])
def test_pair_distance_is_the_smallest(boids):
    rng = np.random.default_rng(0)
    frames = rng.uniform(-5, 5, (2, 3, boids, 2))
    found = measures._pair_distance(frames)
    offset = frames[1, 2][:, None] - frames[1, 2][None]
    every = np.linalg.norm(offset, axis=-1) + 1e9 * np.eye(boids)
    assert found.shape == (2, 3)
    assert found[1, 2] == pytest.approx(every.min())


def test_groups_are_connected_through_others():
    chain = [[float(x), 0.0] for x in (0, 10, 20)] + [[100.0, 0.0], [105.0, 0.0]]
    number, largest = measures._group_series(one_frame(chain)[0], reach=12.0)
    assert number == 2.0
    assert largest == pytest.approx(0.6)
    number, largest = measures._group_series(one_frame(np.zeros((3, 2)))[0], reach=12.0)
    assert (number, largest) == (1.0, 1.0)


def test_arrival_and_weight_sd_before_it():
    distance = np.array([[9.0, 4.0, 2.0, 8.0], [9.0, 9.0, 9.0, 9.0]])
    np.testing.assert_array_equal(measures.arrivals(distance), [2, 4])
    weights = np.zeros((2, 4, 1, 3))
    weights[:, 2:, 0, 0] = 3.0
    np.testing.assert_allclose(measures._weight_sd(weights)[:, 0], 0.5)
    np.testing.assert_allclose(measures._weight_sd(weights, measures.arrivals(distance))[:, 0], [0.0, 0.5])
    np.testing.assert_allclose(measures._imbalance(np.full((1, 2, 3, 3), 1 / 3)), 0.0, atol=1e-15)


def test_goal_distance_is_that_of_the_centre():
    assert measures.goal_distance(one_frame([[0.0, 0], [6.0, 8.0]])[0], (0, 0)) == pytest.approx(5.0)
    assert measures.flock_spread(one_frame([[0.0, 0], [6.0, 8.0]])[0]) == pytest.approx(5.0)


def test_the_end_is_the_last_fifty_steps():
    series = np.concatenate([np.zeros((1, 10)), np.ones((1, 50))], axis=1)
    assert measures.at_end(series) == 1.0
    assert measures.at_end(series[:, :12]) == pytest.approx(2 / 12)
