"""The variational objective: one gating problem, its energy, its gate and its certificate."""

from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar, overload

import numpy as np

from .._types import ActionValues, Array, ArrayLike, Primitives, Scalars, Weights, namespace
from . import _checks as checks
from ._method import (
    FUNCTION_ROUNDING,
    MIXTURE_FLOOR,
    UNIT_ROUNDOFF,
    bounded_gap,
    gradient_rounding,
    relative_rounding,
)

if TYPE_CHECKING:
    from .convex import ConvexProblem
    from .regularisers import Entropy, Regulariser, Tsallis
else:  # loaded when they are first needed
    ConvexProblem = Entropy = Regulariser = Tsallis = Any

Combine = Literal["mixture", "product", "local product", "posterior"]
_Answer = TypeVar("_Answer", covariant=True)


class Problem(NamedTuple):
    """A gating problem: which mixture of the primitives is best in one state? Built and checked by `problem`.

    All fields share the leading batch axes. The primitives are kept as probabilities because every
    use multiplies by them; entries that underflow cannot move any quantity by more than 1e-300.
    """

    pi: Primitives  # Pi_ia, the probability of action i under primitive a
    action_cost: ActionValues  # s_i
    eps: Scalars  # temperature
    log_prior: Weights  # ln w_hat_a

    @property
    def log_pi(self) -> Primitives:
        """ln Pi, with -inf where a primitive never takes an action."""
        xp = namespace(self.pi)
        with np.errstate(divide="ignore"):
            return xp.log(self.pi)


AnyProblem: TypeAlias = Problem | ConvexProblem  # all verbs work with both; the second is in `convex.py`


class Certificate(NamedTuple):
    """How far weights can be from optimal: V(w) - V* <= gap and ||w - w*||_1 <= distance."""

    gap: Scalars
    distance: Scalars

    @property
    def assumes(self) -> tuple[str, ...]:
        """What the bounds are conditional on: nothing, for the paper's objective."""
        return ()


@overload
def problem(
    *, pi: ArrayLike = ..., log_pi: ArrayLike = ..., action_cost: ArrayLike, eps: ArrayLike, prior: ArrayLike = ...,
    log_prior: ArrayLike = ..., regulariser: None = None, combine: Literal["mixture"] = "mixture",
) -> Problem: ...  # fmt: skip
@overload
def problem(
    *, pi: ArrayLike = ..., log_pi: ArrayLike = ..., action_cost: ArrayLike, eps: ArrayLike, prior: ArrayLike = ...,
    log_prior: ArrayLike = ..., regulariser: Tsallis, combine: str = "mixture",
) -> ConvexProblem: ...  # fmt: skip
@overload
def problem(
    *, pi: ArrayLike = ..., log_pi: ArrayLike = ..., action_cost: ArrayLike, eps: ArrayLike, prior: ArrayLike = ...,
    log_prior: ArrayLike = ..., regulariser: Regulariser | None = None,
    combine: Literal["product", "local product", "posterior"],
) -> ConvexProblem: ...  # fmt: skip
@overload
def problem(
    *, complexity: Callable[..., Any], n: Any, eps: ArrayLike, prior: ArrayLike = ...,
    regulariser: Regulariser | None = None, parameters: Any = None,
) -> ConvexProblem: ...  # fmt: skip
@overload  # the entropy with caps is beyond the paper's problem, without them it is not
def problem(
    *, pi: ArrayLike = ..., log_pi: ArrayLike = ..., action_cost: ArrayLike, eps: ArrayLike, prior: ArrayLike = ...,
    log_prior: ArrayLike = ..., regulariser: Regulariser | None = None, combine: str = "mixture",
) -> Problem | ConvexProblem: ...  # fmt: skip
def problem(
    *,
    pi: ArrayLike | None = None,
    log_pi: ArrayLike | None = None,
    action_cost: ArrayLike | None = None,
    eps: ArrayLike | None = None,
    prior: ArrayLike | None = None,
    log_prior: ArrayLike | None = None,
    regulariser: Regulariser | None = None,
    combine: str = "mixture",
    complexity: Any = None,
    n: Any = None,
    parameters: Any = None,
) -> AnyProblem:
    """Build a `Problem` from NumPy or JAX arrays, or say what is wrong with them.

    `pi` (or `log_pi`) has shape (..., d, n): a column for each primitive, over d actions. `action_cost` is
    (..., d), `eps` (...) and the prior (..., n), uniform unless given. Batch axes broadcast. Columns that miss one
    by rounding are rescaled. An action that no primitive takes is allowed and drops out of all sums. Under JAX
    tracing only the shapes can be checked.

    `regulariser` takes the entropy's place, or caps the weights: `Tsallis(1.5)`, `Entropy(caps=0.5)`.
    `combine="product"` composes p_w ~ prod_a pi_a^w_a and minimises KL(q || p_w), q ~ exp(-action_cost), which is
    convex; `"local product"` minimises KL(p_w || q), which is not, so that its answers are local. `"posterior"` weighs
    primitives that will be tilted towards cheap actions, p ~ (Pi w) exp(-s): it minimises -ln sum_a w_a z_a with
    z = Pi^T exp(-action_cost), which is convex.

    Instead of `pi` and `action_cost`, `complexity` gives any convex F: a JAX function of the weights of shape (n,), and
    of `parameters` if they are given, arrays that lead with the batch axes of `eps`. Pass the same function again, not
    a new one, to use its compiled solver again. These three make a `ConvexProblem`, with which all verbs work.
    """
    mixed = isinstance(combine, str) and combine == "mixture"
    if complexity is not None:
        if not mixed or any(argument is not None for argument in (pi, log_pi, action_cost, log_prior)):
            raise ValueError("complexity takes the place of pi, action_cost and combine: pass one or the other.")
        from .convex import own_problem  # loaded when it is first needed

        return own_problem(complexity, n, eps, prior, regulariser, parameters)
    if n is not None or parameters is not None:
        raise ValueError("n and parameters belong to a complexity: pass complexity=..., a function of the weights.")
    mixture = _mixture_problem(pi, log_pi, action_cost, eps, prior, log_prior)
    if mixed and regulariser is None:
        return mixture
    from .convex import generalise

    return generalise(mixture, regulariser, combine, log_pi)


