"""Every route against every family, recertified, and judged by their agreement."""

import jax.numpy as jnp
import numpy as np
import pytest

from policychord import ConvergenceError, Outcome, Problem, Tsallis, certify, energy, problem, solve
from policychord.core import _descent, _method
from policychord.core._method import RETRY_AFTER

from .families import DENSE, FAMILIES, WIDE, member
from .routes import ROUTES

SHAPES = {"dense": DENSE, "wide": WIDE}

each_family = pytest.mark.parametrize("name", FAMILIES)
each_shape = pytest.mark.parametrize("shape", SHAPES)
each_route = pytest.mark.parametrize("route", ROUTES)


def assert_same_optimum(one, other):
    """Two answers are no farther apart than their certificates say."""
    apart = np.abs(np.asarray(one.weights) - np.asarray(other.weights)).sum(-1)
    assert np.all(apart <= np.asarray(one.certificate.distance) + np.asarray(other.certificate.distance) + 1e-14)


@each_route
@each_shape
@each_family
def test_every_route_solves_every_family(route, shape, name):
    p = member(name, *SHAPES[shape])
    found = ROUTES[route](p)
    weights, gap = np.asarray(found.weights), np.asarray(found.certificate.gap)
    assert np.all(found.converged)
    assert np.all((gap >= 0) & (gap <= 1e-10))
    assert np.all(np.asarray(found.passes) >= 1)
    assert np.all(weights > 0)
    np.testing.assert_allclose(weights.sum(-1), 1.0, rtol=0, atol=1e-12)
    np.testing.assert_allclose(np.exp(np.maximum(found.log_weights, -600)), weights, rtol=1e-14, atol=0)
    np.testing.assert_allclose(
        found.certificate.distance, np.minimum(np.sqrt(2 * gap / p.eps), 2.0), rtol=1e-14, atol=0
    )
    # the certificate is recomputed by other code, from the weights alone
    assert np.all(certify(p, weights).gap <= 1.001e-10)


@each_shape
@each_family
def test_routes_agree(shape, name):
    p = member(name, *SHAPES[shape])
    found = {route: run(p, 1e-18) for route, run in ROUTES.items()}
    for route in ("jax", "traced"):
        np.testing.assert_allclose(found[route].weights, found["compiled"].weights, rtol=0, atol=1e-10)
        np.testing.assert_allclose(found[route].log_weights, found["compiled"].log_weights, rtol=1e-9, atol=1e-6)


@each_route
@pytest.mark.parametrize("name", ["generic", "sparse", "balanced"])
def test_the_largest_problem(route, name):
    p = member(name, (1,), d=4096, n=128)
    found = ROUTES[route](p)
    assert np.all(certify(p, np.asarray(found.weights)).gap <= 1.001e-10)
    assert_same_optimum(found, solve(p, 1e-16, route="compiled"))


@each_family
def test_a_warm_start_changes_the_passes_and_not_the_answer(name, rng):
    p = member(name, *DENSE)
    cold = solve(p, 1e-18)
    warm = solve(p, 1e-18, start=cold.weights)
    random = solve(p, 1e-18, start=rng.dirichlet(np.ones(5), size=12))
    assert np.all(warm.passes <= np.maximum(cold.passes, 3))
    for other in (warm, random):
        assert_same_optimum(other, cold)


def test_a_start_on_the_border_is_fine(rng):
    p = member("generic", *DENSE)
    corners = np.eye(5)[rng.integers(5, size=12)]
    assert_same_optimum(solve(p, 1e-18, start=corners), solve(p, 1e-18))


def test_two_vertices_of_the_same_energy_do_not_swap_for_ever():
    p = problem(pi=[[0.02, 0.98], [0.98, 0.02]], action_cost=[0, 0], eps=0.1)
    for route in ("compiled", "jax"):
        for start in ([1, 0], [0, 1], [1 - 1e-9, 1e-9]):
            np.testing.assert_allclose(solve(p, start=start, route=route).weights, [0.5, 0.5], atol=1e-6)


