"""The planar drone: its equations, limits, disturbances, floor and paths."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from policychord.worlds import Quadrotor, path
from policychord.worlds.quadrotor.physics import (
    FLOOR,
    GRAVITY,
    HOVER,
    INERTIA,
    LARGEST_THRUST,
    LEAST_THRUST,
    LEVER,
    MASS,
    _folded,
    seen,
)

STILL = np.zeros(2)
HANG = np.full(2, HOVER)


def moved(env, thrust, force=STILL, steps=1, **changes):
    """The state after some decisions under constant thrusts and force."""
    state = env.reset(jax.random.key(0))._replace(**{name: jnp.asarray(value) for name, value in changes.items()})
    return several(env, state, jnp.asarray(thrust), jnp.asarray(force), steps)


@jax.jit
def several(env, state, thrust, force, steps):
    return jax.lax.fori_loop(0, steps, lambda _, now: env.move(now, thrust, force), state)


@pytest.fixture(scope="module")
def env():
    return Quadrotor()


def test_hover_stays(env):
    state = moved(env, HANG, steps=20)
    np.testing.assert_allclose(seen(state), env.start, atol=1e-12)
    assert state.time == 20


def test_it_solves_the_equations_of_motion(env):
    """Against an integrator of high order; one physics step of lag leaves a difference of that size."""
    thrust, force = np.array([0.15, 0.153]), np.array([0.02, -0.03])

    def rates(t, y):
        vx, vz, p, q = y[2:]
        lift = thrust.sum() / MASS
        ax, az = lift * np.sin(p) + force[0] / MASS, lift * np.cos(p) + force[1] / MASS - GRAVITY
        return [vx, vz, ax, az, q, LEVER * (thrust[1] - thrust[0]) / INERTIA]

    right = solve_ivp(rates, (0, 0.2), [0, 1.2, 0, 0, 0.3, 0], rtol=1e-10, atol=1e-12).y[:, -1]
    start = {"pitch": 0.3, "lag": [0.0, 1.2, 0.3]}
    state = moved(env, thrust, force, steps=10, **start)
    found = np.array([*state.position, *state.velocity, state.pitch, state.rate])
    np.testing.assert_allclose(found, right, rtol=0.02, atol=2e-3)


def test_forces_at_the_centre_do_not_turn_it_but_at_a_stale_point_they_do():
    push = np.array([0.0, 0.3])
    moving = {"velocity": [1.0, 0.0]}
    assert moved(Quadrotor(disturbance="centre"), HANG, push, **moving).rate == 0.0
    # the drone has moved by 1 m/s for 0..18 physics steps and was one behind at the first
    torque = sum((i - 1) * 1e-3 for i in range(20)) * 0.3
    found = moved(Quadrotor(disturbance="stale-point"), HANG, push, **moving, lag=[-1e-3, 1.2, 0.0]).rate
    assert found == pytest.approx(torque * 1e-3 / INERTIA, rel=1e-4)  # it turns a little, and drifts


def test_the_impulse_comes_once_and_at_its_time():
    env = Quadrotor(force_sd=0.0, thrust_sd=0.0, impulse=1.0)
    start = env.reset(jax.random.key(1))._replace(impulse_time=jnp.asarray(2))
    speeds = []
    state = start
    for k in range(4):
        state = env.step(jax.random.key(k), state, jnp.asarray(HANG), k).state
        speeds.append(float(state.velocity[0]))
    np.testing.assert_allclose(speeds, [0, 0, 0.02 / MASS, 0.02 / MASS], atol=1e-9)


def test_impulse_times_fill_their_window():
    env = Quadrotor(impulse_window=(10, 14))
    times = [int(env.reset(jax.random.key(i)).impulse_time) for i in range(60)]
    assert set(times) == {10, 11, 12, 13}


def test_thrusts_are_limited_and_noisy():
    quiet = Quadrotor(force_sd=0.0, thrust_sd=0.0)
    start = quiet.reset(jax.random.key(0))
    key = jax.random.key(3)
    beyond, at_limit = (quiet.step(key, start, jnp.array(u), 0) for u in ([9.0, -9.0], [LARGEST_THRUST, LEAST_THRUST]))
    assert all(np.array_equal(a, b) for a, b in zip(beyond.state, at_limit.state, strict=True))
    noisy = Quadrotor(force_sd=0.0, thrust_sd=0.01)
    rates = jax.vmap(lambda i: noisy.step(jax.random.fold_in(key, i), start, jnp.asarray(HANG), 0).state.rate)
    spread = np.std(rates(jnp.arange(2000)))
    assert spread == pytest.approx(np.sqrt(2) * 0.01 * LEVER * 0.02 / INERTIA, rel=0.08)


def test_thrusts_are_cut_before_and_after_the_noise():
    """A command beyond the limits is as good as one at them, and noise takes no thrust past them."""
    env = Quadrotor(force_sd=0.0, thrust_sd=0.2, state_weights=np.zeros(6), thrust_weight=1.0)
    start, keys = env.reset(jax.random.key(0)), jax.random.split(jax.random.key(5), 200)

    def efforts(command):
        return -np.asarray(jax.vmap(lambda key: env.step(key, start, jnp.asarray(command), 0).reward)(keys))

    beyond, at_limit = efforts([9.0, 9.0]), efforts([LARGEST_THRUST, LARGEST_THRUST])
    np.testing.assert_array_equal(beyond, at_limit)
    largest = 2 * (LARGEST_THRUST - HOVER) ** 2  # both at the limit, which noise of this size often reaches
    assert beyond.max() == pytest.approx(largest, rel=1e-12)
    assert np.mean(np.isclose(beyond, largest, rtol=1e-12)) > 0.1
    assert np.unique(beyond).size > 20


def test_reward_is_the_tracking_cost():
    env = Quadrotor(force_sd=0.0, thrust_sd=0.0)
    start = env.reset(jax.random.key(0))
    step = env.step(jax.random.key(0), start, jnp.array([0.14, 0.13]), 0)
    error = np.asarray(seen(step.state)) - path()[1]
    effort = (0.14 - HOVER) ** 2 + (0.13 - HOVER) ** 2
    expected = np.array([1, 0.1, 1, 0.1, 0.1, 0.1]) @ error**2 + 0.1 * effort
    assert float(step.reward) == pytest.approx(-expected, rel=1e-12)


def test_drag_slows(env):
    fast = {"velocity": [2.0, 0.0]}
    assert moved(env, HANG, **fast).velocity[0] == 2.0
    slowed = moved(Quadrotor(drag=0.04), HANG, **fast).velocity[0]
    assert 2.0 - slowed == pytest.approx(0.02 * 0.04 * (1.0 + 2.0) * 2.0, rel=0.01)


def test_a_drone_without_thrust_lands_and_can_take_off_again(env):
    landed = moved(env, np.full(2, LEAST_THRUST), steps=100, pitch=0.4)
    np.testing.assert_allclose(seen(landed)[2:], [FLOOR, 0, 0, 0], atol=1e-9)
    risen = moved(env, np.full(2, LARGEST_THRUST), steps=10, position=landed.position, lag=landed.lag)
    assert risen.position[1] > FLOOR + 0.05


def test_a_drone_on_its_back_stays_down(env):
    back = {"position": [0.0, 0.01], "pitch": 2.9, "lag": [0.0, 0.01, 2.9], "velocity": [1.0, -1.0]}
    state = moved(env, np.full(2, LARGEST_THRUST), steps=50, **back)
    assert state.position[1] == FLOOR
    assert state.velocity[0] == 0.0  # it slid, and friction stopped it
    assert state.position[0] > 0.01
    assert float(_folded(state.pitch)) == pytest.approx(0.0, abs=1e-12)  # and it looks level


def test_folding_is_arcsin_of_sin():
    angles = np.linspace(-9.0, 9.0, 1001)
    np.testing.assert_allclose(_folded(angles), np.arcsin(np.sin(angles)), atol=1e-7)


def test_signals_are_state_and_path(env):
    state = moved(env, HANG, steps=3)
    expected = np.concatenate([seen(state), path()[3], path()[4]])
    np.testing.assert_array_equal(env.signals(state), expected)


@pytest.mark.parametrize("name", ["lemniscate", "circle", "hover"])
def test_paths_move_as_they_say(name):
    rows = path(name, dt=1e-4, steps=20_000, scale=0.6, period=5.0)
    for place, speed in ((0, 1), (2, 3)):
        np.testing.assert_allclose(np.gradient(rows[:, place], 1e-4)[1:-1], rows[1:-1, speed], atol=1e-5)
    np.testing.assert_allclose(rows[0, [0, 2]], [0.0, 1.0])


def test_the_square_has_four_sides_and_closes():
    rows = path("square", scale=0.8, period=4.0, dt=0.01, steps=400)
    np.testing.assert_allclose(rows[[0, 100, 200, 300], 0], [0, 0.8, 0.8, 0], atol=1e-12)
    np.testing.assert_allclose(rows[[0, 100, 200, 300], 2], [1, 1, 1.8, 1.8], atol=1e-12)
    np.testing.assert_allclose(np.hypot(rows[:, 1], rows[:, 3]), 0.8)


@pytest.mark.usefixtures("without_type_checks")
@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"path": "figure of nine"}, "figure of nine"),
        ({"path": np.ones((3, 5))}, r"path has shape \(3, 5\)"),
        ({"disturbance": "wind"}, "disturbance = 'wind': use 'centre' or 'stale-point'"),
        ({"force_sd": -1.0}, "force_sd = -1.0"),
        ({"start": (0.0, 1.0)}, "start = .*6 finite numbers"),
        ({"impulse": np.nan}, "impulse = nan"),
        ({"impulse_window": (5, 5)}, "impulse_window"),
        ({"floor": np.nan}, "floor = nan"),
    ],
)
def test_bad_settings_are_refused(settings, said):
    with pytest.raises(ValueError, match=said):
        Quadrotor(**settings)


@pytest.mark.parametrize(
    ("bad", "said"), [({"scale": 0.0}, "scale"), ({"period": -1.0}, "period"), ({"steps": 0}, "steps")]
)
def test_bad_paths_are_refused(bad, said):
    with pytest.raises(ValueError, match=said):
        path(**bad)
