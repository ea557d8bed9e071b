"""`ConvexProblem`: a gating problem with any convex complexity F and any regulariser, with its verbs and certificate.

    V(w) = F(w) + eps D(w, w_hat),   S(w) = argmin_s <grad F(w), s> + eps D(s, w_hat),   flow: tau dw/dt = -w + S(w)
    V(w) - V* <= G(w) = <grad F, w - S> + eps (D(w, w_hat) - D(S, w_hat)),   |w - w*|_1 <= sqrt(2 n^(alpha-1) G/eps)

D is the divergence of the regulariser (`regularisers.py`); complexities are in `complexities.py`. The bound needs
convexity of F and nothing else: it is the Bregman-PL remark for the entropy, else a generalised Frank-Wolfe gap.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._types import ActionValues, ArrayLike, Primitives, Scalars, Weights, in_kind, is_traced, namespace
from . import _checks as checks
from . import regularisers as reg
from ._method import FUNCTION_ROUNDING, UNIT_ROUNDOFF, gap_rounding, relative_rounding
from .complexities import COMBINE, AbstractComplexity, Mixture, Own, check_function, is_partial, is_product
from .objective import AnyProblem, Certificate, Problem

# Problems solved side by side wait for the slowest of them, and so many numbers stay in a processor's cache.
_SIDE_BY_SIDE = 80_000

_Function = Callable[..., Any]


class ConvexProblem(NamedTuple):
    """A gating problem with any complexity and regulariser. Built and checked by `problem`.

    All arrays, those in `parameters` too, share the leading batch axes.
    """

    complexity: AbstractComplexity
    parameters: Any
    eps: Scalars
    log_prior: Weights
    alpha: Scalars | None  # of the regulariser; None is the entropy
    caps: Weights | None  # None: no caps

    @property
    def pi(self) -> Primitives:
        """The primitives, of a mixture or a product."""
        return self.complexity.primitives(self.parameters)

    @property
    def action_cost(self) -> ActionValues:
        """The cost of each action, of a mixture or a product."""
        return self.parameters[1]


def own_problem(
    function: Any, n: Any, eps: ArrayLike, prior: ArrayLike | None, regulariser: Any, parameters: Any
) -> ConvexProblem:
    """A problem with the complexity `function(weights)`, or `function(weights, parameters)`."""
    if not callable(function):
        raise ValueError(f"complexity is a {type(function).__name__}: pass a function of the weights.")
    if not (isinstance(n, int | np.integer) and not isinstance(n, bool) and 1 <= n < 2**31):
        raise ValueError(
            f"n = {checks.shown(n)}: pass n, the number of weights that the complexity takes, as a positive integer."
        )
    parameters = jax.tree.map(lambda leaf: checks.as_floats("parameters", leaf), parameters)
    own = Own(function)
    posed = _pose(own, parameters, int(n), eps, prior, regulariser)
    lead = posed.eps.ndim
    single = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[lead:], np.float64), posed.parameters)
    check_function(own, single, int(n))
    return posed


def generalise(mixture: Problem, regulariser: Any, combine: Any, log_pi: ArrayLike | None) -> AnyProblem:
    """The same problem with another regulariser, or a product or a posterior in place of the mixture.

    `log_pi` may go on where the probabilities of `mixture` underflow: a product takes their logarithms. An expert that
    never takes an action that others take is capped at zero, if F is then finite.
    """
    if not isinstance(combine, str) or combine not in COMBINE:
        raise ValueError(f"combine = {combine!r}: use one of {', '.join(map(repr, COMBINE))}.")
    pi, cost, eps, log_prior = mixture
    kind, n = COMBINE[combine], pi.shape[-1]
    if combine == "mixture" and reg.is_plain(regulariser):
        return mixture
    alpha, caps = reg.alpha_and_caps(regulariser, n)
    checks.joint_axes({"the problem": eps.shape, "alpha": alpha.shape, "caps": caps.shape[:-1]})
    if not is_product(kind):
        return _pose(kind, (pi, cost), n, eps, None, regulariser, log_prior)
    columns = mixture.log_pi if log_pi is None else checks.as_floats("log_pi", log_pi)
    if log_pi is not None:
        xp = namespace(columns)
        columns = columns - xp.log(xp.sum(xp.exp(columns), axis=-2, keepdims=True))
    posed = _pose(kind, (columns, cost), n, eps, None, regulariser, log_prior)
    left_out = is_partial(columns)
    capped = kind.convex and (is_traced(left_out) or np.any(left_out))
    return _without(posed, left_out) if capped else posed


def _pose(
    complexity: AbstractComplexity, parameters: Any, n: int, eps: ArrayLike, prior: ArrayLike | None, regulariser: Any,
    log_prior: ArrayLike | None = None,
) -> ConvexProblem:  # fmt: skip
    """Check what every problem has, and give all of it the same batch axes: those of eps, prior and regulariser."""
    temperature = checks.as_floats("eps", eps)
    checks.check_eps(temperature)
    bias = checks.log_prior_of(n, prior, log_prior)
    alpha, caps = (None, None) if reg.is_plain(regulariser) else reg.alpha_and_caps(regulariser, n)
    return _aligned(ConvexProblem(complexity, parameters, temperature, bias, alpha, caps), n)


def checked_convex(problem: Any) -> ConvexProblem:
    """The problem as float64 arrays whose shapes fit together, whoever put it together, or a complaint."""
    if not isinstance(problem, ConvexProblem):
        raise ValueError(
            f"expected a Problem but got {type(problem).__name__}: build one with "
            "problem(pi=..., action_cost=..., eps=...)."
        )
    complexity, parameters, *arrays = problem
    if not isinstance(complexity, AbstractComplexity):
        raise ValueError(
            f"complexity is a {type(complexity).__name__}: build the problem with problem(complexity=...)."
        )
    eps, log_prior = map(checks.as_floats, ("eps", "log_prior"), arrays[:2])
    alpha, caps = (
        None if field is None else checks.as_floats(name, field)
        for name, field in zip(("alpha", "caps"), arrays[2:], strict=True)
    )
    if isinstance(complexity, Own):
        parameters = jax.tree.map(lambda leaf: checks.as_floats("parameters", leaf), parameters)
        n = log_prior.shape[-1] if log_prior.ndim else 0
    else:
        if not (isinstance(parameters, tuple | list) and len(parameters) == 2):
            raise ValueError(
                f"parameters is a {type(parameters).__name__}: a mixture or a product has (pi, action_cost); build the "
                "problem with problem(pi=..., action_cost=..., eps=...)."
            )
        pi, cost = parameters = tuple(map(checks.as_floats, ("pi", "action_cost"), parameters))
        checks.check_shapes("pi", pi, cost, eps, "log_prior", log_prior)
        n = pi.shape[-1]
    return _aligned(ConvexProblem(complexity, parameters, eps, log_prior, alpha, caps), n)


def _aligned(problem: ConvexProblem, n: int) -> ConvexProblem:
    """The same batch axes for all of it: those of eps, prior, regulariser and, where they are known, pi and cost."""
    complexity, parameters, eps, log_prior, alpha, caps = problem
    for name, rows in (("prior", log_prior), ("caps", caps)):
        if rows is not None and (rows.ndim < 1 or rows.shape[-1] != n or n == 0):
            raise ValueError(
                f"{name} has shape {rows.shape}: the last axis needs one entry for each of the {n or 'n'} weights."
            )
    shapes = {"eps": eps.shape, "prior": log_prior.shape[:-1]}
    shapes |= {} if alpha is None else {"alpha": alpha.shape}
    shapes |= {} if caps is None else {"caps": caps.shape[:-1]}
    if not isinstance(complexity, Own):
        shapes |= {"pi": parameters[0].shape[:-2], "action_cost": parameters[1].shape[:-1]}
    batch = checks.joint_axes(shapes)
    leaves = jax.tree.leaves(parameters)
    xp = jnp if any(isinstance(a, jax.Array) for a in (eps, log_prior, alpha, caps, *leaves)) else np

    def spread(a: Any, *tail: int) -> Any:
        return a if a is None or a.shape == (*batch, *tail) else xp.broadcast_to(a, (*batch, *tail))

    if isinstance(complexity, Own):
        _check_leaves(leaves, batch)
        parameters = jax.tree.map(lambda leaf: spread(leaf, *leaf.shape[len(batch) :]), parameters)
    else:
        pi, cost = parameters
        parameters = spread(pi, *pi.shape[-2:]), spread(cost, *cost.shape[-1:])
    return ConvexProblem(complexity, parameters, spread(eps), spread(log_prior, n), spread(alpha), spread(caps, n))


def beyond_paper(problem: ConvexProblem) -> str:
    """What a problem has that the paper's has not, as users write it."""
    words = []
    if isinstance(problem.complexity, Own):
        words.append("a complexity of its own")
    elif not isinstance(problem.complexity, Mixture):
        words.append(f'combine="{next(name for name, kind in COMBINE.items() if kind == problem.complexity)}"')
    if problem.alpha is not None or problem.caps is not None:
        words.append("a regulariser")
    return " and ".join(words) or "the form of a general one"


