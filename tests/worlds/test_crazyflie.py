"""The Crazyflie in three dimensions: a recorded flight, what it must do, gusts, crashes and wrong arguments."""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from policychord.worlds import Crazyflie, figure_eight
from policychord.worlds.crazyflie import (
    DT,
    FLOOR,
    GRAVITY,
    HOVER,
    LEAST,
    MASS,
    _commanded,
    _hovering,
    _matrix_of,
    _rotation_of,
    _turned,
)

RECORDED = Path(__file__).with_name("crazyflie.npz")
LEVEL = np.array([0.0, 0.0, 0.0, HOVER])
UPRIGHT = np.array([0.0, 0.0, 0.0, 1.0])


@jax.jit
def fly(env, begin, actions, forces):
    """States after every decision."""

    def decide(state, given):
        following = env.move(state, *given)
        return following, following

    return jax.lax.scan(decide, begin, (actions, forces))[1]


def held(env, action, decisions, force=(0.0, 0.0, 0.0), begin=None):
    begin = _hovering([0.0, 0.0, 1.0]) if begin is None else begin
    return fly(env, begin, jnp.tile(jnp.asarray(action), (decisions, 1)), jnp.tile(jnp.asarray(force), (decisions, 1)))


def test_it_flies_as_recorded():
    """Eight flights of crazyflow's first-principles model (benchmarks/record_crazyflie.py)."""
    with np.load(RECORDED) as recorded:
        velocity, action, force, wanted = (recorded[name] for name in ("velocity", "action", "force", "states"))
    begin = jax.vmap(lambda v: _hovering([0.0, 0.0, 1.5], v))(velocity)
    states = jax.vmap(fly, in_axes=(None, 0, 0, 0))(Crazyflie(), begin, action, force)
    parts = (states.position, states.attitude, states.velocity, states.rate, states.rotors)
    found = np.concatenate([np.asarray(part)[:, 4::5] for part in parts], axis=-1)
    # q and -q are the same attitude
    found[..., 3:7] *= np.sign(np.sum(found[..., 3:7] * wanted[..., 3:7], axis=-1, keepdims=True))
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


def test_it_hangs_in_the_air():
    states = held(Crazyflie(), LEVEL, 100)
    np.testing.assert_allclose(states.position, np.tile([0.0, 0.0, 1.0], (100, 1)), atol=1e-9)


def test_without_thrust_it_falls_and_drag_brakes_it():
    fall = held(Crazyflie(), [0.0, 0.0, 0.0, 0.0], 100, begin=_hovering([0.0, 0.0, 90.0])).velocity[:, 2]
    free = held(Crazyflie(drag=0.0), [0.0, 0.0, 0.0, 0.0], 100, begin=_hovering([0.0, 0.0, 90.0])).velocity[:, 2]
    idle = 4 * LEAST  # the rotors never stand still
    assert (free[-1] - free[-2]) / DT == pytest.approx(idle / MASS - GRAVITY, rel=1e-3)
    assert free[-1] < fall[-1] < 0


def test_it_leans_and_goes_where_it_leans():
    states = held(Crazyflie(), [0.0, 0.2, 0.0, HOVER / np.cos(0.2)], 50)
    lean = np.asarray(_matrix_of(states.attitude[-1]))[:, 2]
    np.testing.assert_allclose(lean, [np.sin(0.2), 0.0, np.cos(0.2)], atol=5e-3)
    assert states.position[-1, 0] > 0.5
    assert abs(states.position[-1, 1]) < 0.01


def test_it_turns_by_the_sum_of_its_turns():
    states = held(Crazyflie(), [0.0, 0.0, 0.5, HOVER], 100)
    body = np.asarray(_matrix_of(states.attitude[-1]))
    assert np.arctan2(body[1, 0], body[0, 0]) == pytest.approx(100 * DT * 0.5, abs=0.05)


