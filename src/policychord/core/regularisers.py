"""Regularisers: what keeps the weights near the prior, and how sharply the gate then chooses.

    R(w) = sum_a r(w_a),  r(w) = w (l(w) - 1)/alpha,  l(w) = r'(w) = (w^(alpha-1) - 1)/(alpha-1)      on 0 <= w <= caps

alpha = 1 is the entropy (l = ln), alpha = 2 half the squared norm, between them lies the family of Tsallis. Above one,
weights may be exactly zero. The prior enters as the Bregman divergence R(w) - R(w_hat) - <l(w_hat), w - w_hat>, which
is KL(w || w_hat) for the entropy, so weights that nothing speaks against stay at the prior. Functions here work on one
vector; `l` is called the link. The paper's own case has alpha = None and caps = None, which is known when a program is
compiled: its response is a softmax, and nothing is searched for.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .._types import Array, ArrayLike, Weights, in_kind, is_traced, namespace
from ._checks import as_floats, check_eps, joint_axes, log_prior_of
from ._method import LOG_FLOOR, UNIT_ROUNDOFF

_SUMMED = 16.0  # roundings that the sum of the weights may be off when the search ends; they are shared out then
_UNDERFLOW = -745.0  # ln of the least positive number
_ROOT_TURNS = 200  # of the search for the level; bisection alone would need about 100


class Entropy(NamedTuple):
    """The paper's regulariser, sum_a w_a ln(w_a / w_hat_a), with weights up to `caps`, a number or one for each."""

    caps: ArrayLike | None = None


class Tsallis(NamedTuple):
    """(sum_a w_a^alpha - 1)/(alpha (alpha - 1)), alpha from 1 (the entropy) to 2 (sparsemax): above 1 it has zeros."""

    alpha: ArrayLike
    caps: ArrayLike | None = None


Regulariser = Entropy | Tsallis


def is_plain(regulariser: Any) -> bool:
    """Whether it is the paper's own: the entropy without caps."""
    return regulariser is None or (isinstance(regulariser, Entropy) and regulariser.caps is None)


def alpha_and_caps(regulariser: Any, n: int) -> tuple[Array, Array]:
    """The two numbers behind a regulariser, checked: alpha (...) and caps (..., n), one where there is no cap."""
    if regulariser is None:
        return np.ones(()), np.ones(n)
    if not isinstance(regulariser, Entropy | Tsallis):
        raise ValueError(f"regulariser is a {type(regulariser).__name__}: pass Entropy() or Tsallis(alpha).")
    alpha = as_floats("alpha", getattr(regulariser, "alpha", 1.0))
    caps = np.ones(n) if regulariser.caps is None else as_floats("caps", regulariser.caps)
    if caps.ndim == 0:
        caps = caps * np.ones(n)
    if caps.shape[-1] != n:
        raise ValueError(f"caps has shape {caps.shape}: pass one number, or one for each of the {n} weights.")
    if not is_traced(alpha) and not np.all((np.asarray(alpha) >= 1.0) & (np.asarray(alpha) <= 2.0)):
        raise ValueError(f"alpha = {alpha}: it lies between 1 (the entropy) and 2 (sparsemax).")
    if not is_traced(caps):
        low, total = np.min(np.asarray(caps)), np.min(np.sum(np.minimum(np.asarray(caps), 1.0), axis=-1))
        if not (low > 0.0 and total >= 1.0):
            raise ValueError(
                f"caps has a least entry of {low:.6g} and allows a sum of {total:.6g}: caps are positive, and "
                "weights that sum to one must fit below them."
            )
    return alpha, namespace(caps).minimum(caps, 1.0)


