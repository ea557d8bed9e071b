"""Effect sizes against brute force, SciPy and cases with known answers."""

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from policychord.effect_size import cliffs_delta, effect_size, spread


def brute_force(a, b):
    return np.mean([np.sign(x - y) for x in a for y in b])


def test_delta_counts_pairs_and_ties(rng):
    a, b = rng.integers(0, 8, 31).astype(float), rng.integers(2, 9, 23).astype(float)
    assert cliffs_delta(a, b) == pytest.approx(brute_force(a, b), abs=1e-14)
    statistic = mannwhitneyu(a, b).statistic
    assert cliffs_delta(a, b) == pytest.approx(2 * statistic / (31 * 23) - 1, abs=1e-14)
    assert cliffs_delta(b, a) == pytest.approx(-cliffs_delta(a, b), abs=1e-14)


def test_extremes():
    low, high = np.array([1.0, 2.0]), np.array([3.0, 4.0, 5.0])
    assert cliffs_delta(low, high) == -1.0
    assert cliffs_delta(high, low) == 1.0
    assert cliffs_delta(low, low) == 0.0
    assert cliffs_delta(np.array([1.0, np.inf]), np.array([2.0, 3.0])) == 0.0


def test_p_is_scipys(rng):
    a, b = rng.normal(size=60), rng.normal(0.4, size=60)
    assert effect_size(a, b).p == mannwhitneyu(a, b, alternative="two-sided").pvalue


@pytest.mark.parametrize("paired", [False, True])
def test_the_interval_is_that_of_resampling(rng, paired):
    """Counting draws gives the deltas that drawing the samples would give."""
    a = rng.normal(size=40)
    b = a + 0.3 * rng.normal(size=40) + 0.2 if paired else rng.normal(0.3, size=40)
    found = effect_size(a, b, paired=paired, resamples=4000)
    deltas = []
    for _ in range(1500):
        i = rng.integers(0, 40, 40)
        j = i if paired else rng.integers(0, 40, 40)
        deltas.append(cliffs_delta(a[i], b[j]))
    np.testing.assert_allclose([found.low, found.high], np.quantile(deltas, [0.025, 0.975]), atol=0.04)
    assert found.low < found.delta < found.high


def test_as_much_is_left_out_on_both_sides_as_the_level_says(rng):
    """An interval of level .5 lies between the quartiles of the resamples, a wider one between outer quantiles."""
    a, b = rng.normal(size=(2, 40))
    found = {level: effect_size(a, b, level=level, resamples=4000) for level in (0.5, 0.9)}
    # for a normal distribution of deltas the half-widths are .674 and 1.645 standard deviations
    widths = [found[level].high - found[level].low for level in (0.5, 0.9)]
    assert widths[1] / widths[0] == pytest.approx(1.645 / 0.674, rel=0.1)


def test_pairing_narrows_the_interval(rng):
    a = rng.normal(size=80)
    b = a + 0.05 * rng.normal(size=80) + 0.1
    together, apart = effect_size(a, b, paired=True), effect_size(a, b)
    assert together.high - together.low < 0.5 * (apart.high - apart.low)


def test_the_interval_covers_the_truth():
    """For normals one apart in the mean, delta = 2 Phi(1/sqrt 2) - 1 = 0.5205; 19 of 20 intervals should hold it."""
    rng = np.random.default_rng(3)
    held = 0
    for i in range(100):
        found = effect_size(rng.normal(1.0, 1.0, 50), rng.normal(size=50), resamples=400, seed=i)
        held += found.low <= 0.5205 <= found.high
    assert 88 <= held <= 100


def test_same_seed_same_interval(rng):
    a, b = rng.normal(size=30), rng.normal(size=30)
    assert effect_size(a, b, seed=4) == effect_size(a, b, seed=4)
    assert effect_size(a, b, seed=4).low != effect_size(a, b, seed=5).low


def test_spread():
    found = spread(np.arange(101.0))
    assert found == (50.0, 25.0, 75.0)
    assert found.range == 50.0


@pytest.mark.usefixtures("without_type_checks")
def test_bad_samples_are_refused():
    with pytest.raises(ValueError, match="paired samples are equally long"):
        effect_size(np.ones(3), np.ones(4), paired=True)
    with pytest.raises(ValueError, match="a has shape"):
        cliffs_delta(np.ones((2, 2)), np.ones(4))
    with pytest.raises(ValueError, match="without NaN"):
        spread(np.array([1.0, np.nan]))
    with pytest.raises(ValueError, match="level = 1"):
        effect_size(np.ones(3), np.ones(3), level=1)