def _without(problem: ConvexProblem, left_out: Any) -> ConvexProblem:
    """The same problem with no weight for some primitives (..., n); refuses if the other caps sum to less than one."""
    xp = namespace(*jax.tree.leaves(problem), left_out)
    caps = xp.ones_like(problem.log_prior) if problem.caps is None else problem.caps
    alpha = xp.ones_like(problem.eps) if problem.alpha is None else problem.alpha
    caps = xp.where(left_out, 0.0, caps)
    if not is_traced(caps) and np.any(cramped := np.asarray(caps).sum(-1) < 1.0):
        where = tuple(int(i) for i in np.argwhere(cramped)[0])
        never = np.flatnonzero(np.broadcast_to(np.asarray(left_out), caps.shape)[where]).tolist()
        raise ValueError(
            f"combine = 'product' needs primitives that take every action: primitives {never} never take some action "
            "that others take, with any weight the product never takes it and its divergence is infinite, and the "
            "others cannot hold all weight. Give every action a positive probability, or raise the caps."
        )
    return problem._replace(alpha=alpha, caps=caps)


def _check_leaves(leaves: Any, batch: tuple[int, ...]) -> None:
    for leaf in leaves:
        lead = leaf.shape[: len(batch)]
        if len(lead) < len(batch) or any(own not in (1, size) for own, size in zip(lead, batch, strict=True)):
            raise ValueError(
                f"parameters has an array of shape {leaf.shape}, but the problems have batch axes {batch} (those of "
                "eps): every array leads with them, each of the same length or of length one."
            )