def best_response(
    cost: ArrayLike, eps: ArrayLike = 1.0, prior: ArrayLike | None = None, regulariser: Regulariser | None = None
) -> Weights:
    """The smooth best response to a cost of each option: argmin_w <cost, w> + eps R(w), `cost` (..., n).

    With the entropy it is softmax(-cost/eps + ln prior); the gate of a problem is the response to the gradient of F.
    """
    cost, temperature = as_floats("cost", cost), as_floats("eps", eps)
    check_eps(temperature)
    if cost.ndim < 1 or cost.shape[-1] == 0:
        raise ValueError(f"cost has shape {cost.shape}: the last axis needs one cost for each option.")
    n = cost.shape[-1]
    log_prior = log_prior_of(n, prior)
    if log_prior.ndim < 1 or log_prior.shape[-1] != n:
        raise ValueError(f"prior has shape {log_prior.shape}: the last axis needs one entry for each option ({n}).")
    alpha, caps = alpha_and_caps(regulariser, n)
    lead = {"cost": cost.shape[:-1], "eps": temperature.shape, "prior": log_prior.shape[:-1]}
    joint_axes(lead | {"alpha": alpha.shape, "caps": caps.shape[:-1]})
    arguments = (cost, temperature, log_prior, alpha, caps)
    return in_kind(lambda: _responses(*arguments), *arguments)


def prox(x: ArrayLike, regulariser: Regulariser | None = None) -> Weights:
    """The proximal map of R - |.|^2/2 on the simplex at x (..., n): softmax(x) for the entropy, as the lemma says.

    argmin_w R(w) - |w|^2/2 + |w - x|^2/2 = argmin_w R(w) - <x, w>. For alpha = 2 it is the projection on the simplex.
    """
    point = as_floats("x", x)
    return best_response(-point, 1.0, None, regulariser)


@jax.jit
def _responses(cost: Any, eps: Any, log_prior: Any, alpha: Any, caps: Any) -> jax.Array:
    def response(cost, eps, log_prior, alpha, caps):
        return respond(link(log_prior, alpha) - cost / eps, caps, alpha)[0]

    return jnp.vectorize(response, signature="(n),(),(n),(),(n)->(n)")(cost, eps, log_prior, alpha, caps)


# ------------------------------------------------------------------------------- one vector


def link(log_weights: Any, alpha: Any) -> jax.Array:
    """l(w) = (w^k - 1)/k with k = alpha - 1, from ln w; ln w itself at k = 0."""
    if alpha is None:
        return log_weights
    k, entropic = _order(alpha)
    return jnp.where(entropic, log_weights, jnp.expm1(k * log_weights) / k)


def unlink(u: Any, alpha: Any) -> tuple[jax.Array, jax.Array]:
    """The inverse of the link, w = (1 + k u)_+^(1/k) or exp(u) at k = 0, and its slope w^(2 - alpha) = w/(1 + k u)."""
    k, entropic = _order(alpha)
    base = jnp.where(entropic, 1.0, 1.0 + k * u)
    powered = jnp.exp(jnp.where(entropic, jnp.minimum(u, 700.0), _log1p(jnp.maximum(k * u, -1.0 + UNIT_ROUNDOFF)) / k))
    w = jnp.where(base > 0.0, powered, 0.0)
    return w, w / jnp.where(base > 0.0, base, 1.0)


def _log1p(x: Any) -> jax.Array:
    """ln(1 + x) to a dozen roundings; that of XLA misses some hundred for x near -0.4."""
    small = jnp.abs(x) < 0.1
    return jnp.where(small, jnp.log1p(jnp.where(small, x, 0.0)), jnp.log(jnp.where(small, 1.0, 1.0 + x)))


def floored_log(weights: Any) -> jax.Array:
    """ln w, from a floor on: the link of zero is -1/k, which the floor gives to all digits unless k is tiny."""
    return jnp.log(jnp.maximum(weights, np.exp(LOG_FLOOR)))


def curvature_inverse(weights: Any, alpha: Any) -> jax.Array:
    """1/r''(w) = w^(2 - alpha), and zero at zero."""
    if alpha is None:
        return weights
    alive = weights > 0.0
    return jnp.where(alive, jnp.exp((2.0 - alpha) * jnp.log(jnp.where(alive, weights, 1.0))), 0.0)