def test_rotations():
    angle = np.array([0.3, -0.2, 0.5])
    small = jax.lax.fori_loop(0, 1000, lambda _, q: _turned(q, jnp.asarray(angle / 1000)), jnp.asarray(UPRIGHT))
    np.testing.assert_allclose(small, _turned(jnp.asarray(UPRIGHT), jnp.asarray(angle)), atol=1e-12)
    np.testing.assert_allclose(_rotation_of(0.0, 0.0, 0.7) @ np.array([1, 0, 0]), [np.cos(0.7), np.sin(0.7), 0])
    about_x = _turned(jnp.asarray(UPRIGHT), jnp.asarray([0.4, 0.0, 0.0]))
    np.testing.assert_allclose(_matrix_of(about_x), _rotation_of(0.4, 0.0, 0.0), atol=1e-15)
    slope = jax.jacfwd(_turned, argnums=1)(jnp.asarray(UPRIGHT), jnp.zeros(3))
    np.testing.assert_allclose(slope, np.vstack([np.eye(3) / 2, np.zeros(3)]), atol=1e-12)  # and no NaN at rest


def test_what_cannot_be_commanded_is_cut():
    np.testing.assert_allclose(_commanded([9.0, -9.0, 9.0, -9.0]), [0.5, -0.5, 2.0, 0.0])


def test_the_path_is_as_fast_as_it_says():
    rows = figure_eight(steps=600, period=6.0)
    for place, speed in ((slice(0, 3), slice(3, 6)), (slice(3, 6), slice(6, 9))):
        slope = np.gradient(rows[:, place], DT, axis=0)[1:-1]
        np.testing.assert_allclose(slope, rows[1:-1, speed], atol=2e-3)


def test_a_gust_lasts_three_decisions_and_comes_once():
    env = Crazyflie(force_sd=0.0, gust=0.6, gusts=1)
    begin = env.reset(jax.random.key(3))._replace(gust_times=jnp.asarray([2]))
    still, pushed = begin._replace(gusts=jnp.zeros((1, 3))), begin
    moved = []
    for k in range(6):
        still, pushed = (env.step(jax.random.key(k), s, jnp.asarray(LEVEL), k).state for s in (still, pushed))
        moved.append(float(jnp.linalg.norm(pushed.velocity - still.velocity)))
    assert moved[0] == moved[1] == 0.0
    assert np.all(np.diff(moved[1:5]) > 0.2)  # 0.6 N for 20 ms on 43 g are 0.28 m/s
    assert moved[5] < moved[4]
    assert float(jnp.linalg.norm(begin.gusts)) == pytest.approx(0.6)


def test_a_drone_that_touches_the_floor_has_crashed():
    env = Crazyflie(gust=0.0)
    step, state, ended = eqx.filter_jit(env.step), env.reset(jax.random.key(0)), []
    for k in range(60):
        state, _, over = step(jax.random.key(k), state, jnp.asarray([0.0, 0.0, 0.0, 0.1]), k)
        ended.append(bool(over))
    assert ended == sorted(ended)  # once down it stays down
    assert ended[-1]
    assert not ended[10]
    assert float(state.position[2]) == FLOOR


def test_the_reward_is_the_tracking_error_against_the_next_row():
    env = Crazyflie(force_sd=0.0, gust=0.0)
    before = env.reset(jax.random.key(0))
    after, reward, _ = env.step(jax.random.key(1), before, jnp.asarray(LEVEL), 0)
    row, view = figure_eight()[1], env.observe(after)
    error = 10 * np.sum((after.position - row[:3]) ** 2) + np.sum((after.velocity - row[3:6]) ** 2)
    assert float(reward) == pytest.approx(-float(error + np.sum(view.tilt**2)), rel=1e-12)
    assert float(view.thrust) == pytest.approx(HOVER, rel=1e-6)


def test_another_mass_is_another_drone():
    light, heavy = (held(Crazyflie(mass=m), LEVEL, 50).position[-1, 2] for m in (0.9, 1.1))
    assert heavy < 1.0 < light
    near, far = (held(Crazyflie(drag=d), [0.0, 0.3, 0.0, HOVER], 50).position[-1, 0] for d in (3.0, 1.0))
    assert near < far


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"mass": 0.0}, "mass = 0.0"),
        ({"force_sd": -1.0}, "force_sd = -1.0"),
        ({"gusts": -1}, "gusts = -1"),
        ({"drag": float("nan")}, "drag = nan"),
        ({"path": np.zeros((3, 6))}, r"path has shape \(3, 6\)"),
    ],
)
def test_wrong_arguments_are_named(wrong, said, without_type_checks):
    with pytest.raises(ValueError, match=said):
        Crazyflie(**wrong)
