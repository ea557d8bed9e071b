"""A horizon in one matrix, for worlds that are linear or nearly so: `riccati` and `linearise`."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.linalg import solve_discrete_are

from .._calls import call
from .._types import Action, ArrayLike, Observation, Time

Matrix = Float[np.ndarray, "_ _"]


class Regulator(NamedTuple):
    """The best linear controller u = -gain x, and what a state costs from there on: x^T cost_to_go x."""

    gain: Matrix  # (actions, states)
    cost_to_go: Matrix  # (states, states): `Cost(cost_to_go=...)` takes it as it is


def riccati(A: ArrayLike, B: ArrayLike, Q: ArrayLike, R: ArrayLike) -> Regulator:
    """The endless horizon of x' = A x + B u with the cost x^T Q x + u^T R u: P = Q + A^T P A - A^T P B K.

    `Cost(lambda x, u, k: u @ R @ u, predict=..., cost_to_go=P)` is a receding horizon in one matrix; differences to a
    target take its place in `target`.
    """
    A, B, Q, R = (np.asarray(matrix, dtype=float) for matrix in (A, B, Q, R))
    states, actions = B.shape if B.ndim == 2 else (0, 0)
    for name, matrix, shape in (("A", A, (states, states)), ("Q", Q, (states, states)), ("R", R, (actions, actions))):
        if matrix.shape != shape or not states:
            raise ValueError(
                f"{name} has shape {matrix.shape} and B {B.shape}: with s states and u actions pass A (s, s), "
                "B (s, u), Q (s, s) and R (u, u)."
            )
    try:
        P = solve_discrete_are(A, B, Q, R)
    except (np.linalg.LinAlgError, ValueError) as error:
        raise ValueError(
            "no controller keeps the cost finite: every direction that grows by itself must be reached by B and priced "
            f"by Q, and R must be positive definite ({error})."
        ) from error
    return Regulator(np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A), P)


def linearise(
    predict: Callable[[Observation, Action, Time], Observation], observation: ArrayLike, action: ArrayLike, k: Time = 0
) -> tuple[Matrix, Matrix]:
    """(A, B): how the next state changes with state and action around these, both vectors."""
    at = jnp.asarray(observation, dtype=float), jnp.asarray(action, dtype=float)
    A, B = jax.jacfwd(lambda x, u: jnp.asarray(call("predict", predict, x, u, k)), argnums=(0, 1))(*at)
    return np.asarray(A), np.asarray(B)