def _mixture_problem(
    pi: ArrayLike | None, log_pi: ArrayLike | None, action_cost: ArrayLike | None, eps: ArrayLike | None,
    prior: ArrayLike | None, log_prior: ArrayLike | None,
) -> Problem:  # fmt: skip
    if (pi is None) == (log_pi is None):
        raise ValueError("pass exactly one of pi (probabilities) and log_pi (their logarithms).")
    if prior is not None and log_prior is not None:
        raise ValueError("pass at most one of prior (probabilities) and log_prior (their logarithms).")
    pi_name, raw_pi = ("pi", pi) if log_pi is None else ("log_pi", log_pi)
    prior_name, raw_prior = ("prior", prior) if log_prior is None else ("log_prior", log_prior)

    columns = checks.as_floats(pi_name, raw_pi)
    cost = checks.as_floats("action_cost", action_cost)
    temperature = checks.as_floats("eps", eps)
    bias = None if raw_prior is None else checks.as_floats(prior_name, raw_prior)
    batch = checks.check_shapes(pi_name, columns, cost, temperature, prior_name, bias)

    columns = checks.normalised_columns(pi_name, columns, checks.sum_tolerance(raw_pi), log_pi is not None)
    xp = namespace(columns, cost, temperature, bias)
    cost = checks.checked_cost(cost, columns)
    checks.check_eps(temperature)
    if bias is None:
        bias = np.full(columns.shape[-1], -np.log(columns.shape[-1]))
    else:
        bias = checks.normalised_prior(prior_name, bias, checks.sum_tolerance(raw_prior), log_prior is not None)
    return _spread_in(xp, (columns, cost, temperature, bias), batch)


_FLOAT64 = np.dtype(np.float64)


def checked(problem: Problem) -> Problem:
    """The problem as float64 arrays whose shapes fit together, whoever put it together, or a complaint.

    Every verb begins with it: compiled code reads memory by these shapes. What `problem` built passes the first test.
    """
    pi, s, eps, log_prior = problem
    if (
        type(pi) is type(s) is type(log_prior) is np.ndarray
        and (type(eps) is np.ndarray or type(eps) is np.float64)
        and pi.dtype == s.dtype == log_prior.dtype == eps.dtype == _FLOAT64
    ):
        shape = pi.shape
        batch = shape[:-2]
        fit = s.shape == shape[:-1] and log_prior.shape == (*batch, shape[-1]) and eps.shape == batch
        if fit and len(shape) <= checks.MOST_AXES and shape[-1] and shape[-2]:
            return problem
    fields = [checks.as_floats(name, field) for name, field in zip(Problem._fields, problem, strict=True)]
    batch = checks.check_shapes("pi", fields[0], fields[1], fields[2], "log_prior", fields[3])
    return spread_over(Problem(*fields), batch)


