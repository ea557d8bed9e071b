"""Group model selection: closed forms, simulation as a judge, and what the published programs give."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betaln
from scipy.stats import beta, binom

from policychord.inference import (
    compare_conditions,
    compare_groups,
    exceedance,
    not_excluded,
    posterior_frequencies,
    power,
    select_families,
    select_models,
)


def evidence(rng, subjects=30, favour=(1.0, 0.0, -1.0)):
    return rng.normal(scale=2.0, size=(subjects, len(favour))) + np.asarray(favour)


def test_two_models_have_a_closed_form():
    for a, b in [(1.0, 1.0), (3.0, 7.5), (0.2, 0.9), (40.0, 4.0), (900.0, 1000.0)]:
        np.testing.assert_allclose(exceedance([a, b])[0], beta.sf(0.5, a, b), atol=1e-12)


@pytest.mark.parametrize("strength", [0.3, 1.0, 4.0])
def test_frequencies_without_knowing_who_uses_what(rng, strength):
    """Against quadrature over the frequency of the first of two models; wider than mean field where they look alike."""
    log_evidence = strength * (np.where(np.arange(30)[:, None] < 20, [1.0, 0.0], [0.0, 1.0]) + rng.normal(size=(30, 2)))
    grid = (np.arange(4000) + 0.5) / 4000
    log_p = np.logaddexp(np.log(grid)[:, None] + log_evidence[:, 0], np.log1p(-grid)[:, None] + log_evidence[:, 1])
    density = np.exp(log_p.sum(axis=1) - log_p.sum(axis=1).max())
    mean = density @ grid / density.sum()
    sd = np.sqrt(density @ (grid - mean) ** 2 / density.sum())
    found = posterior_frequencies(log_evidence)
    np.testing.assert_allclose(found.mean, [mean, 1 - mean], atol=0.02)
    np.testing.assert_allclose(found.sd, [sd, sd], rtol=0.06)
    known = select_models(log_evidence)
    narrow = np.sqrt(known.expected[0] * known.expected[1] / (known.alpha.sum() + 1))
    assert found.sd[0] > narrow * (1.3 if strength <= 1 else 1.0)


@settings(max_examples=40)
@given(st.lists(st.floats(0.05, 500.0), min_size=2, max_size=6))
def test_exceedance_is_a_distribution_and_permutes(alpha):
    xp = exceedance(alpha)
    assert (xp >= 0).all()
    assert xp.sum() == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(exceedance(alpha[::-1]), xp[::-1], atol=1e-10)
    order = np.argsort(alpha)
    assert (np.diff(xp[order]) >= -1e-10).all()  # a larger count is never less likely to be the largest


def test_exceedance_agrees_with_sampling(rng):
    for alpha in ([5.0, 4.0, 3.5, 1.0], [0.3, 0.2, 0.5], np.linspace(1, 6, 12)):
        drawn = rng.dirichlet(alpha, 200_000).argmax(1)
        share = np.bincount(drawn, minlength=len(alpha)) / drawn.size
        np.testing.assert_allclose(exceedance(alpha), share, atol=5e-3)


def test_equal_counts_share_alike_whatever_their_number():
    for models in (1, 2, 3, 10, 60):
        np.testing.assert_allclose(exceedance(np.full(models, 3.0)), 1.0 / models, atol=1e-12)


def test_the_posterior_is_a_fixed_point(rng):
    found = select_models(evidence(rng), tol=1e-12)
    np.testing.assert_allclose(found.alpha, 1.0 + found.responsibilities.sum(0), atol=1e-10)
    np.testing.assert_allclose(found.responsibilities.sum(1), 1.0, atol=1e-12)
    np.testing.assert_allclose(found.expected, found.alpha / found.alpha.sum())
    np.testing.assert_allclose(found.pxp, (1 - found.bor) * found.xp + found.bor / 3)
    assert 0 <= found.bor <= 1


def test_a_constant_for_each_person_changes_nothing(rng):
    table = evidence(rng)
    moved = table + rng.normal(scale=1e3, size=(len(table), 1))
    for a, b in zip(select_models(table), select_models(moved), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)


def test_no_evidence_is_no_preference():
    found = select_models(np.zeros((20, 4)))
    np.testing.assert_allclose(found.pxp, 0.25, atol=1e-9)
    assert found.bor > 0.5  # nothing speaks against equal frequencies


def test_strong_evidence_is_believed():
    found = select_models(np.tile([0.0, -30.0, -30.0], (25, 1)))
    assert found.bor < 1e-4
    assert found.pxp[0] > 0.999
    np.testing.assert_allclose(found.alpha, [26.0, 1.0, 1.0], atol=1e-6)


def test_chance_raises_the_risk_and_protects(rng):
    found = select_models(evidence(rng, subjects=6, favour=(0.2, 0.0)))
    assert found.bor > 0.3
    assert abs(found.pxp[0] - 0.5) < abs(found.xp[0] - 0.5)


def test_one_person_cannot_tell_frequencies_apart():
    """A flat Dirichlet and equal frequencies predict one person alike, and the bound on the former errs to its loss."""
    table = np.array([[0.0, -1.5]])
    assert 0.5 <= select_models(table, tol=1e-12).bor < 0.7


def test_families_share_their_prior(rng):
    table = evidence(rng, favour=(0.5, 0.5, 0.0, 0.0))
    found = select_families(table, {"good": [0, 1], "bad": [2, 3]}, tol=1e-10)
    assert found.alpha.shape == (2,)
    assert found.alpha.sum() == pytest.approx(2 + len(table))
    np.testing.assert_allclose(found.responsibilities.sum(1), 1.0, atol=1e-12)
    alone = select_families(table, {str(k): [k] for k in range(4)}, tol=1e-10)
    for a, b in zip(alone, select_models(table, tol=1e-10), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)
    # protection shares the omnibus risk among families, not among models
    uneven = select_families(table, {"one": [0], "three": [1, 2, 3]}, tol=1e-10)
    np.testing.assert_allclose(uneven.pxp, (1 - uneven.bor) * uneven.xp + uneven.bor / 2, atol=1e-12)
    assert uneven.pxp.sum() == pytest.approx(1.0, abs=1e-12)
    assert 0.01 < uneven.bor < 0.99, "else the risk has no say"
    # copies of a model do not make its family more probable
    doubled = select_families(table[:, [0, 0, 0, 2]], {"a": [0, 1, 2], "b": [3]}, tol=1e-10)
    single = select_models(table[:, [0, 2]], tol=1e-10)
    assert abs(doubled.expected[0] - single.expected[0]) < 0.06


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ([1.0, 2.0], "shape"),
        ([[1.0, np.nan]], r"log_evidence\[0, 1\]"),
        ([[1.0, -np.inf]], "finite"),
        ([["a", "b"]], "numbers"),
        (np.zeros((0, 2)), "shape"),
    ],
)
def test_bad_tables_are_named(table, words):
    with pytest.raises(ValueError, match=words):
        select_models(table)


def test_bad_options_are_named():
    with pytest.raises(ValueError, match="prior"):
        select_models(np.zeros((2, 2)), prior=0)
    with pytest.raises(ValueError, match="tol"):
        select_models(np.zeros((2, 2)), tol=np.nan)
    with pytest.raises(ValueError, match="every model belongs"):
        select_families(np.zeros((2, 3)), {"a": [0, 1], "b": [1, 2]})
    with pytest.raises(ValueError, match="names model 7"):
        select_families(np.zeros((2, 3)), {"a": [0, 7]})
    with pytest.raises(ValueError, match="alpha"):
        exceedance([1.0, -1.0])


def test_it_stands_alone():
    """Somebody who only compares models loads neither statsmodels nor pandas nor the solver."""
    code = (
        "import sys; from policychord.inference import select_models; import numpy as np; "
        "select_models(np.zeros((3, 2))); "
        "heavy = {'statsmodels', 'pandas', 'numba', 'matplotlib', 'equinox'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# -------------------------------------------------- groups, conditions, power: against other implementations


def exact_log_group(table, points=4001):
    """ln of the group's evidence for two models, ln int prod_n (r p_n1 + (1 - r) p_n2) dr, by quadrature."""
    r = np.linspace(0.0, 1.0, points)[1:-1, None]
    log_p = np.logaddexp(np.log(r) + table[:, 0], np.log1p(-r) + table[:, 1]).sum(1)
    return float(np.log(np.mean(np.exp(log_p - log_p.max()))) + log_p.max())


