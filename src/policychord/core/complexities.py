"""Complexities F(w): the divergence of a mixture, its posterior or a product from a model, or a user's function.

Each has the derivatives, and the bound on the rounding of its gradient, that a search and a certificate need.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from .._types import Array, ArrayLike, Primitives, namespace
from ._checks import require_float64_result
from ._method import FUNCTION_ROUNDING, LOG_FLOOR, MIXTURE_FLOOR, UNIT_ROUNDOFF, relative_rounding
from .objective import Certificate, centred_cost, expected_cost

# Below this probability p ln p is replaced by its tangent, so that weights may be exactly zero: F falls by at most
# this much for each action, and the gap is raised by as much.
_TANGENT_BELOW = 1e-20

_IN_JAX = (
    "write it in jax.numpy alone. A function with custom_vjp needs custom_jvp instead; a callback has no derivative"
)
_OF_WEIGHTS = "pass a JAX function of the weights, and of the parameters of one problem if there are any"


class ConditionalCertificate(Certificate):
    """A certificate that holds if what it assumes is true."""

    __slots__ = ()
    assumes = (
        "the complexity is convex on the simplex",
        "its gradient is right to float64 rounding, relative to its largest entry",
    )


class NoCertificate(Certificate):
    """What is known of a local answer: nothing beyond that no small step improves it."""

    __slots__ = ()
    assumes = ("nothing is proved: the complexity is not convex, and other weights may be better",)


class _Seen(NamedTuple):
    """F at some weights: its value, its gradient with a bound on its rounding, and its curvature if wanted."""

    value: Any
    gradient: Any
    rounding: Any
    curvature: Any


class GradientLayers(NamedTuple):
    """How two layers of neurons give the gradient: grad F(w) = transfer(encode w) encode + drive, up to a constant."""

    encode: Any  # (d, n)
    transfer: Callable[[Any], Any]  # of the first layer (d,) to the second
    drive: Any  # (n,)


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

    def see(self, parameters: Any, weights: Any, curved: bool) -> _Seen:
        """Everything at once, of parameters that are centred."""
        gradient, rounding = self.gradient(parameters, weights)
        curvature = self.curvature(parameters, weights) if curved else None
        return _Seen(self.value(parameters, weights), gradient, rounding, curvature)

    def layers(self, parameters: Any, n: int) -> GradientLayers:
        """The layers of a circuit: the second one gives the gradient itself, unless a complexity has better ones."""
        return GradientLayers(jnp.eye(n), lambda w: self.gradient(parameters, w)[0], jnp.zeros(n))

    def primitives(self, parameters: Any) -> Primitives:
        """Pi, if there is one."""
        return parameters[0]

    def slack(self, parameters: Any) -> Any:
        """How far `value` may lie below the true F."""
        return 0.0


@contextmanager
def _explained(done: str, remedy: str) -> Iterator[None]:
    """Say what it means that a user's function cannot be evaluated or differentiated."""
    try:
        yield
    except Exception as error:  # JAX and a user's function may raise anything
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise ValueError(f"complexity cannot be {done} ({reason}): {remedy}.") from error


@jax.tree_util.register_static
@dataclass(frozen=True)
class Own(AbstractComplexity):
    """A function of the user's, differentiated by JAX."""

    function: Callable[..., Any]
    certificate = ConditionalCertificate

    def answer(self, parameters: Any, weights: Any) -> Any:
        """What the function gives."""
        return self.function(weights) if parameters is None else self.function(weights, parameters)

    def value(self, parameters: Any, weights: Any) -> jax.Array:
        return jnp.asarray(self.answer(parameters, weights), weights.dtype)

    def gradient(self, parameters: Any, weights: Any) -> tuple[jax.Array, jax.Array]:
        with _explained("differentiated", _IN_JAX):
            g = jax.grad(self.value, argnums=1)(parameters, weights)
        # a function may sum many terms: a few dozen roundings
        return g, jnp.full_like(g, 64.0 * UNIT_ROUNDOFF * jnp.max(jnp.abs(g)))

    def along(self, parameters: Any, weights: Any, direction: Any) -> jax.Array:
        slope = jax.grad(self.value, argnums=1)
        with _explained("differentiated twice", _IN_JAX):
            return jax.jvp(lambda w: slope(parameters, w), (weights,), (direction,))[1]


def check_function(complexity: Own, parameters: Any, n: int) -> None:
    """Complain of a function that does not give one real number in float64."""
    weights = jax.ShapeDtypeStruct((n,), np.float64)
    with jax.enable_x64(True):
        with _explained(f"evaluated on {n} weights", _OF_WEIGHTS):  # it may also give what is no array
            seen = jax.eval_shape(complexity.answer, parameters, weights)
        shape = getattr(seen, "shape", None)
        if shape != ():
            answer = f"a {type(seen).__name__}" if shape is None else f"an array of shape {shape}"
            raise ValueError(f"complexity gives {answer}: it must give one number.")
        require_float64_result("complexity", seen.dtype)


