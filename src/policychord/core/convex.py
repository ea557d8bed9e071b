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

from .._types import ActionValues, Array, ArrayLike, Primitives, Scalars, Weights, is_traced, require_float64
from . import _checks as checks
from . import regularisers as reg
from ._method import GAP_ROUNDING, MIXTURE_FLOOR, UNIT_ROUNDOFF, rounding_factor
from .objective import Certificate, centred_cost

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
    """F at some weights: its value, its gradient with the size of what it is a sum of, and its curvature if wanted."""

    value: Any
    gradient: Any
    size: Any
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
        """grad F(w), up to a constant, and the magnitudes that its rounding is relative to."""

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
        gradient, size = self.gradient(parameters, weights)
        return Seen(
            self.value(parameters, weights), gradient, size, self.curvature(parameters, weights) if curved else None
        )

    def slack(self, parameters: Any) -> Any:
        """How far `value` may lie below the true F."""
        return 0.0

    def roundings(self, parameters: Any) -> float:
        """The relative rounding of the gradient."""
        return 8.0 * UNIT_ROUNDOFF


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
        return g, jnp.full_like(g, jnp.max(jnp.abs(g)))

    def along(self, parameters: Any, weights: Any, direction: Any) -> jax.Array:
        """By forward over reverse mode."""
        slope = jax.grad(self.value, argnums=1)
        with _explained("differentiated twice", IN_JAX):
            return jax.jvp(lambda w: slope(parameters, w), (weights,), (direction,))[1]

    def roundings(self, parameters: Any) -> float:
        """A function may sum many terms: a few dozen roundings."""
        return 64.0 * UNIT_ROUNDOFF


@jax.tree_util.register_static
@dataclass(frozen=True)
class Mixture(AbstractComplexity):
    """The paper's F(w) = sum_i p_i (ln p_i + s_i), p = Pi w; parameters are (Pi, s)."""

    def value(self, parameters: Any, weights: Any) -> jax.Array:
        """With the tangent in place of p ln p where p is next to nothing."""
        pi, s = parameters
        p, ln_p = _mixture(pi, weights)
        return jnp.sum(p * (ln_p + s) + jnp.where(p < TANGENT_BELOW, p - TANGENT_BELOW, 0.0))

    def gradient(self, parameters: Any, weights: Any) -> tuple[jax.Array, jax.Array]:
        """Pi^T (ln p + s) with a centred cost."""
        seen = self.see(self.centre(parameters), weights, curved=False)
        return seen.gradient, seen.size

    def see(self, parameters: Any, weights: Any, curved: bool) -> Seen:
        """By one product with Pi^T, which is read once; F is w . grad F."""
        pi, s = parameters
        p, ln_p = _mixture(pi, weights)
        columns = [jnp.stack([ln_p + s, jnp.abs(ln_p) + jnp.abs(s)], axis=-1)]
        columns += [pi * _over(p)[:, None]] if curved else []
        found = pi.T @ jnp.concatenate(columns, axis=-1)
        below = jnp.sum(jnp.where(p < TANGENT_BELOW, p - TANGENT_BELOW, 0.0))
        return Seen(weights @ found[:, 0] + below, found[:, 0], found[:, 1] + 1.0, found[:, 2:] if curved else None)

    def along(self, parameters: Any, weights: Any, direction: Any) -> jax.Array:
        """Pi^T diag(1/p) Pi v, where p is not on its tangent."""
        pi, _ = parameters
        return (_over(pi @ weights) * (pi @ direction)) @ pi

    def curvature(self, parameters: Any, weights: Any) -> jax.Array:
        """Pi^T diag(1/p) Pi."""
        pi, _ = parameters
        return pi.T @ (pi * _over(pi @ weights)[:, None])

    def centre(self, parameters: Any) -> Any:
        """A cost that the first primitive expects to be zero."""
        pi, s = parameters
        return pi, centred_cost(pi, s)

    def slack(self, parameters: Any) -> Any:
        """The tangent lies below p ln p by at most its point of contact, for each action."""
        return parameters[0].shape[-2] * TANGENT_BELOW

    def roundings(self, parameters: Any) -> float:
        """As for the paper's problem."""
        return rounding_factor(parameters[0].shape[-2])


@jax.tree_util.register_static
@dataclass(frozen=True)
class Product(AbstractComplexity):
    """A product of experts p_w ~ prod_a pi_a^w_a against q ~ exp(-s): F(w) = KL(q || p_w), convex in w.

    Its gradient is E_p T - E_q T with T_a = ln pi_a, its Hessian the covariance of T under p_w. Parameters are (Pi, s).
    """

    def value(self, parameters: Any, weights: Any) -> jax.Array:
        """sum_i q_i (ln q_i - ln p_i)."""
        log_p, log_q, _ = _pooled(parameters, weights)
        q = jnp.exp(log_q)
        return jnp.sum(q * (log_q - log_p))

    def gradient(self, parameters: Any, weights: Any) -> tuple[jax.Array, jax.Array]:
        """E_p T - E_q T."""
        log_p, log_q, t = _pooled(parameters, weights)
        q = jnp.exp(log_q)
        return (jnp.exp(log_p) - q) @ t, (jnp.exp(log_p) + q) @ jnp.abs(t) + 1.0

    def along(self, parameters: Any, weights: Any, direction: Any) -> jax.Array:
        """Cov_p(T) v."""
        log_p, _, t = _pooled(parameters, weights)
        return _covariance_times(jnp.exp(log_p), t, direction)

    def roundings(self, parameters: Any) -> float:
        """A sum over the actions."""
        return rounding_factor(parameters[0].shape[-2])


