"""`game`: several players, each with a gating problem that depends on the weights of the others.

    V_i(w) = F_i(w_i; w_-i) + eps_i D_i(w_i),   w is an equilibrium if w_i = S_i(w) for every player i
    logit dynamics: tau dw_i/dt = -w_i + S_i(w)

With matrices of payoffs and the entropy it is the quantal response equilibrium. The certificate of player i bounds what
it could gain, V_i(w) - min_u V_i(u; w_-i) <= G_i(w), so w is a (max_i G_i)-Nash equilibrium of the regularised game. In
a potential game, where one function has the slope of every F_i in w_i, that function with all eps_i D_i is an energy
that only falls. Without one the weights may go round for ever, and the outcome says so.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._types import Array, ArrayLike, in_kind
from . import regularisers as reg
from ._checks import as_floats, check_number, check_simplex
from ._method import UNIT_ROUNDOFF, Outcome
from .complexities import ConditionalCertificate, Own
from .convex import ConvexProblem, certificate_of, gate_of, nearest
from .equilibrium import ConvergenceError
from .flow import check_times, follow
from .objective import AnyProblem, Problem, certificate_at, gate

_TOLERANCES = 1e-9, 1e-12  # relative and absolute
_MAX_STEPS = 1 << 17
_POSED = 64.0 * UNIT_ROUNDOFF  # rounding of the costs that a player's function computes, in units of the largest one
_NEAR = 1e-3  # total gap below which Newton's method finishes what the dynamics began
_TURNS = 12
_MOVES, _ALIKE = 1e-3, 0.9  # weights that still move by so much, and by at least this share of what they did before

Player = Callable[..., AnyProblem]  # of the weights of all, and of parameters if there are any


class GameCertificate(NamedTuple):
    """No player gains more than its gap by another mixture, as long as the others keep theirs."""

    gaps: Float[Array, " players"]  # V_i(w) - min_u V_i(u; w_-i) <= gaps[i]
    assumes: tuple[str, ...]  # what the bounds are conditional on

    @property
    def gap(self) -> Any:
        """The sum, which is zero at equilibria only."""
        return self.gaps.sum()


class Play(NamedTuple):
    """Logit dynamics, and the equilibrium at which they end."""

    times: Float[Array, " times"]
    weights: tuple[Array, ...]  # of each player, (times, n_i)
    gaps: Float[Array, "times players"]
    energy: Float[Array, " times"] | None  # of a potential game
    equilibrium: tuple[Array, ...]  # of each player, (n_i); where they end if they do not settle
    certificate: GameCertificate  # of the equilibrium
    outcome: Outcome

    @property
    def converged(self) -> bool:
        """Whether certificate.gap <= tol."""
        return self.outcome is Outcome.CONVERGED


def game(
    players: Sequence[Player],
    sizes: Sequence[int],
    *,
    parameters: Any = None,
    potential: Callable[..., Any] | None = None,
    start: Sequence[ArrayLike] | None = None,
    t1: float = 100.0,
    tau: float = 1.0,
    save: int = 201,
    tol: float = 1e-9,
) -> Play:
    """Let players respond to each other from `start` (even weights unless given), and certify where they settle.

    A player is a JAX function of the weights of all, a tuple, that gives its `problem`; `sizes` says how many weights
    each has. With `parameters`, a tree of arrays, they are its second argument: pass the same functions again to use
    what is compiled. `potential`, a function of the same arguments, is checked and gives the energy. Where the dynamics
    settle, Newton's method brings the sum of the gaps below `tol`.
    """
    players, sizes = tuple(players), tuple(int(n) for n in sizes)
    _check_players(players, sizes)
    check_times(t1, tau, save)
    check_number("tol", tol)
    begin = _first(start, sizes)
    parameters = jax.tree.map(lambda leaf: as_floats("parameters", leaf), parameters)

    conditions: set[str] = set()

    def run() -> Any:
        posed = [_pose(player, begin, parameters) for player in players]
        for i, (given, n) in enumerate(zip(posed, sizes, strict=True)):
            _check_posed(i, given, n)
            conditions.update(_conditions(given))
        if potential is not None:
            _check_potential(players, sizes, potential, parameters)
        return _dynamics(players, potential, begin, parameters, t1, tau, save)

    times, weights, gaps, energy, end, end_gaps = in_kind(run, begin, parameters)
    if not all(np.isfinite(np.asarray(w)).all() for w in weights):
        raise ConvergenceError("the players' dynamics could not be integrated: raise eps, or shorten t1.")
    outcome = _outcome(weights, float(end_gaps.sum()), tol)
    if outcome is Outcome.CYCLES:
        end, end_gaps = tuple(w[-1] for w in weights), gaps[-1]
    return Play(times, weights, gaps, energy, end, GameCertificate(end_gaps, tuple(sorted(conditions))), outcome)


def _check_players(players: tuple[Player, ...], sizes: tuple[int, ...]) -> None:
    if not players or not all(callable(player) for player in players):
        raise ValueError("players is a list of functions: each takes the weights of all and gives its problem.")
    if len(sizes) != len(players) or min(sizes) < 1:
        raise ValueError(f"sizes = {sizes}: pass how many weights each of the {len(players)} players has.")


def _first(start: Sequence[ArrayLike] | None, sizes: tuple[int, ...]) -> tuple[Any, ...]:
    if start is None:
        return tuple(np.full(n, 1.0 / n) for n in sizes)
    if len(start) != len(sizes):
        raise ValueError(f"start has {len(start)} entries: pass weights for each of the {len(sizes)} players.")
    return tuple(
        check_simplex(f"start[{i}]", w, np.zeros(n)) for i, (w, n) in enumerate(zip(start, sizes, strict=True))
    )


def _pose(player: Callable[..., Any], weights: tuple[Any, ...], parameters: Any) -> Any:
    return player(weights) if parameters is None else player(weights, parameters)


def _check_posed(i: int, given: Any, n: int) -> None:
    if not isinstance(given, Problem | ConvexProblem):
        raise ValueError(f"players[{i}] gives a {type(given).__name__}: return problem(...).")
    if given.log_prior.shape != (n,):
        raise ValueError(
            f"players[{i}] gives a problem with weights of shape {given.log_prior.shape}, but sizes[{i}] = {n}: one "
            "problem, without batch axes, of that many weights."
        )
    if isinstance(given, ConvexProblem) and not given.complexity.convex:
        raise ValueError(f'players[{i}] has combine="local product", whose best responses nothing certifies.')


def _conditions(given: AnyProblem) -> tuple[str, ...]:
    own = isinstance(given, ConvexProblem) and isinstance(given.complexity, Own)
    return ConditionalCertificate.assumes if own else ("costs are right to 64 roundings of the largest one",)


# ------------------------------------------------------------------------------- one moment


def _response(given: Any, weights: Any) -> Any:
    return gate(given, weights) if isinstance(given, Problem) else gate_of(given, weights)


def _responses(players: Any, weights: Any, parameters: Any) -> Any:
    return tuple(_response(_pose(p, weights, parameters), w) for p, w in zip(players, weights, strict=True))


def _gaps(players: Any, weights: Any, parameters: Any) -> Any:
    """G_i, with the rounding of the costs, which depend on the others' weights."""

    def of(player: Any, own: Any) -> Any:
        given = _pose(player, weights, parameters)
        if isinstance(given, Problem):
            return certificate_at(given, own).gap + 2.0 * _POSED * jnp.max(jnp.abs(given.action_cost))
        gap = certificate_of(given, own).gap
        if isinstance(given.complexity, Own):  # its certificate counts as many roundings of the gradient
            return gap
        leverage = 1.0 + 2.0 * jnp.max(jnp.abs(given.complexity.layers(given.parameters, own.size).encode))
        return gap + 2.0 * _POSED * leverage * jnp.max(jnp.abs(given.action_cost))

    return jnp.stack([of(player, own) for player, own in zip(players, weights, strict=True)])


