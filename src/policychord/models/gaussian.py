"""`GaussianTarget`: where the next state should be, against where each action would take it."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

from .._calls import call
from .._types import Action, ArrayLike, Observation, Time, is_traced
from ..actions import AbstractActions
from .base import AbstractModel, Terms


class GaussianTarget(AbstractModel):
    """s(u) = KL( N(predict(x,u), P), N(target(x), Q) ), in closed form.

    `predict(observation, action, k)` is the mean of the next state and `target(observation, k)` the desired mean, or an
    array. `covariance` (P) and `target_covariance` (Q) are numbers (times the identity), vectors (diagonals) or
    matrices; P may also be a function of (observation, action, k) and Q of (observation, k). The terms are `distance`,
    half the squared Mahalanobis distance of the means, and `spread`, which compares the covariances and matters only
    if they change with the action.
    """

    predict: Callable[[Observation, Action, Time], ArrayLike]
    target: Callable[[Observation, Time], ArrayLike] | Float[Array, " dim"]
    covariance: Callable[[Observation, Action, Time], ArrayLike] | Float[Array, "..."]
    target_covariance: Callable[[Observation, Time], ArrayLike] | Float[Array, "..."]

    def __init__(
        self,
        predict: Callable[[Observation, Action, Time], ArrayLike],
        target: Callable[[Observation, Time], ArrayLike] | ArrayLike,
        covariance: Callable[[Observation, Action, Time], ArrayLike] | ArrayLike,
        target_covariance: Callable[[Observation, Time], ArrayLike] | ArrayLike | None = None,
    ):
        """Without `target_covariance` the target is as wide as the prediction."""
        if not callable(predict):
            raise ValueError(
                "predict must be a function of (observation, action, k) that returns the mean of the next state."
            )
        if target_covariance is None:
            if callable(covariance):
                raise ValueError("covariance is a function, so target_covariance must be given.")
            target_covariance = covariance
        self.predict = predict
        self.target = target if callable(target) else jnp.asarray(target, dtype=float)
        self.covariance = _checked("covariance", covariance)
        self.target_covariance = _checked("target_covariance", target_covariance)

    def terms(self, actions: AbstractActions, observation: Observation, k: Time) -> Terms:
        target = jnp.atleast_1d(call("target", self.target, observation, k) if callable(self.target) else self.target)
        wanted = self.target_covariance(observation, k) if callable(self.target_covariance) else self.target_covariance
        root = _cholesky(wanted, target.shape[0])

        def for_action(action: Array) -> tuple[Array, Array]:
            mean = jnp.atleast_1d(call("predict", self.predict, observation, action, k))
            if mean.shape != target.shape:
                raise ValueError(f"predict gives shape {mean.shape} but the target has shape {target.shape}.")
            covariance = self.covariance(observation, action, k) if callable(self.covariance) else self.covariance
            return _terms(mean - target, _cholesky(covariance, target.shape[0]), root)

        distance, spread = jax.vmap(for_action)(actions.points)
        return {"distance": distance, "spread": spread}


def gaussian_kl(
    mean: ArrayLike, covariance: ArrayLike, target: ArrayLike, target_covariance: ArrayLike
) -> Float[Array, ""]:
    """KL( N(m,P), N(r,Q) ) = ( tr Q^-1 P - dim + ln det Q - ln det P + (m-r)^T Q^-1 (m-r) ) / 2."""
    mean, target = jnp.atleast_1d(jnp.asarray(mean, dtype=float)), jnp.atleast_1d(jnp.asarray(target, dtype=float))
    dim = mean.shape[0]
    covariance = _checked("covariance", covariance)
    target_covariance = _checked("target_covariance", target_covariance)
    distance, spread = _terms(mean - target, _cholesky(covariance, dim), _cholesky(target_covariance, dim))
    return distance + spread


def _terms(offset: Array, root: Array, target_root: Array) -> tuple[Array, Array]:
    """(distance, spread) from Cholesky factors: half of z.z with z = L^-1 (m - r), and the rest of the divergence."""
    if root.ndim == 1 and target_root.ndim == 1:
        z, ratio = offset / target_root, root / target_root
        return 0.5 * _squared(z), jnp.sum(0.5 * (ratio**2 - 1.0) - jnp.log(ratio))
    full, target_full = (jnp.diag(r) if r.ndim == 1 else r for r in (root, target_root))
    z = solve_triangular(target_full, offset, lower=True)
    ratio = solve_triangular(target_full, full, lower=True)
    logs = jnp.log(jnp.diag(target_full)) - jnp.log(jnp.diag(full))
    return 0.5 * jnp.sum(z**2), 0.5 * (jnp.sum(ratio**2) - offset.shape[0]) + jnp.sum(logs)


def _squared(z: Array) -> Array:
    """z.z, term by term while they are few: XLA then vectorises along the actions, eight times faster."""
    return sum(part**2 for part in z) if z.shape[0] <= 12 else jnp.sum(z**2)


def _cholesky(covariance: ArrayLike, dim: int) -> Array:
    """The factor of a covariance: standard deviations (a vector) if the axes are independent, else a matrix."""
    covariance = jnp.asarray(covariance, dtype=float)
    if covariance.shape not in ((), (1,), (dim,), (dim, dim)):
        raise ValueError(f"a covariance of shape {covariance.shape} does not fit a state of {dim} numbers.")
    if covariance.ndim == 2:
        return jnp.linalg.cholesky(covariance)
    return jnp.sqrt(jnp.broadcast_to(covariance, (dim,)))


def _checked(name: str, covariance: Any) -> Any:
    if callable(covariance) or is_traced(covariance):
        return covariance
    values = np.asarray(covariance, dtype=float)
    if values.ndim < 2:
        good = bool(np.all(np.isfinite(values) & (values > 0)))
    else:
        symmetric = values.ndim == 2 and values.shape[0] == values.shape[1] and np.allclose(values, values.T)
        good = bool(symmetric and np.all(np.linalg.eigvalsh(values) > 0))
    if not good:
        raise ValueError(
            f"{name} = {values.tolist()}: pass a positive number, a vector of positive numbers (a diagonal), or a "
            "symmetric positive definite matrix."
        )
    return jnp.asarray(values)
