"""The same theory for any convex complexity F: a problem, its energy, its gate and its certificate.

    V(w) = F(w) + eps D(w, w_hat),   S(w) = argmin_s <grad F(w), s> + eps D(s, w_hat),   flow: tau dw/dt = -w + S(w)
    V(w) - V* <= G(w) = <grad F, w - S> + eps (D(w, w_hat) - D(S, w_hat)),   |w - w*|_1 <= sqrt(2 n^(alpha-1) G/eps)

D is the divergence of the regulariser (`regularisers.py`). The bound needs convexity of F and nothing else: it is the
Bregman-PL remark of the paper for the entropy, a generalised Frank-Wolfe gap otherwise.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from .._types import ActionValues, Array, ArrayLike, Primitives, Scalars, Weights, is_traced, namespace, require_float64
from . import _checks as checks
from . import regularisers as reg
from ._certificate import gap_rounding, relative_rounding
from ._method import FUNCTION_ROUNDING, MIXTURE_FLOOR, UNIT_ROUNDOFF
from .objective import Certificate, centred_cost, expected_cost

# Below this probability p ln p is replaced by its tangent, so that weights may be exactly zero: F falls by at most
# this much for each action, and the gap is raised by as much.
TANGENT_BELOW = 1e-20
# Problems solved side by side wait for the slowest of them, and so many numbers stay in a processor's cache.
SIDE_BY_SIDE = 80_000
OUTSIDE = 1e-6  # weights further than this from the simplex have infinite energy

CONVEX = "the complexity is convex on the simplex"
EXACT = "its gradient is right to float64 rounding, relative to its largest entry"
NOTHING = "nothing is proved: the complexity is not convex, and other weights may be better"

Record = TypeVar("Record")
Function = Callable[..., Any]


class ConditionalCertificate(Certificate):
    """A certificate that holds if what it assumes is true."""

    __slots__ = ()

    @property
    def assumes(self) -> tuple[str, ...]:
        """What the bounds are conditional on."""
        return (CONVEX, EXACT)


class NoCertificate(Certificate):
    """What is known of a local answer: nothing beyond that no small step improves it."""

    __slots__ = ()

    @property
    def assumes(self) -> tuple[str, ...]:
        """That nothing is proved."""
        return (NOTHING,)


# ------------------------------------------------------------------------------ complexities


class Seen(NamedTuple):
    """F at some weights: its value, its gradient with a bound on its rounding, and its curvature if wanted."""

    value: Any
    gradient: Any
    rounding: Any
    curvature: Any


class AbstractComplexity(ABC):
    """F with its derivatives, functions of parameters and weights of one problem. Hashable: it is never traced."""

    convex: bool = True
    certificate: type[Certificate] = Certificate

    @abstractmethod
    def value(self, parameters: Any, weights: Any) -> jax.Array:
        """F(w)."""

    @abstractmethod
    def gradient(self, parameters: Any, weights: Any) -> tuple[jax.Array, jax.Array]:
        """grad F(w), up to a constant, and how far each entry may be from the exact one."""

    @abstractmethod
    def along(self, parameters: Any, weights: Any, direction: Any) -> jax.Array:
        """The Hessian of F, or a positive model of it, times a direction."""

    def curvature(self, parameters: Any, weights: Any) -> jax.Array:
        """The Hessian as a matrix."""
        return jax.vmap(lambda e: self.along(parameters, weights, e))(jnp.eye(weights.size))

    def centre(self, parameters: Any) -> Any:
        """Parameters of a complexity that differs by a constant and is computed with less rounding."""
        return parameters

    def see(self, parameters: Any, weights: Any, curved: bool) -> Seen:
        """Everything at once, of parameters that are centred."""
        gradient, rounding = self.gradient(parameters, weights)
        curvature = self.curvature(parameters, weights) if curved else None
        return Seen(self.value(parameters, weights), gradient, rounding, curvature)

    def primitives(self, parameters: Any) -> Primitives:
        """Pi, if there is one."""
        return parameters[0]

    def slack(self, parameters: Any) -> Any:
        """How far `value` may lie below the true F."""
        return 0.0


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


@contextmanager
def _explained(done: str, remedy: str) -> Iterator[None]:
    """Say what it means that a user's function cannot be evaluated or differentiated."""
    try:
        yield
    except Exception as error:  # JAX and a user's function may raise anything
        raise ValueError(f"complexity cannot be {done} ({_reason(error)}): {remedy}.") from error


