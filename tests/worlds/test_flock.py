"""The flock's physics: motion within limits, zones and vision, search by cells, and the rules of the literature."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from policychord.worlds import Couzin, CuckerSmale, Flock, FlockState, Vicsek, Zones, in_ring, in_square
from policychord.worlds.flock.cells import look_by_cells
from policychord.worlds.flock.neighbours import look

KEY = jax.random.key(3)


@eqx.filter_jit
def view_of(env, state):
    return env.view(state, 0)


@eqx.filter_jit
def steered(rule, key, position, velocity):
    return rule.velocity(key, position, velocity, 0, 0.05)


def state_of(position, velocity):
    return FlockState(jnp.asarray(position, dtype=float), jnp.asarray(velocity, dtype=float))


def test_motion_is_second_order_and_limited():
    env = Flock(2)
    state = state_of([[0, 0], [5, 5]], [[0.5, 0.0], [0.0, 1.0]])
    step = env.step(KEY, state, jnp.array([[1.0, 0.0], [0.0, 30.0]]), 0)
    np.testing.assert_allclose(step.state.position, [[0.025, 0.0], [5.0, 5.05]])  # the old velocity moves
    np.testing.assert_allclose(step.state.velocity, [[0.55, 0.0], [0.0, 1.0]])
    hard = env.step(KEY, state_of([[0, 0], [5, 5]], np.zeros((2, 2))), jnp.array([[30.0, 40.0], [0.0, 0.0]]), 0)
    np.testing.assert_allclose(hard.state.velocity[0], [0.09, 0.12])  # 3 m/s^2 along (3, 4)/5


def test_zones_are_annuli_that_own_their_outer_border():
    others = [[1.0, 0], [3.0, 0], [12.0, 0], [12.001, 0]]
    view = view_of(Flock(5), state_of([[0, 0], *others], [[1, 0], [0, 1], [0, 1], [0, 1], [0, 1]]))
    np.testing.assert_allclose(view.separation, [0, 0])  # 1 - d/r = 0 on the border
    np.testing.assert_allclose(view.closeness[1], [1 / (1 + 1e-6), 0])
    np.testing.assert_allclose(view.alignment, [0, 1])
    np.testing.assert_allclose(view.mean_position, [12, 0])
    np.testing.assert_allclose(view.cohesion, [0, 0])


@pytest.mark.parametrize(("angle", "seen"), [(0, True), (159, True), (161, False), (-159, True), (180, False)])
def test_a_boid_does_not_see_behind_itself(angle, seen):
    where = 0.5 * np.array([np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))])
    view = view_of(Flock(2), state_of([[0, 0], where], [[1, 0], [1, 0]]))
    assert bool(np.any(view.closeness != 0)) == seen
    still = view_of(Flock(2), state_of([[0, 0], where], [[0, 0], [1, 0]]))
    assert np.any(still.closeness != 0)  # one that stands looks all around


def test_an_empty_world_gives_what_the_boid_does_itself():
    view = view_of(Flock(2), state_of([[0, 0], [50, 50]], [[0.3, 0.4], [1, 0]]))
    for force in (view.separation, view.cohesion):
        np.testing.assert_array_equal(force, [0, 0])
    np.testing.assert_allclose(view.alignment, [0.6, 0.8])
    np.testing.assert_allclose(view.mean_velocity, [0.3, 0.4])
    np.testing.assert_allclose(view.mean_position, [0, 0])


def test_same_place_and_no_speed_are_no_nan():
    view = all_pairs(jnp.zeros((3, 2)), jnp.zeros((3, 2)))
    assert all(np.isfinite(field).all() for field in view)


@jax.jit
def all_pairs(position, velocity):
    return jax.vmap(lambda i: look(Zones(), position, velocity, i))(jnp.arange(len(position)))


by_cells = jax.jit(look_by_cells, static_argnums=3)
ZONES = Zones(*(jnp.asarray(zone) for zone in Zones()))


def assert_same_view(pairs, cells):
    for name, a, b in zip(pairs._fields, pairs, cells, strict=True):
        if name == "closeness":  # listed in another order
            a, b = jnp.sum(jnp.abs(a), axis=1), jnp.sum(jnp.abs(b), axis=1)
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("size", [1.5, 10.0, 40.0, 400.0])
@pytest.mark.parametrize("offset", [0.0, -1e4])
def test_cells_see_what_all_pairs_see(size, offset):
    position, velocity = in_square(size)(KEY, 150)
    velocity = velocity.at[3].set(0.0)
    position = position.at[5].set(position[4]) + offset
    cells, most = by_cells(ZONES, position, velocity, 150)
    pairs = all_pairs(position, velocity)
    assert_same_view(pairs, cells)
    assert most == jnp.max(jnp.sum(jnp.any(pairs.closeness != 0, axis=-1), axis=1))


@pytest.mark.parametrize(
    "zones", [Zones(0.5, 0.7, 0.9, 90.0), Zones(1.0, 3.0, 12.0, 360.0), Zones(20.0, 30.0, 40.0, 0.0)]
)
def test_cells_keep_to_the_zones(zones):
    position, velocity = in_square(6.0)(KEY, 80)
    zones = Zones(*(jnp.asarray(zone) for zone in zones))
    pairs = jax.vmap(lambda i: look(zones, position, velocity, i))(jnp.arange(80))
    assert_same_view(pairs, by_cells(zones, position, velocity, 80)[0])


def test_boids_on_a_lattice_stand_on_the_borders_of_cells():
    """Distances equal to the reach, and boids exactly between two cells."""
    axis = jnp.arange(-36.0, 37.0, 12.0)
    position = jnp.stack(jnp.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    velocity = jnp.ones_like(position)
    assert_same_view(all_pairs(position, velocity), by_cells(ZONES, position, velocity, 50)[0])


@pytest.mark.parametrize("place", [jnp.nan, jnp.inf, -1e200])
def test_a_boid_that_is_nowhere_disturbs_nobody(place):
    position, velocity = in_square(3.0)(KEY, 20)
    position = position.at[7, 0].set(place)
    velocity = velocity.at[2].set(jnp.nan)
    cells, _ = by_cells(ZONES, position, velocity, 20)
    assert_same_view(all_pairs(position, velocity), cells)
    assert np.isfinite(cells.cohesion[jnp.arange(20) != 2]).all()


def test_cells_work_in_batches():
    env = Flock(30, search="cells", crowd=30)
    states = jax.vmap(env.reset)(jax.random.split(KEY, 3))
    together = jax.jit(jax.vmap(env.observe))(states)
    for k in range(3):
        assert_same_view(all_pairs(states.position[k], states.velocity[k]), jax.tree.map(lambda x, k=k: x[k], together))


def test_a_crowd_that_is_too_large_is_an_error_that_says_what_to_do():
    env = Flock(9, search="cells", crowd=3, start=in_square(0.15))
    with pytest.raises(RuntimeError, match="raise crowd"):
        jax.jit(lambda state: env.observe(state))(env.reset(KEY))


def test_without_cells_a_flock_looks_at_all_pairs(monkeypatch):
    monkeypatch.setattr("policychord.worlds.flock.cells.are_available", lambda: False)
    env = Flock(5, search="cells")
    assert env.observe(env.reset(KEY)).closeness.shape == (5, 5, 2)


def test_starts_are_where_they_should_be():
    square = in_square(2.5, 0.5)(KEY, 500)
    assert np.abs(square.position).max() <= 2.5
    assert np.linalg.norm(square.velocity, axis=1).max() <= 0.5 + 1e-12
    ring = in_ring(5.0)(KEY, 500)
    radius = np.linalg.norm(ring.position, axis=1)
    assert radius.min() >= 3.0
    assert radius.max() <= 7.0
    np.testing.assert_allclose(np.linalg.norm(ring.velocity, axis=1), 1.0)
    turning = ring.position[:, 0] * ring.velocity[:, 1] - ring.position[:, 1] * ring.velocity[:, 0]
    assert (turning > 0).mean() > 0.95


# ------------------------------------------------------------------------------------ followers


def heading(velocity):
    return np.rad2deg(np.arctan2(velocity[1], velocity[0]))


@pytest.mark.parametrize("original", [False, True])
def test_couzin_flees_follows_and_turns_no_faster_than_it_can(original):
    rule = Couzin(Zones(), 120.0, 0.0, 1.0, original)
    moving = jnp.array([[1.0, 0.0], [0.0, 1.0]])
    near = steered(rule, KEY, jnp.array([[0.0, 0], [0.3, 0.3]]), moving)
    assert heading(near) == pytest.approx(-6.0)  # away, by 120 degrees/s times dt
    along = steered(rule, KEY, jnp.array([[0.0, 0], [2.0, 0.0]]), moving)
    assert heading(along) == pytest.approx(6.0)
    lonely = steered(rule, KEY, jnp.array([[0.0, 0], [40.0, 0.0]]), moving)
    np.testing.assert_allclose(lonely, [1.0, 0.0], atol=1e-12)


def test_only_the_original_couzin_flees_from_behind():
    place, moving = jnp.array([[0.0, 0], [-0.5, -0.02]]), jnp.array([[1.0, 0.0], [1.0, 0.0]])
    blind, aware = (steered(Couzin(Zones(), 120.0, 0.0, 1.0, original), KEY, place, moving)
                    for original in (False, True))  # fmt: skip
    np.testing.assert_allclose(blind, [1.0, 0.0], atol=1e-12)
    assert heading(aware) > 1.0


def test_cucker_smale_in_both_forms():
    place = jnp.array([[0.0, 0], [1.0, 0], [0.0, 30.0]])
    moving = jnp.array([[0.1, 0.0], [0.5, 0.0], [0.0, 0.5]])
    mean = steered(CuckerSmale(1.0, 0.4, 5.0, 1.0, False), KEY, place, moving)
    np.testing.assert_allclose(mean, [0.1 + 0.05 * 0.4 * 2**-0.4, 0.0])  # the third is out of reach
    everybody = steered(CuckerSmale(1.0, 0.4, 5.0, 1.0, True), KEY, place, moving)
    far = 901.0**-0.4
    np.testing.assert_allclose(everybody, [0.1 + 0.05 * (0.4 * 2**-0.4 - 0.1 * far), 0.05 * 0.5 * far])


def test_vicsek_averages_headings_with_its_own_and_bounded_noise():
    place, moving = jnp.array([[0.0, 0], [1.0, 0], [9.0, 0]]), jnp.array([[1.0, 0.0], [0.0, 0.2], [-1.0, 0.0]])
    calm = steered(Vicsek(5.0, 0.0, 1.0), KEY, place, moving)
    assert heading(calm) == pytest.approx(45.0)
    noisy = [heading(steered(Vicsek(5.0, 0.5, 1.0), k, place, moving)) for k in jax.random.split(KEY, 50)]
    assert np.abs(np.array(noisy) - 45.0).max() <= np.rad2deg(0.25)
    assert np.std(noisy) > 3.0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"boids": 0}, "at least one boid"),
        ({"boids": 4, "agents": 5}, "agents = 5"),
        ({"boids": 4, "agents": 3}, "rule of motion"),
        ({"boids": 4, "search": "guess"}, "search = 'guess'"),
        ({"boids": 4, "dt": 0.0}, "dt = 0.0"),
    ],
)
def test_nonsense_is_refused(given, said, without_type_checks):
    with pytest.raises(ValueError, match=said):
        Flock(**given)