@jax.tree_util.register_static
@dataclass(frozen=True)
class LocalProduct(AbstractComplexity):
    """The other direction, F(w) = KL(p_w || q), which is not convex: its answers are local and certify nothing."""

    convex = False
    certificate = NoCertificate

    def value(self, parameters: Any, weights: Any) -> jax.Array:
        """sum_i p_i (ln p_i - ln q_i)."""
        log_p, log_q, _ = _pooled(parameters, weights)
        return jnp.sum(jnp.exp(log_p) * (log_p - log_q))

    def gradient(self, parameters: Any, weights: Any) -> tuple[jax.Array, jax.Array]:
        """Cov_p(T, ln p - ln q)."""
        log_p, log_q, t = _pooled(parameters, weights)
        p, surprise = jnp.exp(log_p), log_p - log_q
        return (p * (surprise - p @ surprise)) @ t, (p * jnp.abs(surprise)) @ jnp.abs(t) + 1.0

    def along(self, parameters: Any, weights: Any, direction: Any) -> jax.Array:
        """Cov_p(T) v, a positive stand-in for the Hessian."""
        log_p, _, t = _pooled(parameters, weights)
        return _covariance_times(jnp.exp(log_p), t, direction)


MIXTURE, PRODUCT, LOCAL_PRODUCT = Mixture(), Product(), LocalProduct()
COMBINE = {"mixture": MIXTURE, "product": PRODUCT, "local product": LOCAL_PRODUCT}


def pool(pi: Array, weights: Array) -> ActionValues:
    """The product of experts p_w ~ prod_a pi_a^w_a of one problem; a probability counts as at least 1e-300."""
    return jnp.exp(jax.nn.log_softmax(_log(jnp.asarray(pi)) @ weights))


def _mixture(pi: Any, weights: Any) -> tuple[jax.Array, jax.Array]:
    p = pi @ weights
    return p, jnp.log(jnp.maximum(p, TANGENT_BELOW))


def _over(p: Any) -> jax.Array:
    return jnp.where(p >= TANGENT_BELOW, 1.0 / jnp.maximum(p, TANGENT_BELOW), 0.0)


def _log(pi: Any) -> jax.Array:
    return jnp.log(jnp.maximum(pi, MIXTURE_FLOOR))


def _pooled(parameters: Any, weights: Any) -> tuple[jax.Array, jax.Array, jax.Array]:
    """ln p_w, ln q and T."""
    pi, s = parameters
    t = _log(pi)
    return jax.nn.log_softmax(t @ weights), jax.nn.log_softmax(-s), t


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
        return self.parameters[0]

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


def judge(one: ConvexProblem, weights: Any, temperature: Any, g: Any, size: Any) -> Any:
    """The gap G with its rounding, that rounding, the response S, and the noise of an entry of the gradient."""
    lean = reg.tilt(one.log_prior, one.alpha)
    gap, response, mismatch = reg.fenchel_gap(weights, lean - g / temperature, one.caps, one.alpha)
    alive = (weights > 0.0) | (response > 0.0)
    own = temperature * (1.0 + jnp.abs(reg.link(reg.floored_log(weights), one.alpha)) + jnp.abs(lean))
    noise = one.complexity.roundings(one.parameters) * jnp.max(jnp.where(alive, size + own, 0.0))
    # G is <g, w> + T R(w) + T R*(-g/T): R* is smooth with the constant n^(alpha-1) in the largest entry
    floor = noise * (mismatch + UNIT_ROUNDOFF)
    floor = floor + reg.strength(weights.size, one.alpha) * noise**2 / (2.0 * temperature)
    floor = floor + one.complexity.slack(one.parameters)
    return temperature * gap * GAP_ROUNDING + floor, floor, response, noise


def certificate_of(one: ConvexProblem, weights: Any) -> Certificate:
    """The certificate, with nothing in it if the complexity is not convex."""
    g, size = one.complexity.gradient(one.parameters, weights)
    gap = judge(one, weights, one.eps, g, size)[0]
    return certificate_from(one, jnp.where(_above_a_cap(one, weights), jnp.inf, gap))


def _above_a_cap(one: ConvexProblem, weights: Any) -> Any:
    return False if one.caps is None else jnp.any(weights > one.caps + OUTSIDE)


def certificate_from(one: ConvexProblem, gap: Any) -> Certificate:
    """|w - w*|_1 <= sqrt(2 n^(alpha-1) G/eps), and never more than 2."""
    gap = jnp.where(jnp.isnan(gap) | (not one.complexity.convex), jnp.inf, gap)
    spread = reg.strength(one.log_prior.shape[-1], one.alpha)
    return one.complexity.certificate(gap, jnp.minimum(jnp.sqrt(2.0 * spread * gap / one.eps), 2.0))


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


def _verb(of_one: Function, check: Function = checks.check_weights) -> Function:
    """The same function for a batch of problems and weights: checked, compiled once, answered in kind."""
    compiled = jax.jit(
        lambda problem, weights, *more: over_batch(lambda one, w: of_one(one, w, *more), problem, weights)
    )

    def verb(problem: ConvexProblem, weights: ArrayLike, *more: Any) -> Any:
        problem = checked(problem)
        weights = check("weights", weights, problem.log_prior)
        return in_kind(lambda: compiled(problem, weights, *more), problem, weights)

    return verb


energy = _verb(energy_of)
complexity = _verb(lambda one, weights: one.complexity.value(one.parameters, weights))
slope = _verb(lambda one, weights: one.complexity.gradient(one.parameters, weights)[0])
gate = _verb(gate_of)
certify = _verb(certificate_of, checks.check_simplex)
dissipation = _verb(dissipation_of)