# -------------------------------------------------------------------------- verbs of one problem


def energy_of(problem: ConvexProblem, weights: Any) -> jax.Array:
    """V(w), infinite off the simplex and above the caps."""
    outside = (jnp.abs(jnp.sum(weights) - 1.0) > checks.SUM_TOLERANCE) | _out_of_bounds(problem, weights)
    divergence = reg.value(weights, problem.log_prior, problem.alpha)
    return jnp.where(outside, jnp.inf, problem.complexity.value(problem.parameters, weights) + problem.eps * divergence)


def gate_of(problem: ConvexProblem, weights: Any) -> jax.Array:
    """S(w)."""
    g = problem.complexity.gradient(problem.parameters, weights)[0]
    return reg.respond(reg.link(problem.log_prior, problem.alpha) - g / problem.eps, problem.caps, problem.alpha)[0]


def nearest(problem: ConvexProblem, weights: Any) -> jax.Array:
    """The weights nearest to these that sum to one below the caps, in the divergence of the regulariser."""
    log_weights = reg.floored_log(weights)
    return reg.respond(reg.link(log_weights, problem.alpha), problem.caps, problem.alpha)[0]


class _Judged(NamedTuple):
    """What is known about some weights from the gradient there."""

    gap: Any  # G with its floor
    floor: Any  # what rounding adds to it
    response: Any  # S(w)
    noise: Any  # the largest rounding of the gradient that counts


