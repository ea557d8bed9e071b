"""`ConvexProblem`: a gating problem with any convex complexity and any regulariser, built and checked.

    V(w) = F(w) + eps D(w, w_hat),   D the divergence of the regulariser (`regularisers.py`)

Its verbs and certificates are in `_convex_verbs.py`, the complexities F in `complexities.py`.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._types import ActionValues, Array, ArrayLike, Primitives, Scalars, Weights, is_traced, namespace
from . import _checks as checks
from .complexities import COMBINE, AbstractComplexity, Mixture, Own, check_function, is_partial
from .regularisers import alpha_and_caps, is_plain


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
    posed = pose(own, parameters, int(n), eps, prior, regulariser)
    lead = posed.eps.ndim
    single = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[lead:], np.float64), posed.parameters)
    check_function(own, single, int(n))
    return posed


def pose(
    complexity: AbstractComplexity, parameters: Any, n: int, eps: ArrayLike, prior: ArrayLike | None, regulariser: Any,
    log_prior: ArrayLike | None = None,
) -> ConvexProblem:  # fmt: skip
    """Check what every problem has, and give all of it the same batch axes: those of eps, prior and regulariser."""
    temperature = checks.as_floats("eps", eps)
    checks.check_eps(temperature)
    bias = checks.log_prior_of(n, prior, log_prior)
    alpha, caps = (None, None) if is_plain(regulariser) else alpha_and_caps(regulariser, n)
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


def product_problem(
    complexity: AbstractComplexity, log_pi: Array, cost: Array, eps: Array, log_prior: Array, regulariser: Any
) -> ConvexProblem:
    """A product of experts; one that never takes an action that others take is capped at zero, if F is then finite."""
    posed = pose(complexity, (log_pi, cost), log_pi.shape[-1], eps, None, regulariser, log_prior)
    partial = is_partial(log_pi)
    if not complexity.convex or not (is_traced(partial) or np.any(partial)):
        return posed
    return _without(posed, partial)


def _without(problem: ConvexProblem, left_out: Any) -> ConvexProblem:
    """The same problem with no weight for some primitives (..., n); refuses to leave too little room."""
    xp = namespace(*jax.tree.leaves(problem), left_out)
    caps = xp.ones_like(problem.log_prior) if problem.caps is None else problem.caps
    alpha = xp.ones_like(problem.eps) if problem.alpha is None else problem.alpha
    caps = xp.where(left_out, 0.0, caps)
    if not is_traced(caps) and np.any(np.asarray(caps).sum(-1) < 1.0):
        where = tuple(int(i) for i in np.argwhere(np.asarray(caps).sum(-1) < 1.0)[0])
        never = np.flatnonzero(np.broadcast_to(np.asarray(left_out), caps.shape)[where]).tolist()
        raise ValueError(
            f"combine = 'product' needs primitives that take every action: primitives {never} never take some action "
            "that others take, with any weight the product never takes it and its divergence is infinite, and the "
            "others have too little room for all weight. Give every action a positive probability, or raise the caps."
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