def _slope(given: Any, weights: Any) -> Any:
    """The gradient of F_i in the player's own weights, up to a constant."""
    if isinstance(given, Problem):
        return (jnp.log(jnp.maximum(given.pi @ weights, 1e-300)) + given.action_cost) @ given.pi
    return given.complexity.gradient(given.parameters, weights)[0]


def _energy(players: Any, potential: Any, weights: Any, parameters: Any) -> Any:
    """The potential and the regularisers of all."""
    total = _pose(potential, weights, parameters)
    for player, own in zip(players, weights, strict=True):
        given = _pose(player, weights, parameters)
        total = total + given.eps * reg.value(own, given.log_prior, getattr(given, "alpha", None))
    return total


def _check_potential(players: Any, sizes: Any, potential: Any, parameters: Any) -> None:
    """Its slope in a player's weights is that of the player's complexity, up to a constant, at a few random points."""
    rng = np.random.default_rng(0)
    for _ in range(3):
        weights = tuple(jnp.asarray(rng.dirichlet(np.full(n, 3.0))) for n in sizes)
        slopes = jax.grad(lambda all_of: _pose(potential, all_of, parameters))(weights)
        for i, (player, slope) in enumerate(zip(players, slopes, strict=True)):
            own = _slope(_pose(player, weights, parameters), weights[i])
            apart = float(jnp.ptp(own - slope))
            if not apart <= 1e-6 * (1.0 + float(jnp.max(jnp.abs(own)))):
                raise ValueError(
                    f"potential is not one: its slopes in the weights of players[{i}] differ from those of the "
                    f"player's complexity by up to {apart:.3g} more than a constant. Leave it out for a game without."
                )