IN_JAX = (
    "write it in jax.numpy alone. A function with custom_vjp needs custom_jvp instead; a callback has no derivative"
)
OF_WEIGHTS = "pass a JAX function of the weights, and of the parameters of one problem if there are any"


@jax.tree_util.register_static
@dataclass(frozen=True)
class Own(AbstractComplexity):
    """A function of the user's, differentiated by JAX."""

    function: Function
    certificate = ConditionalCertificate

    def answer(self, parameters: Any, weights: Any) -> Any:
        """What the function gives."""
        return self.function(weights) if parameters is None else self.function(weights, parameters)

    def value(self, parameters: Any, weights: Any) -> jax.Array:
        """F(w) as the function gives it."""
        return jnp.asarray(self.answer(parameters, weights), weights.dtype)

    def gradient(self, parameters: Any, weights: Any) -> tuple[jax.Array, jax.Array]:
        """By reverse mode."""
        with _explained("differentiated", IN_JAX):
            g = jax.grad(self.value, argnums=1)(parameters, weights)
        # a function may sum many terms: a few dozen roundings
        return g, jnp.full_like(g, 64.0 * UNIT_ROUNDOFF * jnp.max(jnp.abs(g)))

    def along(self, parameters: Any, weights: Any, direction: Any) -> jax.Array:
        """By forward over reverse mode."""
        slope = jax.grad(self.value, argnums=1)
        with _explained("differentiated twice", IN_JAX):
            return jax.jvp(lambda w: slope(parameters, w), (weights,), (direction,))[1]


class CentredMixture(NamedTuple):
    """Primitives and a cost that the first of them expects to be zero, and what rounding they bring."""

    pi: Primitives
    action_cost: ActionValues
    offset: Any  # as in `CentredCost`
    relative: Any


@jax.tree_util.register_static
@dataclass(frozen=True)
class Mixture(AbstractComplexity):
    """The paper's F(w) = sum_i p_i (ln p_i + s_i), p = Pi w; parameters are (Pi, s)."""

    def value(self, parameters: Any, weights: Any) -> jax.Array:
        """With the tangent in place of p ln p where p is next to nothing."""
        pi, s, *_ = parameters
        p, ln_p = _mixture(pi, weights)
        return jnp.sum(p * (ln_p + s) + jnp.where(p < TANGENT_BELOW, p - TANGENT_BELOW, 0.0))

    def gradient(self, parameters: Any, weights: Any) -> tuple[jax.Array, jax.Array]:
        """Pi^T (ln p + s) with a centred cost."""
        seen = self.see(self.centre(parameters), weights, curved=False)
        return seen.gradient, seen.rounding

    def see(self, parameters: Any, weights: Any, curved: bool) -> Seen:
        """By one product with Pi^T, which is read once; F is w . grad F."""
        pi, s, offset, relative = parameters
        p, ln_p = _mixture(pi, weights)
        columns = [jnp.stack([ln_p + s, jnp.abs(ln_p) + jnp.abs(s)], axis=-1)]
        columns += [pi * _over(p)[:, None]] if curved else []
        found = pi.T @ jnp.concatenate(columns, axis=-1)
        below = jnp.sum(jnp.where(p < TANGENT_BELOW, p - TANGENT_BELOW, 0.0))
        rounding = relative * (offset + found[:, 1])
        return Seen(weights @ found[:, 0] + below, found[:, 0], rounding, found[:, 2:] if curved else None)

    def along(self, parameters: Any, weights: Any, direction: Any) -> jax.Array:
        """Pi^T diag(1/p) Pi v, where p is not on its tangent."""
        pi = parameters[0]
        return (_over(pi @ weights) * (pi @ direction)) @ pi

    def curvature(self, parameters: Any, weights: Any) -> jax.Array:
        """Pi^T diag(1/p) Pi."""
        pi = parameters[0]
        return pi.T @ (pi * _over(pi @ weights)[:, None])

    def centre(self, parameters: Any) -> Any:
        """A cost that the first primitive expects to be zero."""
        pi, s = parameters
        cost = centred_cost(pi, s)
        return CentredMixture(pi, s - expected_cost(pi, s), cost.offset, cost.relative)

    def slack(self, parameters: Any) -> Any:
        """The tangent lies below p ln p by at most its point of contact, for each action."""
        return parameters[0].shape[-2] * TANGENT_BELOW