def value(weights: Any, log_prior: Any, alpha: Any) -> jax.Array:
    """R(w) - R(w_hat) - <l(w_hat), w - w_hat>, the divergence from the prior."""
    own, prior = _potential(weights, alpha), jnp.exp(log_prior)
    return jnp.sum(own - _potential(prior, alpha) - link(log_prior, alpha) * (weights - prior))


def strength(n: int, alpha: Any) -> Any:
    """n^(alpha-1): R(w) - R(w*) - <l(w*), w - w*> >= |w - w*|_1^2 / (2 strength), by Hoelder."""
    return 1.0 if alpha is None else n ** (alpha - 1.0)


def below_caps(weights: Any, caps: Any) -> jax.Array:
    """Which weights could still grow: all without a cap, though they are one."""
    return jnp.ones_like(weights, bool) if caps is None else weights < jnp.where(caps < 1.0, caps, 2.0)


def respond(y: Any, caps: Any, alpha: Any) -> tuple[jax.Array, jax.Array]:
    """argmax_w <y, w> - R(w) on the simplex below the caps, w = min(unlink(y - level), caps), and that level."""
    if alpha is None and caps is None:
        return jax.nn.softmax(y), jax.nn.logsumexp(y)
    return _search(y, caps, alpha)


@jax.custom_jvp
def _search(y: Any, caps: Any, alpha: Any) -> tuple[jax.Array, jax.Array]:
    """The response by a search for its level.

    Newton on l(sum w) = 0, which is convex without caps and linear at alpha = 1 and 2 between kinks; bisection where
    Newton leaves the bracket.
    """
    k, entropic = _order(alpha)
    top = jnp.max(y)
    capped = jnp.any(caps < 1.0)
    all_caps, caps = caps, jnp.where(caps < 1.0, caps, 2.0)  # one is no cap: what would reach it is free
    low = jnp.where(capped, jnp.min(y - link(floored_log(caps), alpha)), top)  # there the sum is at least one
    high = top - link(jnp.log(1.0 / y.size), alpha)

    def excess(level):
        free, slopes = unlink(y - level, alpha)
        w, slopes = jnp.minimum(free, caps), jnp.where(free < caps, slopes, 0.0)
        return w, jnp.sum(w), slopes

    def refine(carry):
        level, low, high, turn, _ = carry
        _, total, slopes = excess(level)
        slope = jnp.sum(slopes)
        low, high = jnp.where(total >= 1.0, level, low), jnp.where(total >= 1.0, high, level)
        grown = jnp.log(total)
        step = jnp.where(entropic, total * grown, total * -jnp.expm1(-k * grown) / k)
        newton = level + step / jnp.where(slope > 0.0, slope, 1.0)
        inside = (slope > 0.0) & (newton >= low) & (newton <= high)
        # every fourth turn halves the bracket, so that kinks at the caps cannot hold it up
        after = jnp.where(inside & (turn % 4 < 3), newton, 0.5 * (low + high))
        done = (jnp.abs(total - 1.0) <= _SUMMED * UNIT_ROUNDOFF) | (after == level) | (high <= low)
        return jnp.where(done, level, after), low, high, turn + 1, done

    begin = (low, low, high, 0, jnp.zeros((), bool))
    level = lax.while_loop(lambda c: ~c[4] & (c[3] < _ROOT_TURNS), refine, begin)[0]
    w, total, slopes = excess(level)
    slope = jnp.sum(slopes)
    # what rounding left of the sum goes to the free weights: the level may be too large a number to be moved so little
    w = jnp.clip(w + (1.0 - total) * slopes / jnp.where(slope > 0.0, slope, 1.0), 0.0, all_caps)
    return jnp.where(capped, w, w / jnp.sum(w)), level