def require_problem(value: Any, verb: str) -> Problem:
    """The paper's problem, checked; anything else is refused with what stands in the way of this verb."""
    if isinstance(posed := checked_any(value), Problem):
        return posed
    from .convex import beyond_paper

    extra = beyond_paper(posed)
    raise ValueError(
        f"{verb} is made for a mixture with the entropy, but this problem has {extra}: leave that out, or use `solve`, "
        "which takes every problem."
    )


def checked_any(value: Any) -> AnyProblem:
    """A problem of either kind, checked; refuses what is no problem."""
    if isinstance(value, Problem):
        return checked(value)
    from .convex import checked_convex  # loaded when it is first needed

    return checked_convex(value)


def spread_over(problem: Problem, batch: tuple[int, ...]) -> Problem:
    """The same problem with its batch axes broadcast to `batch`."""
    return _spread_in(namespace(*problem), problem, batch)


def _spread_in(xp: ModuleType, fields: Any, batch: tuple[int, ...]) -> Problem:
    d, n = fields[0].shape[-2:]
    tails = ((d, n), (d,), (), (n,))
    return Problem(*(_spread(xp, field, (*batch, *tail)) for field, tail in zip(fields, tails, strict=True)))


class _Verb(Protocol[_Answer]):
    def __call__(self, problem: AnyProblem, weights: ArrayLike) -> _Answer: ...