@jax.tree_util.register_static
@dataclass(frozen=True)
class Mixture(AbstractComplexity):
    """The paper's F(w) = sum_i p_i (ln p_i + s_i), p = Pi w; parameters are (Pi, s)."""

    def value(self, parameters: Any, weights: Any) -> jax.Array:
        """With the tangent in place of p ln p where p is next to nothing."""
        pi, s, *_ = parameters
        p, ln_p = _mixture_and_log(pi, weights)
        return jnp.sum(p * (ln_p + s) + jnp.where(p < _TANGENT_BELOW, p - _TANGENT_BELOW, 0.0))

    def gradient(self, parameters: Any, weights: Any) -> tuple[jax.Array, jax.Array]:
        """Pi^T (ln p + s) with a centred cost."""
        seen = self.see(self.centre(parameters), weights, curved=False)
        return seen.gradient, seen.rounding

    def see(self, parameters: Any, weights: Any, curved: bool) -> _Seen:
        """By one product with Pi^T, which is read once; F is w . grad F."""
        pi, s, offset, relative = parameters
        p, ln_p = _mixture_and_log(pi, weights)
        columns = [jnp.stack([ln_p + s, jnp.abs(ln_p) + jnp.abs(s)], axis=-1)]
        columns += [pi * _over(p)[:, None]] if curved else []
        products = pi.T @ jnp.concatenate(columns, axis=-1)
        below = jnp.sum(jnp.where(p < _TANGENT_BELOW, p - _TANGENT_BELOW, 0.0))
        rounding = relative * (offset + products[:, 1])
        return _Seen(weights @ products[:, 0] + below, products[:, 0], rounding, products[:, 2:] if curved else None)

    def along(self, parameters: Any, weights: Any, direction: Any) -> jax.Array:
        """Pi^T diag(1/p) Pi v, where p is not on its tangent."""
        pi = parameters[0]
        return (_over(pi @ weights) * (pi @ direction)) @ pi

    def curvature(self, parameters: Any, weights: Any) -> jax.Array:
        pi = parameters[0]
        return pi.T @ (pi * _over(pi @ weights)[:, None])

    def centre(self, parameters: Any) -> Any:
        """(Pi, s) with a cost that the first primitive expects to be zero, and its rounding."""
        pi, s = parameters
        cost = centred_cost(pi, s)
        return pi, s - expected_cost(pi, s), cost.offset, cost.relative

    def layers(self, parameters: Any, n: int) -> GradientLayers:
        """The paper's: the mixture and its logarithm."""
        pi, s = parameters
        return GradientLayers(pi, lambda p: jnp.log(jnp.maximum(p, _TANGENT_BELOW)), s @ pi)

    def slack(self, parameters: Any) -> Any:
        """The tangent lies below p ln p by at most its point of contact, for each action."""
        return parameters[0].shape[-2] * _TANGENT_BELOW


@jax.tree_util.register_static
@dataclass(frozen=True)
class _Posterior(AbstractComplexity):
    """F(w) = -ln sum_a w_a z_a, z = Pi^T exp(-s): what the posterior p ~ (Pi w) exp(-s) attains, convex in w.

    It is the least KL(p || Pi w) + E_p[s] of all p. Parameters are (Pi, s), and, once centred, ln z with its rounding.
    """

    def value(self, parameters: Any, weights: Any) -> jax.Array:
        return jnp.min(parameters[1]) - logsumexp(self._evidence(parameters)[0], b=weights)

    def gradient(self, parameters: Any, weights: Any) -> tuple[jax.Array, jax.Array]:
        """-z_a / sum_b w_b z_b, from logarithms."""
        log_z, rounding = self._evidence(parameters)
        share = log_z - logsumexp(log_z, b=weights)
        g = jnp.exp(jnp.minimum(share, -LOG_FLOOR))
        taken = jnp.minimum(weights * g, 1.0)
        own = rounding + taken @ rounding + FUNCTION_ROUNDING * UNIT_ROUNDOFF * (1.0 + jnp.abs(share))
        return -g, g * (own + relative_rounding(0, weights.size))

    def along(self, parameters: Any, weights: Any, direction: Any) -> jax.Array:
        """g (g . v): all curvature is along the gradient."""
        g = self.gradient(parameters, weights)[0]
        return g * (g @ direction)

    def centre(self, parameters: Any) -> Any:
        """(Pi, s, ln z up to a constant, its rounding): nothing of the size of the action set is computed again."""
        log_z, rounding = self._evidence(parameters)
        return *parameters, log_z - jnp.max(log_z), rounding

    @staticmethod
    def _evidence(parameters: Any) -> tuple[jax.Array, jax.Array]:
        """ln z_a = ln sum_i Pi_ia exp(-s_i) for costs from zero up, and how far it may be from the exact one."""
        pi, s, *known = parameters
        if known:
            return known[0], known[1]
        s = s - jnp.min(s)
        log_z = logsumexp(-s[:, None], b=pi, axis=0)
        # what counts of the rounding of an exponent is its mean under the primitive's own posterior
        size = jnp.exp(logsumexp(-s[:, None] - log_z, b=pi * (1.0 + s[:, None]), axis=0))
        return log_z, relative_rounding(*pi.shape) + FUNCTION_ROUNDING * UNIT_ROUNDOFF * size