def judge(problem: ConvexProblem, weights: Any, temperature: Any, g: Any, rounding: Any) -> _Judged:
    """The gap G from the gradient and its rounding; the proof is in docs/explanation/mathematics.md.

    G is <g, w> + T R(w) + T R*(-g/T), and R* is smooth with the constant n^(alpha-1) in the largest entry.
    """
    n, lean = weights.size, reg.link(problem.log_prior, problem.alpha)
    fenchel = reg.fenchel_gap(weights, lean - g / temperature, problem.caps, problem.alpha)
    own = temperature * (1.0 + jnp.abs(reg.link(reg.floored_log(weights), problem.alpha)) + jnp.abs(lean))
    error = rounding + relative_rounding(0, n) * own
    alive = (weights > 0.0) | (fenchel.response > 0.0)
    largest = jnp.max(jnp.where(alive, error, 0.0))
    # what has no weight counts if rounding could give it some
    noise = jnp.max(jnp.where(alive | (fenchel.margin <= 2.0 * (error + largest) / temperature), error, 0.0))
    moved = noise * (fenchel.mismatch + relative_rounding(0, n))
    floor = jnp.minimum(moved + reg.strength(n, problem.alpha) * noise**2 / (2.0 * temperature), 2.0 * noise)
    floor = floor + relative_rounding(0, n) * temperature * fenchel.slope + problem.complexity.slack(problem.parameters)
    return _Judged(temperature * fenchel.gap * gap_rounding(n) + floor, floor, fenchel.response, noise)


def certificate_of(problem: ConvexProblem, weights: Any) -> Certificate:
    """The certificate, with nothing in it if the complexity is not convex."""
    weights = weights / jnp.sum(weights)
    gap = judge(problem, weights, problem.eps, *problem.complexity.gradient(problem.parameters, weights)).gap
    return certificate_from(problem, jnp.where(_out_of_bounds(problem, weights), jnp.inf, gap))


def _out_of_bounds(problem: ConvexProblem, weights: Any) -> jax.Array:
    """Whether a weight is negative, or above its cap: by more than rounding, or at all where nothing is allowed."""
    negative, caps = jnp.any(weights < 0.0), problem.caps
    if caps is None:
        return negative
    return negative | jnp.any(weights > caps + jnp.where(caps > 0.0, checks.SUM_TOLERANCE, 0.0))


def certificate_from(problem: ConvexProblem, gap: Any) -> Certificate:
    """|w - w*|_1 <= sqrt(2 n^(alpha-1) G/eps), and never more than 2."""
    alpha = 1.0 if problem.alpha is None else problem.alpha
    proved = (gap >= 0.0) & (problem.eps > 0.0) & (alpha >= 1.0) & (alpha <= 2.0)
    gap = jnp.where(proved & problem.complexity.convex, gap, jnp.inf)
    spread = reg.strength(problem.log_prior.shape[-1], problem.alpha)
    distance = jnp.sqrt(2.0 * spread * gap / problem.eps) * (1.0 + FUNCTION_ROUNDING * UNIT_ROUNDOFF)
    return problem.complexity.certificate(gap, jnp.where(proved, jnp.minimum(distance, 2.0), 2.0))