def verb(
    name: str, check: Callable[..., Weights] = checks.check_weights
) -> Callable[[Callable[[Problem, Weights], _Answer]], _Verb[_Answer]]:
    """Decorate what a verb answers to the paper's own problem and some weights, both checked.

    To another problem `VERBS` in `convex.py` has the answer; nowhere else is that decided.
    """

    def decorate(function: Callable[[Problem, Weights], _Answer]) -> _Verb[_Answer]:
        @wraps(function, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
        def answer(problem: AnyProblem, weights: ArrayLike) -> Any:
            if isinstance(problem, Problem):
                problem = checked(problem)
                return function(problem, check("weights", weights, problem.log_prior))
            from .convex import VERBS  # loaded when it is first needed

            return VERBS[name](problem, weights)

        answer.__annotations__["return"] = function.__annotations__["return"]
        del answer.__wrapped__  # its signature is that of the paper's problem alone
        return answer

    return decorate


@verb("primitive_cost")
def primitive_cost(problem: Problem, weights: Weights) -> Weights:
    """h(w) = Pi^T ( ln(Pi w) + s ): what each primitive costs given the others; grad F = h + 1."""
    return _columns_times(problem.pi, _log_mixture(problem.pi, weights) + problem.action_cost)


@verb("complexity")
def complexity(problem: Problem, weights: Weights) -> Scalars:
    """F(w) = sum_i (Pi w)_i [ ln (Pi w)_i + s_i ], the divergence from the generative model."""
    pi, s, _, _ = problem
    xp = namespace(*problem, weights)
    return xp.sum(_mixture(pi, weights) * (_log_mixture(pi, weights) + s), axis=-1)


@verb("energy")
def energy(problem: Problem, weights: Weights) -> Scalars:
    """V(w) = F(w) + eps sum_a w_a ln( w_a / w_hat_a ) on the simplex, and +inf off it (the entropic barrier)."""
    xp = namespace(*problem, weights)
    off = (xp.abs(xp.sum(weights, axis=-1) - 1.0) > checks.SUM_TOLERANCE) | xp.any(weights < 0.0, axis=-1)
    divergence = xp.sum(weights * (_log_or_zero(weights) - problem.log_prior), axis=-1)
    return xp.where(off, np.inf, complexity(problem, weights) + problem.eps * divergence)


@verb("gate")
def gate(problem: Problem, weights: Weights) -> Weights:
    """S(w) = softmax( -h(w)/eps + ln w_hat ), the best response to the present mixture."""
    y = problem.log_prior - primitive_cost(problem, weights) / problem.eps[..., None]
    xp = namespace(y)
    response = xp.exp(y - xp.max(y, axis=-1, keepdims=True))
    return response / xp.sum(response, axis=-1, keepdims=True)


@verb("certify", checks.check_simplex)
def certify(problem: Problem, weights: Weights) -> Certificate:
    """Bound the suboptimality of any weights, whoever made them, from one gradient.

    gap = eps KL(w || S(w)) >= V(w) - V*, and distance = sqrt(2 gap/eps) >= ||w - w*||_1. Both include what
    rounding may have hidden. With another complexity or regulariser see `convex.py`; `assumes` says what the bounds
    are conditional on.
    """
    return certificate_at(problem, weights)


def certificate_at(problem: Problem, weights: Weights) -> Certificate:
    """`certify` for weights that are known to lie on the simplex, up to their sum."""
    pi, s, eps, log_prior = problem
    xp = namespace(*problem, weights)
    weights = weights / xp.sum(weights, axis=-1, keepdims=True)
    # processors disagree about what is smaller
    weights = xp.where((weights > 0.0) & (weights < np.finfo(np.float64).tiny), 0.0, weights)
    temperature = eps[..., None]
    cost = centred_cost(pi, s)
    entropy = _columns_times(pi, _log_mixture(pi, weights))
    log_weights = _log_or_zero(weights)
    g = cost.linear + entropy + temperature * (log_weights - log_prior)
    error = gradient_rounding(cost.relative, cost.offset + cost.magnitude, entropy, temperature, log_weights, log_prior)
    gap = bounded_gap(weights, log_weights, g, error, temperature).gap
    return certificate_from_gap(xp.where(xp.any(weights < 0.0, axis=-1), np.inf, gap), eps)


class _CentredCost(NamedTuple):
    """The linear part of the gradient, and what its rounding is made of."""

    linear: Weights  # Pi^T (s - centre)
    magnitude: Weights  # Pi^T |s - centre|
    offset: Array  # 1 + |centre|, (..., 1)
    relative: Array  # rounding of sums over the actions, and by how much a column misses one, (..., 1)


def centred_cost(pi: Primitives, action_cost: ActionValues) -> _CentredCost:
    """The cost less what the first primitive expects to pay: a constant moves no weight and only adds rounding.

    A column that misses one by a little lets a constant count by as much: it and the centre are in the rounding.
    """
    xp = namespace(pi, action_cost)
    centre = expected_cost(pi, action_cost)
    s = action_cost - centre
    # a negative entry makes it infinite
    amiss = xp.max(xp.abs(xp.sum(xp.where(pi >= 0.0, pi, np.inf), axis=-2) - 1.0), axis=-1, keepdims=True)
    return _CentredCost(
        linear=_columns_times(pi, s),
        magnitude=_columns_times(pi, xp.abs(s)),
        offset=1.0 + xp.abs(centre),
        relative=relative_rounding(*pi.shape[-2:]) + amiss,
    )


def expected_cost(pi: Primitives, action_cost: ActionValues) -> Array:
    """What the first primitive expects to pay (..., 1); exactly the constant where the cost is one."""
    xp = namespace(pi, action_cost)
    likely = xp.argmax(pi[..., :1], axis=-2)
    from_likely = xp.take_along_axis(action_cost, likely, axis=-1)
    apart = xp.sum(pi[..., 0] * (action_cost - from_likely), axis=-1, keepdims=True)
    return from_likely + apart


def certificate_from_gap(gap: Scalars, eps: Scalars) -> Certificate:
    """||w - w*||_1 <= sqrt(2 gap/eps), and never more than 2, the diameter of the simplex.

    A gap that is not a number or negative proves nothing.
    """
    xp = namespace(gap, eps)
    proved = (gap >= 0.0) & (eps > 0.0)
    distance = xp.sqrt(2.0 * xp.where(proved, gap, 1.0) / xp.where(proved, eps, 1.0))
    distance = xp.minimum(distance * (1.0 + FUNCTION_ROUNDING * UNIT_ROUNDOFF), 2.0)
    return Certificate(xp.where(proved, gap, np.inf), xp.where(proved, distance, 2.0))


def _mixture(pi: Primitives, weights: Weights) -> ActionValues:
    return (pi @ weights[..., None])[..., 0]


def _log_mixture(pi: Primitives, weights: Weights) -> ActionValues:
    # an action without support has ln p = -690 instead of -inf and is multiplied by zero everywhere
    xp = namespace(pi, weights)
    return xp.log(xp.maximum(_mixture(pi, weights), MIXTURE_FLOOR))


def _columns_times(pi: Primitives, values: ActionValues) -> Weights:
    return (values[..., None, :] @ pi)[..., 0, :]


def _log_or_zero(weights: Weights) -> Weights:
    """ln w, and 0 where w = 0, so that w ln w is 0 there and so is its derivative's shadow under autodiff."""
    xp = namespace(weights)
    alive = weights > 0
    return xp.where(alive, xp.log(xp.where(alive, weights, 1.0)), 0.0)


def _spread(xp: ModuleType, array: ArrayLike, shape: tuple[int, ...]) -> Any:
    array = xp.asarray(array)
    return array if array.shape == shape else xp.broadcast_to(array, shape)