class _AbstractProduct(AbstractComplexity):
    """A product of experts p_w ~ prod_a pi_a^w_a and q ~ exp(-s), from which actions that nobody takes are left out.

    Parameters are (ln Pi, s), and T_a = ln pi_a.
    """

    def along(self, parameters: Any, weights: Any, direction: Any) -> jax.Array:
        """Cov_p(T) v: the Hessian of KL(q || p_w), and a positive stand-in for that of KL(p_w || q)."""
        log_p, _, t, _ = _pooled(parameters, weights)
        p, moved = jnp.exp(log_p), t @ direction
        return (p * (moved - p @ moved)) @ t

    def primitives(self, parameters: Any) -> Primitives:
        return namespace(parameters[0]).exp(parameters[0])


@jax.tree_util.register_static
@dataclass(frozen=True)
class _Product(_AbstractProduct):
    """F(w) = KL(q || p_w) = sum_i q_i (ln q_i - ln p_i), convex in w.

    F is infinite where an expert has weight that never takes an action which others take: such an expert is capped at
    zero (`is_partial`).
    """

    def value(self, parameters: Any, weights: Any) -> jax.Array:
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

    def layers(self, parameters: Any, n: int) -> GradientLayers:
        """The weighted sum of logarithms, and the product, which inhibition normalises."""
        _, log_q, t, taken = _pooled(parameters, jnp.zeros(n))
        return GradientLayers(t, lambda a: jax.nn.softmax(jnp.where(taken, a, -jnp.inf)), -jnp.exp(log_q) @ t)


@jax.tree_util.register_static
@dataclass(frozen=True)
class _LocalProduct(_AbstractProduct):
    """F(w) = KL(p_w || q) = sum_i p_i (ln p_i - ln q_i), not convex: its answers are local and certify nothing."""

    convex = False
    certificate = NoCertificate

    def value(self, parameters: Any, weights: Any) -> jax.Array:
        log_p, log_q, _, taken = _pooled(parameters, weights)
        return jnp.sum(jnp.where(taken, jnp.exp(log_p) * (log_p - log_q), 0.0))

    def gradient(self, parameters: Any, weights: Any) -> tuple[jax.Array, jax.Array]:
        """Cov_p(T, ln p - ln q)."""
        log_p, log_q, t, taken = _pooled(parameters, weights)
        p, surprise = jnp.exp(log_p), jnp.where(taken, log_p - log_q, 0.0)
        size = (p * jnp.abs(surprise)) @ jnp.abs(t) + 1.0
        return (p * (surprise - p @ surprise)) @ t, relative_rounding(*t.shape) * size


COMBINE: dict[str, AbstractComplexity] = {
    "mixture": Mixture(), "product": _Product(), "local product": _LocalProduct(), "posterior": _Posterior(),
}  # fmt: skip


def is_product(complexity: AbstractComplexity) -> bool:
    """Whether the primitives act as one, by the product of their probabilities."""
    return isinstance(complexity, _AbstractProduct)


def tilt(log_mixture: Array, cost: Array, beta: ArrayLike = 1.0) -> jax.Array:
    """ln p of the posterior p ~ exp(log_mixture - beta s), which minimises KL(p || mixture) + beta E_p[s].

    E_p[s] falls as beta rises: its derivative is -Var_p(s).
    """
    return jax.nn.log_softmax(log_mixture - beta * cost)


def pool(log_pi: Array, weights: Array) -> jax.Array:
    """The product of experts p_w ~ prod_a pi_a^w_a of one problem."""
    return jnp.exp(jax.nn.log_softmax(_finite(jnp.asarray(log_pi)) @ weights))


def is_partial(log_pi: Any) -> Any:
    """Which experts (..., n) never take an action that others take: with any weight the product never takes it."""
    xp = namespace(log_pi)
    never = log_pi == -np.inf
    return xp.any(never & ~xp.all(never, axis=-1, keepdims=True), axis=-2)


def _mixture_and_log(pi: Any, weights: Any) -> tuple[jax.Array, jax.Array]:
    p = pi @ weights
    return p, jnp.log(jnp.maximum(p, _TANGENT_BELOW))


def _over(p: Any) -> jax.Array:
    return jnp.where(p >= _TANGENT_BELOW, 1.0 / jnp.maximum(p, _TANGENT_BELOW), 0.0)


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