# ------------------------------------------------------------------------------- all the time


@partial(jax.jit, static_argnames=("players", "potential", "save"))
def _dynamics(players: Any, potential: Any, begin: Any, parameters: Any, t1: Any, tau: Any, save: int) -> Any:
    import diffrax  # slow to import

    times = jnp.linspace(0.0, t1, save)

    def velocity(t: Any, weights: Any, _: Any) -> Any:
        return tuple((s - w) / tau for s, w in zip(_responses(players, weights, parameters), weights, strict=True))

    path = follow(velocity, diffrax.Tsit5(), begin, times, _TOLERANCES, _MAX_STEPS)
    weights = tuple(jnp.maximum(w, 0.0) / jnp.sum(jnp.maximum(w, 0.0), axis=-1, keepdims=True) for w in path)
    gaps = jax.vmap(lambda *now: _gaps(players, now, parameters))(*weights)
    energy = None
    if potential is not None:
        energy = jax.vmap(lambda *now: _energy(players, potential, now, parameters))(*weights)
    end = _finished(players, tuple(w[-1] for w in weights), parameters)
    return times, weights, gaps, energy, end, _gaps(players, end, parameters)


def _finished(players: Any, weights: Any, parameters: Any) -> Any:
    """Newton's method for w = S(w), wherever it lowers the sum of the gaps."""
    cuts = np.cumsum([w.size for w in weights])[:-1]

    def parts(x: Any) -> Any:
        return tuple(jnp.split(x, cuts))

    def miss(x: Any) -> Any:
        return x - jnp.concatenate(_responses(players, parts(x), parameters))

    def total(x: Any) -> Any:
        return jnp.sum(_gaps(players, parts(x), parameters))

    def turn(_: Any, x: Any) -> Any:
        moved = parts(x - jnp.linalg.solve(jax.jacfwd(miss)(x), miss(x)))
        inside = [_inside(_pose(p, parts(x), parameters), w) for p, w in zip(players, moved, strict=True)]
        # a response has the relative precision that Newton's sum has not where weights are tiny
        after = jnp.concatenate(_responses(players, tuple(inside), parameters))
        return jnp.where((total(x) <= _NEAR) & (total(after) < total(x)), after, x)

    return parts(jax.lax.fori_loop(0, _TURNS, turn, jnp.concatenate(weights)))


def _inside(given: Any, weights: Any) -> Any:
    if isinstance(given, ConvexProblem):
        return nearest(given, jnp.maximum(weights, 0.0))
    return jnp.maximum(weights, 0.0) / jnp.sum(jnp.maximum(weights, 0.0))


def _outcome(weights: tuple[Any, ...], gap: float, tol: float) -> Outcome:
    """Settled, going round, or neither yet: by what the weights did in the last two quarters."""
    if gap <= tol:
        return Outcome.CONVERGED
    path = np.concatenate([np.asarray(w) for w in weights], axis=-1)
    before, after = (np.ptp(part, axis=0).max() for part in np.array_split(path[len(path) // 2 :], 2))
    return Outcome.CYCLES if after > max(_MOVES, _ALIKE * before) else Outcome.NOT_CONVERGED
