"""Certificates are honest: fifty digits never find a larger gap or distance than the one reported."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from benchmarks import hostile

from policychord import ConvergenceError, Entropy, Tsallis, certify, flow, problem, solve

from .families import FAMILIES, member
from .many_digits import assert_honest
from .routes import ROUTES

MEMBERS, D, N = 6, 6, 3


def perturbed(w, rng, size):
    w = w * np.exp(size * rng.normal(size=w.shape))
    return w / w.sum(-1, keepdims=True)


def with_zeros(w, rng):
    w = np.where(np.arange(w.shape[-1]) == rng.integers(w.shape[-1], size=(*w.shape[:-1], 1)), 0.0, w)
    return w / w.sum(-1, keepdims=True)


# what somebody may bring to be certified, made from the optimum
CANDIDATES = {
    "optimal": lambda w, rng: w,
    "off by 1e-12": lambda w, rng: perturbed(w, rng, 1e-12),
    "off by 1e-8": lambda w, rng: perturbed(w, rng, 1e-8),
    "off by 1e-4": lambda w, rng: perturbed(w, rng, 1e-4),
    "arbitrary": lambda w, rng: rng.dirichlet(np.ones(w.shape[-1]), size=w.shape[:-1]),
    "with zeros": lambda w, rng: with_zeros(rng.dirichlet(np.ones(w.shape[-1]), size=w.shape[:-1]), rng),
    "corner": lambda w, rng: np.eye(w.shape[-1])[rng.integers(w.shape[-1], size=w.shape[:-1])],
    "single precision": lambda w, rng: w.astype(np.float32),
}
each_candidate = pytest.mark.parametrize("candidate", CANDIDATES)


def certified(p, candidate, rng):
    with np.errstate(divide="ignore", invalid="ignore"):
        w = CANDIDATES[candidate](solve(p, 1e-14).weights, rng)
    w = np.where(np.isfinite(w), w, 1 / w.shape[-1])
    return w, *certify(p, w)


@each_candidate
@pytest.mark.parametrize("name", FAMILIES)
def test_certify_is_honest(name, candidate, rng):
    p = member(name, (MEMBERS,), d=D, n=N)
    assert_honest(p, *certified(p, candidate, rng))


@each_candidate
def test_certify_is_honest_where_costs_are_large_and_temperatures_small(candidate, rng):
    p = member("balanced", (MEMBERS,), d=D, n=N)._replace(eps=np.full(MEMBERS, 1e-3))
    w, gap, distance = certified(p, candidate, rng)
    assert_honest(p, w, gap, distance)


# Where all primitives are alike, eps KL(w || S(w)) is V(w) - V* itself and leaves no margin for rounding.
ALIKE = {
    "one action": lambda rng: {"pi": np.ones((1, N)), "action_cost": rng.normal(size=(MEMBERS, 1))},
    "one certain action": lambda rng: {
        "pi": np.repeat(np.eye(4)[:, :1], N, axis=1),
        "action_cost": rng.normal(size=(MEMBERS, 4)),
    },
    "a free choice": lambda rng: {"pi": np.full((4, N), 0.25), "action_cost": np.zeros((MEMBERS, 4))},
    "large costs": lambda rng: {"pi": np.full((4, N), 0.25), "action_cost": 1e4 * rng.normal(size=(MEMBERS, 4))},
}


@pytest.mark.parametrize("alike", ALIKE)
@pytest.mark.parametrize("eps", [1e-3, 1.0, 10.0])
def test_certify_is_honest_where_the_bound_is_tight(alike, eps, rng):
    for candidate in CANDIDATES:
        p = problem(**ALIKE[alike](rng), eps=eps, prior=rng.dirichlet(np.ones(N), size=MEMBERS))
        assert_honest(p, *certified(p, candidate, rng))


@pytest.mark.parametrize("eps", [1e2, 1e4, 1e6])
def test_certify_is_honest_in_great_heat(eps, rng):
    for candidate in CANDIDATES:
        p = member("biased", (MEMBERS,), d=D, n=N)._replace(eps=np.full(MEMBERS, eps))
        assert_honest(p, *certified(p, candidate, rng))


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("tol", [1e-4, 1e-20])
def test_solvers_report_honestly(route, tol):
    for name in ("generic", "sparse", "one_hot", "nearly_identical", "cold", "dear", "faint", "biased"):
        p = member(name, (MEMBERS,), d=D, n=N)
        found = ROUTES[route](p, tol)
        assert_honest(p, np.asarray(found.weights), *(np.asarray(bound) for bound in found.certificate))


@pytest.mark.parametrize("route", ROUTES)
def test_solvers_report_honestly_where_the_bound_is_tight(route, rng):
    prior = rng.dirichlet(np.ones(N), size=MEMBERS)
    for eps in (1e-3, 1.0, 1e4):
        p = problem(pi=np.full((D, N), 1 / D), action_cost=np.zeros((MEMBERS, D)), eps=eps, prior=prior)
        found = ROUTES[route](p, 1e-20)
        assert_honest(p, np.asarray(found.weights), *(np.asarray(bound) for bound in found.certificate))


# ------------------------------------------------------- what was certified once, and was not true


@partial(jax.jit, static_argnames="tol")
def _traced(p, tol):
    return solve(p, tol)


def assert_solved_honestly(p, route="auto", tol=1e-10):
    """`solve` may say that rounding is the limit; what it reports has to be true all the same."""
    try:
        found = solve(p, tol, route=route)
    except ConvergenceError:
        with jax.enable_x64(True):
            found = _traced(jax.tree.map(jnp.asarray, p), tol)
    assert_honest(p, found.weights, *found.certificate)


@pytest.mark.parametrize("route", ["compiled", "jax"])
def test_the_wrong_vertex_is_not_certified_where_the_gradient_is_mostly_rounding(route):
    pi = [
        [0.25468852581936396, 0.254688575961374],
        [0.17424248487334987, 0.17424250583394996],
        [0.35344998416468537, 0.3534499153546149],
        [0.21761900514260088, 0.21761900285006103],
    ]
    cost = [724869754.8490369, -1787815587.6674964, -59668704.825355485, 1299234446.6607728]
    p = problem(pi=pi, action_cost=cost, eps=4.916106175287056e-09)
    assert_solved_honestly(p, route)
    for w in ([1.0, 0.0], [0.0, 1.0], [0.5, 0.5]):
        assert_honest(p, w, *certify(p, w))


def lossy(n, d, size, eps):
    """The even columns have rows that vanish, all in the same direction, beside the partial sum of the others."""
    tiny = 0.45 * np.spacing(size / 2 if size else 0.5)
    pi = np.zeros((d, n))
    pi[1:-1, ::2] = tiny
    pi[[0, -1], ::2] = (1.0 - tiny * (d - 2)) / 2
    pi[[0, -1], 1::2] = 0.5
    cost = np.ones(d) if size else np.zeros(d)
    cost[0], cost[-1] = size, -size
    return problem(pi=pi, action_cost=cost, eps=eps)


@pytest.mark.parametrize("route", ["compiled", "jax"])
@pytest.mark.parametrize(
    ("n", "d", "size", "eps"), [(41, 100_000, 1e5, 1e-4), (4, 100_000, 1e5, 1e-4), (41, 20_000, 0.0, 1e-9)]
)
def test_sums_that_lose_a_little_at_every_action_are_paid_for(n, d, size, eps, route):
    p = lossy(n, d, size, eps)
    assert_solved_honestly(p, route)
    even = np.full(n, 1 / n)
    assert_honest(p, even, *certify(p, even))


@pytest.mark.parametrize("off", [-9e-7, -1e-9, 1e-9, 9e-7])
@pytest.mark.parametrize("w", [[1e-9, 1 - 1e-9], [0.0, 1.0], [1.0, 0.0], [0.3, 0.7]])
def test_the_bounds_are_those_of_weights_divided_by_their_sum(w, off):
    p = problem(pi=[[0.5, 0.5 + 2**-20], [0.5, 0.5 - 2**-20]], action_cost=[0.0, -1e7], eps=0.01)
    w = np.array(w) * (1.0 + off)
    assert_honest(p, w, *certify(p, w))


def test_weights_above_one_and_denormal_have_a_bound():
    """A sum 6e-12 above one: the gap was negative and the distance not a number."""
    case = hostile.draw("unnormalised weights", 0, 10)
    p = problem(**case.given)
    gap, distance = certify(p, case.weights)
    assert np.all(gap >= 0)
    assert_honest(p, case.weights, gap, distance)


@pytest.mark.parametrize("w", [[0.99999, 1e-5], [0.5, 0.5], [0.0, 1.0], [1.0, 0.0]])
def test_an_infinite_objective_is_not_certified(w):
    """A product leaves out what one of its experts never does, and then KL(q || p_w) is infinite."""
    p = problem(pi=[[0.5, 1.0], [0.5, 0.0]], action_cost=[0.0, 0.0], eps=0.1, combine="product")
    assert_honest(p, w, *certify(p, w))
    found = solve(p)
    assert_honest(p, found.weights, *found.certificate)


@pytest.mark.parametrize("route", ["compiled", "jax"])
@pytest.mark.parametrize("prior", [None, [np.exp(-500.0), 1.0 - np.exp(-500.0)]])
def test_a_start_at_the_wrong_vertex_far_from_the_right_one_proves_nothing(route, prior):
    """The exponent was 1e19, where two roundings of it differ by thousands: the gap was -inf."""
    p = problem(pi=[[0.87, 0.41], [0.13, 0.59]], action_cost=[1e10, 0.0], eps=1e-9, prior=prior)
    found = solve(p, start=[1.0, 0.0], route=route)
    assert found.certificate.gap >= 0
    assert_honest(p, found.weights, *found.certificate)


@pytest.mark.parametrize(
    "regulariser", [Entropy(caps=[1.0, 0.5]), Tsallis(1.5, caps=[1.0, 0.5]), Tsallis(2.0, caps=[1.0, 0.5])]
)
def test_a_weight_without_a_cap_beside_one_with_a_cap_is_free(regulariser):
    p = problem(pi=[[0.9, 0.1], [0.1, 0.9]], action_cost=[0.0, 10.0], eps=0.1, regulariser=regulariser)
    for w in ([0.9, 0.1], [0.6, 0.4], [1.0, 0.0]):
        assert_honest(p, w, *certify(p, w))


def test_a_product_without_one_of_its_experts_is_certified_as_such():
    pi = [[0.8, 0.1, 0.5], [0.1, 0.1, 0.5], [0.1, 0.8, 0.0]]
    p = problem(pi=pi, action_cost=[5.0, 5.0, 0.0], eps=0.01, combine="product")
    assert_honest(p, [0.1, 0.9, 0.0], *certify(p, [0.1, 0.9, 0.0]))
    assert certify(p, [0.1, 0.9, 5e-324]).gap == np.inf


def test_logarithms_beyond_what_a_number_can_weigh_are_not_certified():
    given = {"log_pi": [[np.log(0.5), 0.0], [np.log(0.5), -1e308]], "action_cost": [0.0, 709.5]}
    with pytest.raises(ConvergenceError):
        solve(problem(**given, eps=1.0, combine="product"))


def test_weights_along_the_flow_are_weights():
    pi = [[0.7, 0.1, 0.1], [0.1, 0.7, 0.1], [0.1, 0.1, 0.1], [0.1, 0.1, 0.7]]
    path = flow(problem(pi=pi, action_cost=[0.0, 5.0, 5.0, 5.0], eps=0.01), t1=50.0)
    assert np.all(path.weights >= 0)
    assert np.all(np.isfinite(path.energy))


def test_columns_that_are_no_probabilities_prove_nothing():
    p = member("generic", (), d=2, n=2)._replace(pi=np.array([[0.99, 0.5], [-0.01, 0.5]]), action_cost=np.full(2, 1e3))
    assert certify(p, [0.3, 0.7]).gap == np.inf
    assert certify(p._replace(pi=np.full((2, 2), 0.5), eps=np.float64(-1.0)), [0.3, 0.7]).gap == np.inf
    for route in ("compiled", "jax"):
        with pytest.raises(ConvergenceError, match="outside its allowed range"):
            solve(p, 1e-3, route=route)


# ----------------------------------------------------------------------------- form of the bounds


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("d", [1, 2, 7])
@pytest.mark.parametrize("eps", [1e-3, 1.0, 1e3])
def test_a_gap_is_never_negative_nor_a_distance_undefined(d, eps, rng):
    prior = rng.dirichlet(np.ones(5), size=200)
    certain = np.zeros((d, 5))
    certain[0] = 1.0
    p = problem(pi=certain, action_cost=rng.normal(size=(200, d)), eps=eps, prior=prior)
    for w in (solve(p).weights, prior, perturbed(prior, rng, 1e-9)):
        gap, distance = certify(p, w)
        assert np.all(gap >= 0)
        assert np.all((distance >= 0) & (distance <= 2))


def test_a_gap_of_exactly_zero_is_not_claimed(rng):
    """Weights near the optimum are rounded, so nobody can know that they are the optimum."""
    prior = rng.dirichlet(np.ones(5), size=200)
    p = problem(pi=np.ones((1, 5)), action_cost=np.zeros((200, 1)), eps=1.0, prior=prior)
    assert np.all(certify(p, prior).gap > 0)
    assert np.all(solve(p).certificate.gap > 0)


def test_rounding_does_not_drown_the_certificate(rng):
    """The floor is second order where it can be: a converged answer shows a gap far below the rounding of V."""
    p = member("generic", (MEMBERS,), d=D, n=N)
    assert np.all(solve(p, 1e-20).certificate.gap <= 1e-20)
    dear = member("balanced", (MEMBERS,), d=D, n=N)
    assert np.all(certify(dear, solve(dear, 1e-16).weights).gap <= 1e-16)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([0.5, 0.6, 0.0], r"weights sums to 1\.1, off by \+0\.1.*divide"),
        ([0.5, 0.5], r"weights has shape \(2,\).*each primitive \(3\)"),
        ([0.5, 0.7, -0.2], r"weights\[2\] = -0\.2.*negative"),
        ([0.5, np.nan, 0.5], r"weights\[1\] = nan"),
        ([0.5, np.inf, 0.5], r"weights\[1\] = inf"),
        (0.5, r"weights has shape \(\)"),
        (None, r"weights is missing"),
        ("abc", r"weights has dtype"),
    ],
)
@pytest.mark.usefixtures("without_type_checks")
def test_weights_must_lie_on_the_simplex(weights, message):
    with pytest.raises(ValueError, match=message):
        certify(member("generic", (), d=D, n=N), weights)


@pytest.mark.usefixtures("without_type_checks")
def test_weights_must_fit_the_batch():
    with pytest.raises(ValueError, match=r"weights has batch axes \(4,\).*\(6,\)"):
        certify(member("generic", (MEMBERS,), d=D, n=N), np.full((4, 3), 1 / 3))