def dissipation_of(problem: ConvexProblem, weights: Any) -> jax.Array:
    """dV/dt along the flow with tau = 1: <grad F + eps (l(w) - l(w_hat)), S - w>."""
    g = problem.complexity.gradient(problem.parameters, weights)[0]
    slope = g + problem.eps * (
        reg.link(reg.floored_log(weights), problem.alpha) - reg.link(problem.log_prior, problem.alpha)
    )  # fmt: skip
    moved = gate_of(problem, weights) - weights
    rate = jnp.sum((slope - jnp.sum(weights * slope)) * moved)
    # the entropy's slope is infinite at a weight of zero, which grows unless it is capped at zero
    steep = True if problem.alpha is None else problem.alpha <= 1.0
    grows = (weights <= 0.0) & (True if problem.caps is None else problem.caps > 0.0)
    return jnp.where(steep & jnp.any(grows), -jnp.inf, rate)


# ------------------------------------------------------------------------------ verbs of batches


def over_batch(function: _Function, problem: AnyProblem, *vectors: ArrayLike) -> Any:
    """`function` of one problem and one row of each of the vectors (..., n), for all of them."""
    lead = [np.shape(vector)[:-1] for vector in vectors]
    batch = np.broadcast_shapes(problem.eps.shape, *lead)
    own = len(problem.eps.shape)

    def flat(array: Any, tail: tuple[int, ...]) -> jax.Array:
        return jnp.broadcast_to(jnp.asarray(array), (*batch, *tail)).reshape((-1, *tail))

    many = jax.tree.map(lambda leaf: flat(leaf, leaf.shape[own:]), problem)
    rows = [flat(vector, np.shape(vector)[-1:]) for vector in vectors]
    answers = _side_by_side(lambda each: function(*each), (many, *rows), int(np.prod(batch)))
    return jax.tree.map(lambda a: a.reshape((*batch, *a.shape[1:])), answers)


def _side_by_side(function: _Function, rows: Any, count: int) -> Any:
    """`function` of each of `count` rows: all at once, or on a CPU in chunks of at most `_SIDE_BY_SIDE` numbers."""
    chunks = min(count, -(-sum(leaf.size for leaf in jax.tree.leaves(rows)) // _SIDE_BY_SIDE))
    if chunks <= 1 or jax.default_backend() != "cpu":
        return jax.vmap(function)(rows)
    size = -(-count // chunks)
    if size * chunks > count:  # the last chunk is filled up, so that one program serves all of them
        index = np.minimum(np.arange(size * chunks), count - 1)
        rows = jax.tree.map(lambda a: a[index], rows)
    return jax.tree.map(lambda a: a[:count], jax.lax.map(function, rows, batch_size=size))


def _normal(weights: Any) -> Any:
    """Weights that compiled programs, which may take the least numbers for zero, do not lose."""
    tiny = np.finfo(np.float64).tiny
    if is_traced(weights) or not np.any((np.asarray(weights) > 0.0) & (np.asarray(weights) < tiny)):
        return weights
    host = np.asarray(weights)
    return namespace(weights).asarray(np.where((host > 0.0) & (host < tiny), tiny, host))


def _verb(function: _Function, check: _Function = checks.check_weights) -> _Function:
    """The same function for a batch of problems and weights: checked, compiled once, answered in kind."""
    compiled = jax.jit(partial(over_batch, function))

    def answer(problem: ConvexProblem, weights: ArrayLike) -> Any:
        problem = checked_convex(problem)
        weights = _normal(check("weights", weights, problem.log_prior))
        return in_kind(lambda: compiled(problem, weights), problem, weights)

    return answer


VERBS: dict[str, _Function] = {
    "primitive_cost": _verb(lambda problem, weights: problem.complexity.gradient(problem.parameters, weights)[0]),
    "complexity": _verb(lambda problem, weights: problem.complexity.value(problem.parameters, weights)),
    "energy": _verb(energy_of),
    "gate": _verb(gate_of),
    "certify": _verb(certificate_of, checks.check_simplex),
    "dissipation": _verb(dissipation_of),
}
