"""Players who respond to each other: equilibria against an independent solver, certificates against fifty digits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flint import arb, ctx
from scipy.optimize import root

from policychord import Entropy, Outcome, Tsallis, game, problem, solve

N = 3


def linear(weights, cost):
    return cost @ weights


def matrix_player(i):
    """Expects the payoffs of both, own choices first, and the temperature."""

    def pose(weights, given):
        return problem(complexity=linear, n=N, eps=given[2], parameters=-(given[i] @ weights[1 - i]))

    return pose


def alone(weights, given):
    return problem(complexity=linear, n=N, eps=0.1, parameters=jnp.zeros(N))


BOTH = (matrix_player(0), matrix_player(1))
ROCK = np.array([[0.0, -1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 1.0, 0.0]])
SHAPLEY = np.eye(3), np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])


def bimatrix(seed):
    rng = np.random.default_rng([42, seed])
    return rng.random((N, N)), rng.random((N, N)), 10 ** rng.uniform(-1.0, 0.0)


def quantal_response(a, b, eps):
    """The logit equilibrium on the principal branch: from even weights at an infinite temperature down to eps."""

    def softmax(x):
        e = np.exp(x - x.max())
        return e / e.sum()

    def miss(x, precision):
        return np.concatenate([x[:N] - softmax(precision * a @ x[N:]), x[N:] - softmax(precision * b @ x[:N])])

    x = np.full(2 * N, 1.0 / N)
    for precision in np.linspace(0.0, 1.0 / eps, 400)[1:]:
        x = root(miss, x, args=(precision,), tol=1e-13).x
    return x, np.abs(miss(x, 1.0 / eps)).max()


def true_gap(cost, eps, weights):
    """V(w) - min V of a linear cost with the entropy and an even prior, in fifty digits."""
    with ctx.workdps(50):
        w = [arb(v) for v in weights.tolist()]
        total = sum(w, arb(0))
        w = [v / total for v in w]
        terms = [v * (c + arb(eps) * (v * N).log()) for v, c in zip(w, cost, strict=True)]
        best = -arb(eps) * (sum(((-c / arb(eps)).exp() for c in cost), arb(0)) / N).log()
        return sum(terms, arb(0)) - best


def costs_of(payoffs, others):
    """Expected costs in fifty digits."""
    with ctx.workdps(50):
        w = [arb(v) for v in others.tolist()]
        total = sum(w, arb(0))
        return [-sum((arb(p) * v / total for p, v in zip(row, w, strict=True)), arb(0)) for row in payoffs.tolist()]


def is_honest(played, weights, gaps, a, b, eps):
    gains = [true_gap(costs_of(m, weights[1 - i]), eps, weights[i]) for i, m in enumerate((a, b))]
    return all(not arb(float(g)) < gain for g, gain in zip(gaps, gains, strict=True)), [float(g.mid()) for g in gains]


def test_logit_equilibria_are_those_of_an_independent_solver():
    for seed in range(20):
        a, b, eps = bimatrix(seed)
        expected, residual = quantal_response(a, b, eps)
        assert residual < 1e-12
        played = game(BOTH, (N, N), parameters=(a, b, eps))
        assert played.outcome is Outcome.CONVERGED
        np.testing.assert_allclose(np.concatenate(played.equilibrium), expected, atol=1e-8)
        assert played.certificate.gap <= 1e-12
        assert is_honest(played, played.equilibrium, played.certificate.gaps, a, b, eps)[0]


def test_gaps_on_the_way_bound_what_a_player_could_gain():
    """In fifty digits, and not by much more than is true."""
    for seed in range(20):
        a, b, eps = bimatrix(seed)
        played = game(BOTH, (N, N), parameters=(a, b, eps))
        for moment in (0, 3, 8):
            weights = tuple(w[moment] for w in played.weights)
            honest, gains = is_honest(played, weights, played.gaps[moment], a, b, eps)
            assert honest
            np.testing.assert_allclose(played.gaps[moment], gains, rtol=1e-6, atol=1e-14)


def test_games_without_a_potential_settle_or_say_that_they_cycle():
    """Zero-sum games settle under logit dynamics (Hofbauer and Sandholm 2002); Shapley's goes round when it is cold."""
    start = [[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]]
    rock = game(BOTH, (N, N), parameters=(ROCK, ROCK, 0.02), start=start)
    assert rock.outcome is Outcome.CONVERGED
    np.testing.assert_allclose(rock.equilibrium, np.full((2, N), 1 / N), atol=1e-9)
    warm = game(BOTH, (N, N), parameters=(*SHAPLEY, 0.5), start=start)
    assert warm.outcome is Outcome.CONVERGED
    cold = game(BOTH, (N, N), parameters=(*SHAPLEY, 0.05), start=start)
    assert cold.outcome is Outcome.CYCLES
    assert not cold.converged
    assert cold.certificate.gap > 0.1  # of where it was last: nothing is claimed
    late = cold.weights[0][120:]
    assert np.ptp(late, axis=0).max() > 0.3
    hurried = game(BOTH, (N, N), parameters=(ROCK, ROCK, 0.02), start=start, t1=2.0)
    assert hurried.outcome is Outcome.NOT_CONVERGED