@jax.tree_util.register_static
@dataclass(frozen=True)
class Product(AbstractComplexity):
    """A product of experts p_w ~ prod_a pi_a^w_a against q ~ exp(-s): F(w) = KL(q || p_w), convex in w.

    Its gradient is E_p T - E_q T with T_a = ln pi_a, its Hessian the covariance of T under p_w. Parameters are
    (ln Pi, s). Actions that nobody takes are left out of q. F is infinite where an expert has weight that never takes
    an action which others take: such an expert is capped at zero (`is_partial`).
    """

    def value(self, parameters: Any, weights: Any) -> jax.Array:
        """sum_i q_i (ln q_i - ln p_i)."""
        log_p, log_q, _, taken = _pooled(parameters, weights)
        divergence = jnp.sum(jnp.where(taken, jnp.exp(log_q) * (log_q - log_p), 0.0))
        return jnp.where(jnp.any(is_partial(parameters[0]) & (weights > 0.0)), jnp.inf, divergence)

    def gradient(self, parameters: Any, weights: Any) -> tuple[jax.Array, jax.Array]:
        """E_p T - E_q T; T, the sum in its exponent and the sums that normalise p and q are rounded."""
        log_p, log_q, t, taken = _pooled(parameters, weights)
        p, q, (d, n) = jnp.exp(log_p), jnp.exp(log_q), t.shape
        exponent = jnp.abs(t) @ weights
        within = relative_rounding(0, n) * (exponent + p @ exponent)
        unlikely = FUNCTION_ROUNDING * UNIT_ROUNDOFF * jnp.where(taken, jnp.abs(log_q), 0.0)
        # what is below the least normal number may count as zero
        rounding = relative_rounding(d, n) * (p + q) + within * p + unlikely * q + 4.0 * np.finfo(np.float64).tiny
        return (p - q) @ t, rounding @ jnp.abs(t)

    def along(self, parameters: Any, weights: Any, direction: Any) -> jax.Array:
        """Cov_p(T) v."""
        log_p, _, t, _ = _pooled(parameters, weights)
        return _covariance_times(jnp.exp(log_p), t, direction)

    def primitives(self, parameters: Any) -> Primitives:
        """Pi."""
        return namespace(parameters[0]).exp(parameters[0])


@jax.tree_util.register_static
@dataclass(frozen=True)
class LocalProduct(AbstractComplexity):
    """The other direction, F(w) = KL(p_w || q), which is not convex: its answers are local and certify nothing."""

    convex = False
    certificate = NoCertificate

    def value(self, parameters: Any, weights: Any) -> jax.Array:
        """sum_i p_i (ln p_i - ln q_i)."""
        log_p, log_q, _, taken = _pooled(parameters, weights)
        return jnp.sum(jnp.where(taken, jnp.exp(log_p) * (log_p - log_q), 0.0))

    def gradient(self, parameters: Any, weights: Any) -> tuple[jax.Array, jax.Array]:
        """Cov_p(T, ln p - ln q)."""
        log_p, log_q, t, taken = _pooled(parameters, weights)
        p, surprise = jnp.exp(log_p), jnp.where(taken, log_p - log_q, 0.0)
        size = (p * jnp.abs(surprise)) @ jnp.abs(t) + 1.0
        return (p * (surprise - p @ surprise)) @ t, relative_rounding(*t.shape) * size

    def along(self, parameters: Any, weights: Any, direction: Any) -> jax.Array:
        """Cov_p(T) v, a positive stand-in for the Hessian."""
        log_p, _, t, _ = _pooled(parameters, weights)
        return _covariance_times(jnp.exp(log_p), t, direction)

    def primitives(self, parameters: Any) -> Primitives:
        """Pi."""
        return namespace(parameters[0]).exp(parameters[0])


MIXTURE, PRODUCT, LOCAL_PRODUCT = Mixture(), Product(), LocalProduct()
COMBINE = {"mixture": MIXTURE, "product": PRODUCT, "local product": LOCAL_PRODUCT}


def pool(log_pi: Array, weights: Array) -> jax.Array:
    """The product of experts p_w ~ prod_a pi_a^w_a of one problem."""
    return jnp.exp(jax.nn.log_softmax(_finite(jnp.asarray(log_pi)) @ weights))


