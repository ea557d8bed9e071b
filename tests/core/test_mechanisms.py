"""Every mechanism with every regulariser and way of combining: `benchmarks/mechanisms.py` has the whole table."""

from functools import partial

import jax
import numpy as np
import pytest
from benchmarks.mechanisms import COMBINATIONS, REGULARISERS, bad, draw, quadratic, run

from policychord import Entropy, TimeScales, Tsallis, circuit, circuit_stability, flow, problem, solve, time_scales
from policychord.core.circuit import _full_circuit, _reduced_circuit
from policychord.core.convex import over_batch

GENERAL = [name for name in REGULARISERS if name != "entropy"]


@pytest.mark.parametrize("combination", [
    "product", pytest.param("mixture", marks=pytest.mark.thorough),
    pytest.param("own function", marks=pytest.mark.thorough),
])  # fmt: skip
def test_flow_circuit_and_gates_end_where_the_judge_does(combination):
    cells = run(draw(7, 3), combination, GENERAL)
    assert len(cells) == len(GENERAL)
    assert {name: bad(cell) for name, cell in cells.items() if bad(cell)} == {}
    assert cells[f"{combination}, Tsallis 2"]["exact zeros"] > 0.0


@pytest.mark.thorough
@pytest.mark.parametrize("combination", COMBINATIONS)
def test_so_they_do_with_the_entropy(combination):
    assert not any(map(bad, run(draw(8, 3), combination, ["entropy"]).values()))


def posed(kind, drawn, regulariser):
    common = {"eps": drawn.eps, "prior": drawn.prior, "regulariser": regulariser}
    if kind == "own function":
        return problem(complexity=quadratic, n=4, parameters=(drawn.factors, drawn.cost), **common)
    return problem(pi=drawn.pi, action_cost=drawn.cost, combine=kind, **common)


@pytest.mark.parametrize("kind", ["mixture", "product", pytest.param("own function", marks=pytest.mark.thorough)])
def test_circuits_rest_at_the_optimum_and_their_modes_are_those_of_the_neurons(kind):
    """Of all neurons and of the reduced circuit; modes by differentiating the reduced circuit where it rests."""
    given = posed(kind, draw(3, 6), Tsallis(np.array([1.0, 1.25, 1.5, 1.75, 2.0, 2.0]), np.full((6, 4), 0.6)))
    best = solve(given, tol=1e-13).weights
    scales = TimeScales(0.02, 0.1, 0.3, 1.0)

    def look(build, one, weights):
        velocity, rest = build(one, scales, weights)
        flat, unravel = jax.flatten_util.ravel_pytree(rest)
        move = lambda x: jax.flatten_util.ravel_pytree(velocity(None, unravel(x), None))[0]  # noqa: E731
        return move(flat), jax.jacfwd(move)(flat)

    with jax.enable_x64(True):
        (moved, jacobian), (all_moved, _) = (
            jax.jit(partial(over_batch, partial(look, build)))(given, best)
            for build in (_reduced_circuit, _full_circuit)
        )
    assert np.abs(moved).max() < 1e-5
    assert np.abs(all_moved).max() < 1e-5
    verdict = circuit_stability(given, scales)
    for k in range(6):
        # r = y - ln m adds as many modes at zero, which nothing excites
        expected = np.linalg.eigvals(np.asarray(jacobian[k]))
        found = np.concatenate([verdict.spectrum[k], np.zeros(4)])
        distance = np.abs(expected[:, None] - found)
        assert max(distance.min(0).max(), distance.min(1).max()) < 1e-4 * np.abs(expected).max()


def test_no_time_scales_make_a_threshold_unstable_if_the_gradient_takes_no_time():
    """The theorem of the page, for any slopes and curvatures."""
    rng = np.random.default_rng(0)
    for _ in range(500):
        n, tau, tau_s = rng.integers(1, 6), *10 ** rng.uniform(-3, 3, 2)
        factors, slopes = rng.normal(size=(n, n)) * 10 ** rng.uniform(-2, 2), 10 ** rng.uniform(-6, 0, n)
        curvature = factors.T @ factors
        matrix = np.zeros((n + 1, n + 1))
        matrix[0, 0], matrix[0, 1:] = -slopes.sum() / tau_s, -slopes @ curvature / tau_s
        matrix[1:, 0], matrix[1:, 1:] = -slopes / tau, -(np.eye(n) + slopes[:, None] * curvature) / tau
        assert np.linalg.eigvals(matrix).real.max() < 0.0


def test_the_papers_gate_by_a_threshold_is_stable_where_the_softmax_circuit_is_not():
    given = {"pi": [[0.99, 0.2], [0.01, 0.8]], "action_cost": [0.5, 0.6], "eps": 0.01}
    stated = TimeScales(1e-3, 1e-2, 1e-1, 1.0)
    assert not circuit_stability(problem(**given), stated).stable
    assert circuit_stability(problem(**given, regulariser=Tsallis(1.0)), stated).stable


def test_paths_begin_below_the_caps_and_leave_partial_experts_out():
    """An expert that never takes an action is capped at zero: from even weights its own would never be nothing."""
    pi = np.array([[0.5, 0.2, 0.6], [0.3, 0.3, 0.4], [0.2, 0.5, 0.0]])
    given = problem(
        pi=pi, action_cost=[0.0, 1.0, 0.5], eps=0.2, combine="product", regulariser=Entropy([0.3, 1.0, 1.0])
    )
    for path in (flow(given, 40.0, save=3), circuit(given, 40.0, save=3)):
        np.testing.assert_allclose(path.weights[0], [0.3, 0.7, 0.0], atol=1e-9)
        assert np.isfinite(path.certificate.gap).all()
        assert path.certificate.gap[-1] <= 1e-10
        np.testing.assert_allclose(path.weights[-1], solve(given).weights, atol=1e-6)


def test_ladders_settle_at_any_temperature():
    """Products of random orders and caps, down to eps = .001; the benchmark has mixtures, too."""
    rng = np.random.default_rng(1)
    drawn = draw(5, 60)._replace(eps=10 ** rng.uniform(-3.0, 1.0, 60))
    regulariser = Tsallis(rng.uniform(1.0, 2.0, 60), rng.uniform(0.3, 1.5, (60, 1)) * np.ones(4))
    given = posed("product", drawn, regulariser)
    assert circuit_stability(given).stable.all()
    assert circuit_stability(given, time_scales(drawn.eps, ratio=4.0)).stable.mean() > 0.9