@pytest.mark.parametrize("favour", [(2.0, 0.0), (-2.0, 0.0), (0.0, 0.0)])
def test_groups_agree_with_the_exact_integral(rng, favour):
    first, second = evidence(rng, 20, (2.0, 0.0)), evidence(rng, 16, favour)
    found = compare_groups({"a": first, "b": second})
    same = exact_log_group(np.concatenate([first, second]))
    different = exact_log_group(first) + exact_log_group(second)
    assert found.log_same <= same + 1e-6  # a bound from below
    assert found.log_different <= different + 1e-6
    assert found.same == pytest.approx(1 / (1 + np.exp(different - same)), abs=0.12)


def test_groups_that_differ_and_groups_that_do_not(rng):
    one = evidence(rng, 30, (4.0, 0.0, 0.0))
    assert compare_groups({"a": one, "b": evidence(rng, 30, (0.0, 4.0, 0.0))}).same < 0.01
    assert compare_groups({"a": one[:15], "b": one[15:]}).same > 0.8
    with pytest.raises(ValueError, match="two or more groups"):
        compare_groups({"a": one})


def test_conditions_agree_with_plain_loops(rng):
    """The same by loops over tuples, without a line of ours: the variational posterior of Stephan et al. (2009)."""
    from scipy.special import digamma

    first, second = evidence(rng, 25, (3.0, 0.0)), evidence(rng, 25, (0.0, 3.0))
    found = compare_conditions({"a": first, "b": second}, tol=1e-10)
    tuples = [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert found.tuples == tuple(tuples)
    prior = np.array([0.5, 0.5, 0.5, 0.5])
    alpha = prior.copy()
    for _ in range(2000):
        total = np.zeros(4)
        for n in range(25):
            u = np.array([first[n, i] + second[n, j] for i, j in tuples]) + digamma(alpha) - digamma(alpha.sum())
            g = np.exp(u - u.max())
            total += g / g.sum()
        alpha = prior + total
    np.testing.assert_allclose(found.frequency, alpha / alpha.sum(), atol=1e-6)
    stable = alpha[0] + alpha[3]
    assert found.stable == pytest.approx(stable / alpha.sum(), abs=1e-6)
    assert found.xp == pytest.approx(beta.sf(0.5, stable, alpha.sum() - stable), abs=1e-8)
    assert compare_conditions({"a": first, "b": first}).xp > 0.95
    with pytest.raises(ValueError, match="same people"):
        compare_conditions({"a": first, "b": second[:5]})


def test_power_grows_with_people_and_names_a_size(rng):
    """A lead of .8 nats with a spread of 2.8 between people: some 60% use the model, so hundreds are needed."""
    found = power(evidence(rng, 400, (0.8, 0.0)), 0, (20, 80, 320), draws=40)
    assert (np.diff(found.power) > 0).all()
    assert found.power[0] < 0.4
    assert found.power[2] > 0.5
    assert found.enough == (320 if found.power[2] >= 0.8 else None)
    assert (found.wrong <= 0.1).all()
    with pytest.raises(ValueError, match="model = 7"):
        power(evidence(rng), 7)


def test_power_is_that_of_coins_where_everybody_is_decided():
    """Evidence of 50 nats: k of n people use the model, and PXP has a closed form by the beta function."""
    pilot = np.where(np.arange(100)[:, None] < 70, [[50.0, 0.0]], [[0.0, 50.0]])
    sizes, draws = (10, 30, 60), 400
    found = power(pilot, 0, sizes, draws=draws)
    for size, share in zip(sizes, found.power, strict=True):
        k = np.arange(size + 1)
        bor = 1 / (1 + np.exp(betaln(k + 1, size - k + 1) + size * np.log(2)))
        pxp = beta.sf(0.5, k + 1, size - k + 1) * (1 - bor) + bor / 2
        expected = binom.pmf(k, size, 0.7)[pxp > 0.95].sum()
        assert share == pytest.approx(expected, abs=4 * np.sqrt(expected * (1 - expected) / draws) + 1e-9)


def test_models_that_are_not_excluded(rng):
    sure = select_models(evidence(rng, 40, (6.0, 0.0, 0.0)))
    assert not_excluded(sure) == [0]
    assert not_excluded(sure._replace(pxp=np.array([0.5, 0.49, 0.01]))) == [0, 1]
    assert sorted(not_excluded(sure._replace(bor=0.3))) == [0, 1, 2]