@_search.defjvp
def _search_jvp(primals: Any, tangents: Any) -> Any:
    """The rule of `_implicit.py` for a linear complexity, where it has a closed form: H = 0, eps = 1."""
    y, caps, alpha = primals
    dy, d_caps, d_alpha = tangents
    w, level = _search(y, caps, alpha)
    free = below_caps(w, caps)
    d = jnp.where(free, curvature_inverse(w, alpha), 0.0)
    held = jnp.where(free, 0.0, d_caps)
    pull = dy - link_by_alpha(w, alpha) * d_alpha
    d_level = (jnp.sum(d * pull) + jnp.sum(held)) / jnp.maximum(jnp.sum(d), 1e-300)
    return (w, level), (d * (pull - d_level) + held, d_level)


def link_by_alpha(weights: Any, alpha: Any) -> jax.Array:
    """d l(w)/d alpha = (w^k ln w - l)/k, and (ln w)^2/2 at k = 0."""
    k, log_weights = alpha - 1.0, floored_log(weights)
    near = jnp.abs(k * log_weights) < 1e-4
    series = log_weights**2 * (0.5 + k * log_weights / 3.0)
    exact = (jnp.exp(k * log_weights) * log_weights - link(log_weights, alpha)) / jnp.where(k > 0.0, k, 1.0)
    return jnp.where(near, series, exact)


class _FenchelGap(NamedTuple):
    """max_s <y, s - w> - R(s) + R(w), and what its rounding depends on."""

    gap: Any
    response: Any  # its maximiser s
    mismatch: Any  # |w - s|_1
    margin: Any  # how far below the level at which it would get some weight each entry of y is
    slope: Any  # sum_a w_a |l(w_a) - u_a|: what it costs that the weights miss one


def fenchel_gap(weights: Any, y: Any, caps: Any, alpha: Any) -> _FenchelGap:
    """T times it is the certificate G, y = l(w_hat) - grad F/T.

    Every term of the sum is positive: r(w) - r(s) - u (w - s) with u = y - level. For w near s it is the divergence
    of r, computed from (w - s)/s without cancellation, and (l(s) - u) (w - s), which is zero inside the bounds.
    """
    s, level = respond(y, caps, alpha)
    u = y - level
    near = (s > 0.0) & (jnp.abs(weights - s) <= 0.5 * s)
    some = jnp.where(near, s, 1.0)
    relative = jnp.where(near, (weights - s) / some, 0.0)
    grown = (1.0 + relative) * link(_log1p(relative), alpha) - relative
    scale, order = (1.0, 1.0) if alpha is None else (some ** (alpha - 1.0), alpha)
    held = jnp.where(below_caps(s, caps), 0.0, (link(jnp.log(some), alpha) - u) * (weights - s))
    close = s * scale * jnp.maximum(grown, 0.0) / order + jnp.maximum(held, 0.0)
    far = _potential(weights, alpha) - _potential(s, alpha) - jnp.where(weights == s, 0.0, u * (weights - s))
    slope = jnp.sum(weights * jnp.abs(link(floored_log(weights), alpha) - u))
    return _FenchelGap(
        gap=jnp.sum(jnp.where(near, close, jnp.maximum(far, 0.0))),
        response=s,
        mismatch=jnp.sum(jnp.abs(weights - s)),
        margin=_least_link(alpha) - u,
        slope=slope,
    )


def _least_link(alpha: Any) -> Any:
    """The link of the least weight that counts: of zero, -1/k, or of a number that underflows."""
    k = 0.0 if alpha is None else alpha - 1.0
    return -1.0 / jnp.maximum(k, -1.0 / _UNDERFLOW)


def _potential(weights: Any, alpha: Any) -> jax.Array:
    """r(w) = w (l(w) - 1)/alpha, zero at zero."""
    alive, order = weights > 0.0, 1.0 if alpha is None else alpha
    return jnp.where(alive, weights * (link(jnp.log(jnp.where(alive, weights, 1.0)), alpha) - 1.0) / order, 0.0)


def _order(alpha: Any) -> tuple[jax.Array, jax.Array]:
    """k = alpha - 1, made harmless where it is zero, and whether it is."""
    k = jnp.asarray(alpha) - 1.0
    entropic = k <= 0.0
    return jnp.where(entropic, 1.0, k), entropic