def is_partial(log_pi: Any) -> Any:
    """Which experts (..., n) never take an action that others take: with any weight the product never takes it."""
    xp = namespace(log_pi)
    never = log_pi == -np.inf
    return xp.any(never & ~xp.all(never, axis=-1, keepdims=True), axis=-2)


def _mixture(pi: Any, weights: Any) -> tuple[jax.Array, jax.Array]:
    p = pi @ weights
    return p, jnp.log(jnp.maximum(p, TANGENT_BELOW))


def _over(p: Any) -> jax.Array:
    return jnp.where(p >= TANGENT_BELOW, 1.0 / jnp.maximum(p, TANGENT_BELOW), 0.0)


def _finite(log_pi: Any) -> jax.Array:
    """T, where an expert that never takes an action has no weight, or, in a local product, some 1e-300 of it."""
    return jnp.where(log_pi == -jnp.inf, np.log(MIXTURE_FLOOR), log_pi)


def _pooled(parameters: Any, weights: Any) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """ln p_w, ln q, T, and which actions anybody takes."""
    log_pi, s = parameters
    t, taken = _finite(log_pi), jnp.any(log_pi > -jnp.inf, axis=-1)

    def normalised(log_values: Any) -> jax.Array:
        return jax.nn.log_softmax(jnp.where(taken, log_values, -jnp.inf))

    return normalised(t @ weights), normalised(-s), t, taken


def _covariance_times(p: Any, t: Any, direction: Any) -> jax.Array:
    moved = t @ direction
    return (p * (moved - p @ moved)) @ t


# ----------------------------------------------------------------------------------- problem


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
    given = pose(own, parameters, int(n), eps, prior, regulariser)
    one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[given.eps.ndim :], np.float64), given.parameters)
    _check_function(own, one, int(n))
    return given


def _check_function(complexity: Own, parameters: Any, n: int) -> None:
    """Complain of a function that does not give one real number in float64."""
    weights = jax.ShapeDtypeStruct((n,), np.float64)
    with jax.enable_x64(True):
        with _explained(f"evaluated on {n} weights", OF_WEIGHTS):  # it may also give what is no array
            seen = jax.eval_shape(complexity.answer, parameters, weights)
        shape = getattr(seen, "shape", None)
        if shape != ():
            answer = f"a {type(seen).__name__}" if shape is None else f"an array of shape {shape}"
            raise ValueError(f"complexity gives {answer}: it must give one number.")
        checks.require_float64_result("complexity", seen.dtype)


def pose(
    complexity: AbstractComplexity, parameters: Any, n: int, eps: ArrayLike, prior: ArrayLike | None, regulariser: Any,
    log_prior: ArrayLike | None = None,
) -> ConvexProblem:  # fmt: skip
    """Check what every problem has, and give all of it the same batch axes: those of eps, prior and regulariser."""
    temperature = checks.as_floats("eps", eps)
    checks.check_eps(temperature)
    if log_prior is not None:
        bias = checks.normalised_log_prior(
            "log_prior", checks.as_floats("log_prior", log_prior), checks.sum_tolerance(log_prior)
        )
    elif prior is not None:
        bias = checks.normalised_prior("prior", checks.as_floats("prior", prior), checks.sum_tolerance(prior))
    else:
        bias = np.full(n, -np.log(n))
    alpha, caps = (None, None) if reg.is_plain(regulariser) else reg.alpha_and_caps(regulariser, n)
    return _aligned(ConvexProblem(complexity, parameters, temperature, bias, alpha, caps), n)