def common(weights, given):
    return -weights[0] @ given[0] @ weights[1]


def test_the_energy_of_a_potential_game_falls_to_a_certified_equilibrium():
    """Coordination: where players end depends on where they begin, and both ends are equilibria."""
    payoffs = np.diag([1.0, 0.9, 0.8])
    ends = []
    for begin in ([0.8, 0.1, 0.1], [0.1, 0.1, 0.8]):
        played = game(BOTH, (N, N), parameters=(payoffs, payoffs.T, 0.1), potential=common, start=[begin, begin])
        assert played.converged
        assert np.diff(played.energy).max() <= 1e-12
        assert played.energy[0] - played.energy[-1] > 0.01
        ends.append(played.equilibrium[0])
    assert ends[0].argmax() == 0
    assert ends[1].argmax() == 2
    with pytest.raises(ValueError, match=r"slopes in the weights of players\[0\] differ"):
        game(BOTH, (N, N), parameters=(payoffs, payoffs.T, 0.1), potential=lambda w, given: -common(w, given))


def test_composers_share_two_roads():
    """Congestion: each player mixes two habits of using the roads, and a road costs what all put on it."""
    habits = jnp.array([[0.9, 0.2], [0.1, 0.8]])

    def traveller(i, regulariser):
        def pose(weights):
            load = sum(habits @ w for k, w in enumerate(weights) if k != i)
            cost = jnp.array([1.0, 2.0]) * (load + 1.0)  # with one's own whole trip
            return problem(pi=habits, action_cost=cost, eps=0.3, regulariser=regulariser)

        return pose

    players = [traveller(0, None), traveller(1, Tsallis(2.0)), traveller(2, Entropy(caps=0.6))]
    played = game(players, (2, 2, 2), t1=40.0)
    assert played.converged
    assert "64 roundings" in played.certificate.assumes[0]
    with jax.enable_x64(True):
        for player, own in zip(players, played.equilibrium, strict=True):
            posed = player([jnp.asarray(w) for w in played.equilibrium])
            np.testing.assert_allclose(solve(posed).weights, own, atol=1e-6)
    assert played.equilibrium[2].max() <= 0.6 + 1e-9


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"players": []}, "players is a list of functions"), ({"sizes": (N,)}, "sizes = "),
        ({"sizes": (N, 2), "players": [alone, alone]}, r"sizes\[1\] = 2"),
        ({"start": [[1.0, 0.0, 0.0]]}, "start has 1 entries"),
        ({"start": [[0.5, 0.4, 0.0], [1.0, 0.0, 0.0]]}, r"start\[0\] sums to 0.9"), ({"t1": -1.0}, "t1 = -1"),
        ({"players": [lambda w, given: 3.0, BOTH[1]]}, r"players\[0\] gives a float: return problem"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("without_type_checks")
def test_what_is_no_game_is_refused(change, said):
    given = {"players": BOTH, "sizes": (N, N), "parameters": (ROCK, ROCK, 0.1)} | change
    with pytest.raises(ValueError, match=said):
        game(given.pop("players"), given.pop("sizes"), **given)
