"""The judge of certificates is judged by closed forms, and by claims that are known to be false."""

import numpy as np
import pytest
from benchmarks import hostile, truth
from benchmarks.truth import Objective, excess_and_distance, judge, objective_of

from policychord import Entropy, Tsallis, problem

N, D = 4, 9


def objective(rng, **changes):
    pi = rng.dirichlet(np.ones(D), N).T
    prior = np.log(rng.dirichlet(np.ones(N)))
    return Objective(pi, rng.normal(size=D), 0.3, prior)._replace(**changes)


def test_excess_and_distance_of_disjoint_primitives(rng):
    """Then w* = softmax((eps ln w_hat - c)/(1 + eps)), and V(w) - V* = (1 + eps) KL(w || w*)."""
    eps, pi = 0.3, np.kron(np.eye(N), np.full((4, 1), 0.25))
    cost, prior, w = rng.normal(size=4 * N), rng.dirichlet(np.ones(N)), rng.dirichlet(np.ones(N))
    c = pi.T @ cost - np.log(4)
    best = np.exp((eps * np.log(prior) - c) / (1 + eps))
    best /= best.sum()
    excess, way = excess_and_distance(Objective(pi, cost, eps, np.log(prior)), w)
    assert excess == pytest.approx((1 + eps) * np.sum(w * np.log(w / best)), rel=1e-12)
    assert way == pytest.approx(np.abs(w - best).sum(), rel=1e-12)


def test_excess_of_a_product_of_one_expert_is_none_and_of_two_that_are_alike_is_the_entropy(rng):
    p = rng.dirichlet(np.ones(D))
    given = Objective(np.stack([p, p], -1), rng.normal(size=D), 0.5, np.log([0.5, 0.5]), product=True)
    w = np.array([0.9, 0.1])
    assert excess_and_distance(given, w)[0] == pytest.approx(0.5 * np.sum(w * np.log(2 * w)), rel=1e-12)


@pytest.mark.parametrize("alpha", [1.25, 2.0])
def test_excess_of_primitives_that_are_alike_is_the_divergence_from_the_prior(alpha, rng):
    prior, w = rng.dirichlet(np.ones(N), 2)
    given = Objective(np.full((2, N), 0.5), np.zeros(2), 0.5, np.log(prior), alpha=alpha)

    def r(v):
        return v * ((v ** (alpha - 1) - 1) / (alpha - 1) - 1) / alpha

    slope = (prior ** (alpha - 1) - 1) / (alpha - 1)
    divergence = np.sum(r(w) - r(prior) - slope * (w - prior))
    assert excess_and_distance(given, w)[0] == pytest.approx(0.5 * divergence, rel=1e-12)


def test_optimal_weights_below_caps():
    """Two actions, each with its primitive: the better one is taken as often as its cap allows."""
    given = Objective(np.eye(2), np.array([0.0, 9.0]), 1.0, np.log([0.5, 0.5]), caps=np.array([0.7, 1.0]))
    assert excess_and_distance(given, [0.7, 0.3])[1] <= 1e-15
    assert excess_and_distance(given, [0.5, 0.5])[1] == pytest.approx(0.4, rel=1e-12)


CHANGES = {
    "mixture": {},
    "cold": {"eps": 1e-9},
    "costly": {"cost": np.linspace(-1e9, 1e9, D)},
    "product": {"product": True},
    "sparse": {"alpha": 1.5},
    "caps": {"alpha": 2.0, "caps": np.full(N, 0.4)},
    "capped entropy": {"caps": np.full(N, 0.4)},
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_claim_below_the_truth_is_found_and_one_above_it_is_not_accused(change, rng):
    given = objective(rng, **CHANGES[change])
    w = np.full(N, 1 / N)
    excess, way = excess_and_distance(given, w)
    assert excess > 0
    assert way > 0
    assert judge(given, w, 1.001 * excess, 1.001 * way).honest
    assert not judge(given, w, 0.999 * excess, 2.0).honest
    assert not judge(given, w, np.inf, 0.999 * way).honest
    assert not judge(given, w, np.nan, 2.0).honest


def test_columns_are_judged_as_they_are_stored_and_rescaled():
    """An offset of the cost means something where a column does not sum to one, and nothing where it is rescaled."""
    pi = np.array([[0.5, 0.5], [0.5, 0.5 + 1e-9]])
    given = Objective(pi, np.full(2, 1e6), 1.0, np.log([0.5, 0.5]))
    verdict = judge(given, [0.5, 0.5], 1e-10, 2.0)
    assert (verdict.stored, verdict.rescaled, verdict.honest) == (False, True, False)
    assert verdict.excess == pytest.approx((0.5e-3) ** 2 / 2, rel=1e-3)


def test_an_infinite_energy_has_no_finite_bound():
    given = Objective(np.array([[0.5, 1.0], [0.5, 0.0]]), np.zeros(2), 0.1, np.log([0.5, 0.5]), product=True)
    assert not judge(given, [0.9, 0.1], 1e300, 2.0).honest
    assert judge(given, [0.9, 0.1], np.inf, 2.0).honest
    assert judge(given, [1.0, 0.0], 1e-300, 1e-300).honest


def test_double_double_agrees_with_many_digits(monkeypatch, rng):
    given = objective(rng, cost=1e3 * rng.normal(size=D))
    w = rng.dirichlet(np.ones(N))
    precise = excess_and_distance(given, w)
    monkeypatch.setattr(truth, "LARGEST", 0)
    coarse = excess_and_distance(given, w)
    assert coarse == pytest.approx(precise, rel=1e-12)


def test_rows_that_occur_often_are_counted(monkeypatch, rng):
    given = objective(rng)
    given = given._replace(pi=np.repeat(given.pi, 5, axis=0) / 5, cost=np.repeat(given.cost, 5))
    w = rng.dirichlet(np.ones(N))
    whole = excess_and_distance(given, w)
    monkeypatch.setattr(truth, "MERGE_FROM", 0)
    assert len(truth._columns_of(given).counts) == D
    assert excess_and_distance(given, w) == pytest.approx(whole, rel=1e-14)


@pytest.mark.parametrize("regulariser", [None, Tsallis(1.5), Entropy(0.5)])
@pytest.mark.parametrize("combine", ["mixture", "product"])
def test_problems_are_read_as_they_are_stored(regulariser, combine, rng):
    pi = rng.dirichlet(np.ones(D), (2, N)).swapaxes(-1, -2)
    p = problem(pi=pi, action_cost=np.ones(D), eps=[0.1, 0.2], regulariser=regulariser, combine=combine)
    read = objective_of(p, 1)
    assert (read.eps, read.product) == (0.2, combine == "product")
    assert read.alpha == (1.5 if isinstance(regulariser, Tsallis) else 1.0)
    np.testing.assert_array_equal(read.pi, p.pi[1])


@pytest.mark.parametrize("family", hostile.FAMILIES)
def test_hostile_families_pose_problems(family):
    for index in range(2):
        case = hostile.draw(family, 0, index)
        never = case.given["pi"] == 0.0
        partial = (never & ~never.all(-1, keepdims=True)).any(-2)
        if family == "partial products" and partial.all(-1).any():
            with pytest.raises(ValueError, match="never take"):  # nothing is finite
                problem(**case.given)
            continue
        p = problem(**case.given)
        again = hostile.draw(family, 0, index)
        np.testing.assert_array_equal(case.given["pi"], again.given["pi"])
        if case.weights is not None:
            assert case.weights.shape == (len(p.eps), p.pi.shape[-1])
            assert np.all(np.abs(case.weights.sum(-1) - 1) <= 1e-6)