def checked(problem: ConvexProblem) -> ConvexProblem:
    """The problem as float64 arrays whose shapes fit together, whoever put it together, or a complaint."""
    complexity, parameters, *given = problem
    if not isinstance(complexity, AbstractComplexity):
        raise ValueError(
            f"complexity is a {type(complexity).__name__}: build the problem with problem(complexity=...)."
        )
    eps, log_prior = map(checks.as_floats, ("eps", "log_prior"), given[:2])
    alpha, caps = (
        None if field is None else checks.as_floats(name, field)
        for name, field in zip(("alpha", "caps"), given[2:], strict=True)
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
    return without(posed, partial)


def without(problem: ConvexProblem, left_out: Any) -> ConvexProblem:
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


def traced(problem: ConvexProblem, *others: Any) -> bool:
    """Whether any array of it is not known yet."""
    return is_traced(*jax.tree.leaves(problem), *others)


def over_batch(function: Function, problem: ConvexProblem, *vectors: ArrayLike) -> Any:
    """`function` of one problem and one row of each of the vectors (..., n), for all of them."""
    lead = [np.shape(vector)[:-1] for vector in vectors]
    batch = np.broadcast_shapes(problem.eps.shape, *lead)
    own = len(problem.eps.shape)

    def flat(array: Any, tail: tuple[int, ...]) -> jax.Array:
        return jnp.broadcast_to(jnp.asarray(array), (*batch, *tail)).reshape((-1, *tail))

    many = jax.tree.map(lambda leaf: flat(leaf, leaf.shape[own:]), problem)
    rows = [flat(vector, np.shape(vector)[-1:]) for vector in vectors]
    found = _side_by_side(lambda each: function(*each), (many, *rows), int(np.prod(batch)))
    return jax.tree.map(lambda a: a.reshape((*batch, *a.shape[1:])), found)


def _side_by_side(function: Function, given: Any, count: int) -> Any:
    """`function` of each of `count` rows: all at once, or on a CPU in chunks of at most `SIDE_BY_SIDE` numbers."""
    chunks = min(count, -(-sum(leaf.size for leaf in jax.tree.leaves(given)) // SIDE_BY_SIDE))
    if chunks <= 1 or jax.default_backend() != "cpu":
        return jax.vmap(function)(given)
    size = -(-count // chunks)
    if size * chunks > count:  # the last chunk is filled up, so that one program serves all of them
        index = np.minimum(np.arange(size * chunks), count - 1)
        given = jax.tree.map(lambda a: a[index], given)
    return jax.tree.map(lambda a: a[:count], jax.lax.map(function, given, batch_size=size))


def in_kind(run: Callable[[], Record], problem: ConvexProblem, *others: Any) -> Record:
    """Run in float64 and answer in kind: NumPy for NumPy, JAX for JAX."""
    if traced(problem, *others):
        require_float64()
        return run()
    with jax.enable_x64(True):
        found = run()
        given = [*jax.tree.leaves(problem), *others]
        return found if any(isinstance(a, jax.Array) for a in given) else jax.tree.map(np.asarray, found)


# -------------------------------------------------------------------------- verbs of one problem


def energy_of(one: ConvexProblem, weights: Any) -> jax.Array:
    """V(w), infinite off the simplex and above the caps."""
    outside = (jnp.abs(jnp.sum(weights) - 1.0) > OUTSIDE) | jnp.any(weights < 0.0) | _above_a_cap(one, weights)
    divergence = reg.value(weights, one.log_prior, one.alpha)
    return jnp.where(outside, jnp.inf, one.complexity.value(one.parameters, weights) + one.eps * divergence)


def gate_of(one: ConvexProblem, weights: Any) -> jax.Array:
    """S(w)."""
    g = one.complexity.gradient(one.parameters, weights)[0]
    return reg.respond(reg.tilt(one.log_prior, one.alpha) - g / one.eps, one.caps, one.alpha)[0]


class Judged(NamedTuple):
    """What is known about some weights from the gradient there."""

    gap: Any  # G with its floor
    floor: Any  # what rounding adds to it
    response: Any  # S(w)
    noise: Any  # the largest rounding of the gradient that counts


def judge(one: ConvexProblem, weights: Any, temperature: Any, g: Any, rounding: Any) -> Judged:
    """The gap G from the gradient and its rounding; the proof is in docs/explanation/mathematics.md.

    G is <g, w> + T R(w) + T R*(-g/T), and R* is smooth with the constant n^(alpha-1) in the largest entry.
    """
    n, lean = weights.size, reg.tilt(one.log_prior, one.alpha)
    found = reg.fenchel_gap(weights, lean - g / temperature, one.caps, one.alpha)
    own = temperature * (1.0 + jnp.abs(reg.link(reg.floored_log(weights), one.alpha)) + jnp.abs(lean))
    error = rounding + relative_rounding(0, n) * own
    alive = (weights > 0.0) | (found.response > 0.0)
    largest = jnp.max(jnp.where(alive, error, 0.0))
    # what has no weight counts if rounding could give it some
    noise = jnp.max(jnp.where(alive | (found.margin <= 2.0 * (error + largest) / temperature), error, 0.0))
    moved = noise * (found.mismatch + relative_rounding(0, n))
    floor = jnp.minimum(moved + reg.strength(n, one.alpha) * noise**2 / (2.0 * temperature), 2.0 * noise)
    floor = floor + relative_rounding(0, n) * temperature * found.slope + one.complexity.slack(one.parameters)
    return Judged(temperature * found.gap * gap_rounding(n) + floor, floor, found.response, noise)


def certificate_of(one: ConvexProblem, weights: Any) -> Certificate:
    """The certificate, with nothing in it if the complexity is not convex."""
    weights = weights / jnp.sum(weights)
    outside = jnp.any(weights < 0.0) | _above_a_cap(one, weights)
    gap = judge(one, weights, one.eps, *one.complexity.gradient(one.parameters, weights)).gap
    return certificate_from(one, jnp.where(outside, jnp.inf, gap))


def _above_a_cap(one: ConvexProblem, weights: Any) -> Any:
    """By more than rounding, or at all where nothing is allowed."""
    return False if one.caps is None else jnp.any(weights > one.caps + jnp.where(one.caps > 0.0, OUTSIDE, 0.0))


def certificate_from(one: ConvexProblem, gap: Any) -> Certificate:
    """|w - w*|_1 <= sqrt(2 n^(alpha-1) G/eps), and never more than 2."""
    alpha = 1.0 if one.alpha is None else one.alpha
    proved = (gap >= 0.0) & (one.eps > 0.0) & (alpha >= 1.0) & (alpha <= 2.0)
    gap = jnp.where(proved & one.complexity.convex, gap, jnp.inf)
    spread = reg.strength(one.log_prior.shape[-1], one.alpha)
    distance = jnp.sqrt(2.0 * spread * gap / one.eps) * (1.0 + FUNCTION_ROUNDING * UNIT_ROUNDOFF)
    return one.complexity.certificate(gap, jnp.where(proved, jnp.minimum(distance, 2.0), 2.0))


def dissipation_of(one: ConvexProblem, weights: Any, tau: Any) -> jax.Array:
    """dV/dt along the flow: <grad F + eps (l(w) - l(w_hat)), S - w>/tau."""
    g = one.complexity.gradient(one.parameters, weights)[0]
    slope = g + one.eps * (
        reg.link(reg.floored_log(weights), one.alpha) - reg.tilt(one.log_prior, one.alpha)
    )  # fmt: skip
    moved = gate_of(one, weights) - weights
    rate = jnp.sum((slope - jnp.sum(weights * slope)) * moved) / tau
    # the entropy's slope is infinite at a weight of zero, which grows unless it is capped at zero
    steep = True if one.alpha is None else one.alpha <= 1.0
    grows = (weights <= 0.0) & (True if one.caps is None else one.caps > 0.0)
    return jnp.where(steep & jnp.any(grows), -jnp.inf, rate)


# ------------------------------------------------------------------------------ verbs of batches


def _normal(weights: Any) -> Any:
    """Weights that compiled programs, which may take the least numbers for zero, do not lose."""
    tiny = np.finfo(np.float64).tiny
    if is_traced(weights) or not np.any((np.asarray(weights) > 0.0) & (np.asarray(weights) < tiny)):
        return weights
    host = np.asarray(weights)
    return namespace(weights).asarray(np.where((host > 0.0) & (host < tiny), tiny, host))


def _verb(of_one: Function, check: Function = checks.check_weights) -> Function:
    """The same function for a batch of problems and weights: checked, compiled once, answered in kind."""
    compiled = jax.jit(
        lambda problem, weights, *more: over_batch(lambda one, w: of_one(one, w, *more), problem, weights)
    )

    def verb(problem: ConvexProblem, weights: ArrayLike, *more: Any) -> Any:
        problem = checked(problem)
        weights = _normal(check("weights", weights, problem.log_prior))
        return in_kind(lambda: compiled(problem, weights, *more), problem, weights)

    return verb


energy = _verb(energy_of)
complexity = _verb(lambda one, weights: one.complexity.value(one.parameters, weights))
slope = _verb(lambda one, weights: one.complexity.gradient(one.parameters, weights)[0])
gate = _verb(gate_of)
certify = _verb(certificate_of, checks.check_simplex)
dissipation = _verb(dissipation_of)