@pytest.mark.parametrize(("d", "n"), [(6, 5), (8, 3), (60, 44)])
def test_every_vertex_is_a_good_start_where_all_have_the_same_energy(d, n):
    """About one start in twelve used to fail; both routes take the same way."""
    p = member("permuted", (40 if n > 40 else 300,), d, n)
    p = p._replace(eps=np.geomspace(1e-6, 0.1, len(p.eps)))
    corners = np.eye(n)[np.arange(len(p.eps)) % n]
    found = solve(p, start=corners, route="compiled")
    assert np.all(certify(p, found.weights).gap <= 1.001e-10)
    assert_same_optimum(found, solve(p))
    by_jax = solve(p, start=corners, route="jax")
    assert_same_optimum(found, by_jax)
    if n <= 40:
        assert np.mean(found.passes == by_jax.passes) > 0.95
    assert max(found.passes.max(), by_jax.passes.max()) < RETRY_AFTER


@pytest.mark.parametrize("route", ["compiled", "jax"])
@pytest.mark.parametrize("minority", [0.3, 0.45])
def test_primitives_of_negligible_weight_are_heard_beside_many_tied_ones(route, minority):
    """Conjugate gradients did not hear them: from a vertex it took thousands of passes until they had grown."""
    pi = np.where(np.arange(41) % 2, [[minority], [1.0 - minority]], [[1.0 - minority], [minority]])
    found = solve(problem(pi=pi, action_cost=[0.0, 0.0], eps=1e-4), start=np.eye(41)[0], route=route)
    np.testing.assert_allclose(pi @ found.weights, 0.5, atol=1e-3)
    assert found.passes < 50


def test_sharp_columns_at_the_lowest_temperatures_need_many_shorter_steps():
    """From the prior, about one in fifty used to fail: four shorter steps are not enough before the mirror step."""
    rng = np.random.default_rng([6, 5])
    columns = np.stack([rng.dirichlet(np.full(6, share)) for share in 10.0 ** rng.uniform(-2.0, 1.0, 600)])
    pi = rng.permuted(np.repeat(columns[..., None], 5, axis=-1), axis=-2)
    p = problem(pi=pi, action_cost=np.zeros(6), eps=10.0 ** rng.uniform(-6.0, -4.0, 600))
    for route in ("compiled", "jax"):
        found = solve(p, route=route)
        assert np.all(certify(p, found.weights).gap <= 1.001e-10)
        assert found.passes.max() < RETRY_AFTER


def test_a_second_attempt_starts_from_the_prior(monkeypatch):
    """With a first attempt of two passes only, the second must find the way alone."""
    p = member("cold", (), 50, 5)
    given = (*p, p.log_prior, 1e-10)
    direct = solve(p)
    assert direct.passes > 2
    monkeypatch.setattr(_method, "RETRY_AFTER", 2)
    log_weights, gap, passes, outcome = _descent.descend(*(jnp.asarray(a) for a in given), max_passes=500)
    assert outcome == Outcome.CONVERGED
    assert gap <= 1e-10
    assert passes > direct.passes
    np.testing.assert_allclose(np.exp(log_weights), direct.weights, atol=1e-5)


@each_family
def test_no_other_weights_are_better(name, rng):
    p = member(name, *DENSE)
    found = solve(p)
    value = energy(p, found.weights)
    for scale in (1e-6, 1e-3, 1e-1, 1.0):
        other = (1 - scale) * found.weights + scale * rng.dirichlet(np.ones(5), size=12)
        rounding = 1e-12 * (1.0 + np.abs(p.action_cost).max(-1))
        assert np.all(value <= energy(p, other) + found.certificate.gap + rounding)


def test_a_tighter_tolerance_gives_a_smaller_gap():
    p = member("generic", *DENSE)
    for tol in (1e-2, 1e-6, 1e-12, 1e-20):
        assert np.all(solve(p, tol).certificate.gap <= tol)


@each_route
def test_a_problem_that_rounding_hides_is_said_so(route):
    p = problem(pi=[[1 / 3, 0.5], [2 / 3, 0.5]], action_cost=[[0.0, 1.0], [1e11, -1e11]], eps=1e-6)
    if route == "traced":
        found = ROUTES[route](p, 1e-40)
        assert np.all(found.outcome == Outcome.ROUNDING_LIMIT)
        return
    with pytest.raises(
        ConvergenceError, match=r"2 of 2 problems .* tol = 1\.0e-40.*index \(0,\).*eps = 1e-06.*Rounding"
    ):
        ROUTES[route](p, 1e-40)


def hard_and_easy(rng, hard=7):
    """Fifty problems, one of which cannot reach 1e-22: its costs are too large."""
    cost = rng.normal(size=(50, 20))
    cost[hard] *= 1e8
    return problem(pi=rng.dirichlet(np.ones(20), (50, 4)).swapaxes(1, 2), action_cost=cost, eps=0.3)


def test_one_hard_problem_leaves_the_others_of_its_batch_as_they_are_alone(rng):
    p = hard_and_easy(rng)
    with pytest.raises(ConvergenceError, match=r"1 of 50 .* index \(7,\)"):
        solve(p, 1e-22)
    together = solve(p, 1e-22, throw=False)
    assert np.flatnonzero(~together.converged).tolist() == [7]
    assert together.outcome[7] == Outcome.ROUNDING_LIMIT
    assert 1e-22 < together.certificate.gap[7] < 1e-12
    for k in range(50):
        alone = solve(Problem(*(field[k] for field in p)), 1e-22, throw=False)
        assert np.array_equal(alone.log_weights, together.log_weights[k])
        assert alone.certificate.gap == together.certificate.gap[k]
        assert alone.certificate.distance == together.certificate.distance[k]
    # what was not reached is still proved, by other code too
    assert np.all(certify(p, together.weights).gap <= 1e-12)


def test_nothing_is_thrown_by_the_other_routes_either(rng):
    p = hard_and_easy(rng)
    by_jax = solve(p, 1e-22, route="jax", throw=False)
    assert by_jax.outcome[7] == Outcome.ROUNDING_LIMIT
    assert np.delete(by_jax.converged, 7).all()
    general = problem(pi=p.pi, action_cost=p.action_cost, eps=0.3, regulariser=Tsallis(1.5))
    with pytest.raises(ConvergenceError):
        solve(general, 1e-22)
    found = solve(general, 1e-22, throw=False)
    assert found.outcome[7] != Outcome.CONVERGED
    assert np.all(found.certificate.gap[found.converged] <= 1e-22)


def test_an_outcome_is_a_number_with_a_sentence():
    assert [int(outcome) for outcome in Outcome] == list(range(10))
    assert all(outcome.sentence.endswith(".") for outcome in Outcome)
    found = solve(member("generic", *DENSE))
    assert found.outcome.dtype == np.int8
    assert found.outcome.shape == found.converged.shape == (12,)


@pytest.mark.usefixtures("without_type_checks")
def test_a_problem_made_by_hand_of_what_is_no_number_is_bad_input():
    p = member("generic", *DENSE)
    with pytest.raises(ConvergenceError, match=r"1 of 12 .*index \(0,\).*not a number.*problem\(\.\.\.\)"):
        solve(p._replace(eps=np.where(np.arange(12) == 0, np.nan, p.eps)))


@pytest.mark.parametrize("tol", [0.0, -1e-10, float("nan"), float("inf")])
def test_a_tolerance_must_be_a_positive_number(tol):
    with pytest.raises(ValueError, match=r"tol = .* positive, finite number"):
        solve(member("generic", *DENSE), tol)


@pytest.mark.usefixtures("without_type_checks")
@pytest.mark.parametrize("route", ["numba", "", None, 3])
def test_a_route_must_exist(route):
    with pytest.raises(ValueError, match=r'route = .*"auto", "compiled" or "jax"'):
        solve(member("generic", *DENSE), route=route)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (np.full((12, 5), 0.3), r"start\[0\] sums to 1\.5, off by \+0\.5"),
        (np.full((12, 4), 0.25), r"start has shape \(12, 4\).*each primitive \(5\)"),
        (np.full((7, 5), 0.2), r"start has batch axes \(7,\).*broadcast.*\(12,\)"),
        (np.array([0.5, 0.7, -0.2, 0.0, 0.0]), r"start\[2\] = -0\.2"),
        (np.array([0.5, np.nan, 0.5, 0.0, 0.0]), r"start\[1\] = nan"),
    ],
)
@pytest.mark.usefixtures("without_type_checks")
def test_a_start_must_lie_on_the_simplex(start, message):
    with pytest.raises(ValueError, match=message):
        solve(member("generic", *DENSE), start=start)


def test_one_problem_with_many_starts_gives_many_answers():
    one = Problem(*(field[0] for field in member("generic", *DENSE)))
    found = solve(one, start=np.vstack([np.eye(5), np.full((1, 5), 0.2)]))
    assert found.weights.shape == (6, 5)
    np.testing.assert_allclose(found.weights, np.tile(solve(one).weights, (6, 1)), atol=1e-4)
