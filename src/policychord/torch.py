"""PyTorch: tensors in, tensors out, with gradients by the implicit derivative: `pip install "policychord[torch]"`.

Tensors and arrays share their memory through DLPack. All is computed in float64. Weights, actions and gradients return
in the type of the tensors that they belong to; certificates stay in float64, and are of the weights before these are
rounded to float32, which moves a weight by at most 6e-8 of itself.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ._types import Observation, Time, require_float64
from .agent import Composer
from .agent import Decision as _Decision
from .core import _implicit, _traced
from .core._checks import SUM_TOLERANCE_SINGLE
from .core._method import Outcome
from .core.equilibrium import solve as _solve
from .core.objective import problem as _problem


class Certificate(NamedTuple):
    """`policychord.Certificate` in tensors."""

    gap: Tensor
    distance: Tensor


class Equilibrium(NamedTuple):
    """`policychord.Equilibrium` in tensors. Weights and log-weights have gradients."""

    weights: Tensor
    log_weights: Tensor
    certificate: Certificate
    passes: Tensor
    outcome: Tensor  # an `Outcome` for each problem

    @property
    def converged(self) -> Tensor:
        """Whether certificate.gap <= tol."""
        return self.outcome == int(Outcome.CONVERGED)


class Decision(NamedTuple):
    """A composer's decisions in tensors. Weights and actions have gradients; `memory` is for the next call."""

    action: Tensor
    weights: Tensor
    certificate: Certificate
    outcome: Tensor
    memory: Any


def solve(
    pi: Tensor, action_cost: Tensor, eps: Tensor | float, prior: Tensor | None = None, *, tol: float = 1e-10
) -> Equilibrium:
    """The optimal weights of gating problems given by tensors, as `policychord.solve(policychord.problem(...))`.

    `pi` has shape (..., d, n), `action_cost` (..., d), `eps` (...) and `prior` (..., n); leading axes broadcast.
    Weights and log-weights can be differentiated once, in all four. Columns of `pi` and priors that sum to one only
    within rounding are normalised, and that is part of what is differentiated.
    """
    kind = _kind_of(a for a in (pi, action_cost, eps, prior) if isinstance(a, Tensor))
    tensors = [pi, action_cost, eps, torch.full((pi.shape[-1],), 1 / pi.shape[-1]) if prior is None else prior]
    pi, action_cost, eps, prior = (torch.as_tensor(a, device=pi.device).double() for a in tensors)
    log_prior = torch.log(_normalised("prior", prior, -1))
    pi = _normalised("pi", pi, -2)
    batch = torch.broadcast_shapes(pi.shape[:-2], action_cost.shape[:-1], eps.shape, log_prior.shape[:-1])
    tails = (pi.shape[-2:], action_cost.shape[-1:], (), log_prior.shape[-1:])
    whole = [
        a.expand((*batch, *tail)).contiguous() for a, tail in zip((pi, action_cost, eps, log_prior), tails, strict=True)
    ]
    log_weights, weights, gap, distance, passes, outcome = _Solve.apply(*whole, tol)
    return Equilibrium(weights.to(kind), log_weights.to(kind), Certificate(gap, distance), passes, outcome)


def decide(composer: Composer, observation: Any, k: Time = 0, *, seed: int = 0, memory: Any = None) -> Decision:
    """Let a Composer decide for a batch of observations: a tensor, or a tree of tensors, with a leading batch axis.

    Its parts are written with jax.numpy and get one observation each, as everywhere. Weights and actions can be
    differentiated once in the observations; an action that is chosen from a list (`mode`, `sample`, labels) does not
    change with them. Row i of step k draws by (`seed`, k, i). Pass the memory of one call to the next.
    """
    require_float64()
    leaves, structure = jax.tree_util.tree_flatten(observation, is_leaf=lambda a: isinstance(a, Tensor))
    if not all(isinstance(leaf, Tensor) and leaf.ndim for leaf in leaves) or len({len(a) for a in leaves}) != 1:
        kinds = [f"{type(a).__name__} {tuple(np.shape(a))}" for a in leaves]
        raise ValueError(f"observation has {', '.join(kinds)}: pass tensors that share a leading batch axis.")
    count = len(leaves[0])
    if memory is None:
        memory = jax.tree_util.tree_map(lambda a: jnp.broadcast_to(a, (count, *jnp.shape(a))), composer.start())
    keys = jax.vmap(lambda i: jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), k), i))(jnp.arange(count))
    asked = _Asked(composer, structure, keys, jnp.asarray(k), memory)
    action, weights, gap, distance, outcome = _Decide.apply(asked, *leaves)
    kind = _kind_of(leaves)
    action, weights = (action.to(kind) if action.is_floating_point() else action), weights.to(kind)
    return Decision(action, weights, Certificate(gap, distance), outcome, asked.after)


class _Solve(torch.autograd.Function):
    """Forward by `solve`, backward by the transpose of the implicit derivative; nothing is unrolled."""

    @staticmethod
    def forward(ctx: Any, pi: Tensor, cost: Tensor, eps: Tensor, log_prior: Tensor, tol: float) -> tuple[Tensor, ...]:
        with jax.enable_x64(True):
            arrays = [_array(a) for a in (pi, cost, eps, log_prior)]
            posed = _problem(pi=arrays[0], action_cost=arrays[1], eps=arrays[2], log_prior=arrays[3])
            weights, log_weights, certificate, passes, outcome = _solve(posed, tol)
            tensors = [_tensor(a, pi.device) for a in (log_weights, weights, *certificate, passes, outcome)]
        ctx.save_for_backward(pi, cost, eps, log_prior, *tensors[:2])
        ctx.mark_non_differentiable(*tensors[2:])
        return tuple(tensors)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *cotangents: Tensor) -> tuple[Tensor | None, ...]:
        *inputs, log_weights, weights = ctx.saved_tensors
        pulled = cotangents[0] + weights * cotangents[1]  # d w = w d ln w
        with jax.enable_x64(True):
            back = _pull_back(*(_array(a.contiguous()) for a in (*inputs, log_weights, pulled)))
            return *(_tensor(a, weights.device) for a in back), None


@jax.jit
def _pull_back(*arrays: jax.Array) -> tuple[jax.Array, ...]:
    pi, cost, eps, log_prior, log_weights, cotangent = arrays
    return _traced.pull(_implicit.keep(pi, cost, eps, log_prior, log_weights), cotangent)


class _Asked:
    """A composer and all that it decides by, but for the observations; and the memory that it leaves."""

    def __init__(self, composer: Composer, structure: Any, keys: jax.Array, k: jax.Array, memory: Any):
        self.composer, self.structure, self.fixed = composer, structure, (keys, k, memory)
        self.after: Any = None


class _Decide(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, asked: _Asked, *leaves: Tensor) -> tuple[Tensor, ...]:
        observation = jax.tree_util.tree_unflatten(asked.structure, [_array(a) for a in leaves])
        decision = _decide_all(asked.composer, observation, asked.fixed)
        asked.after, ctx.asked = decision.memory, asked
        ctx.save_for_backward(*leaves)
        answer = decision.action, decision.weights, *decision.certificate, decision.outcome
        tensors = [_tensor(a, leaves[0].device) for a in answer]
        ctx.mark_non_differentiable(*tensors[2:], *([] if tensors[0].is_floating_point() else tensors[:1]))
        return tuple(tensors)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *cotangents: Tensor) -> tuple[Tensor | None, ...]:
        asked, leaves = ctx.asked, ctx.saved_tensors
        observation = jax.tree_util.tree_unflatten(asked.structure, [_array(a) for a in leaves])
        action, weights = (_array(a.contiguous()) for a in cotangents[:2])
        back = jax.tree_util.tree_leaves(_pull_back_all(asked.composer, observation, asked.fixed, action, weights))
        return None, *(_tensor(a, leaf.device).to(leaf.dtype) for a, leaf in zip(back, leaves, strict=True))


@eqx.filter_jit
def _decide_all(composer: Composer, observation: Observation, fixed: tuple[Any, ...]) -> _Decision:
    keys, k, memory = fixed
    return jax.vmap(lambda key, seen, memory: composer.decide(key, seen, k, memory))(keys, observation, memory)


@eqx.filter_jit
def _pull_back_all(
    composer: Composer, observation: Observation, fixed: tuple[Any, ...], action: jax.Array, weights: jax.Array
) -> Observation:
    _, k, memory = fixed
    smooth_selection = composer.selection in ("mean", "dither", "posterior mean")
    moves = smooth_selection and jnp.issubdtype(composer.actions.points.dtype, jnp.floating)

    def smooth(seen: Observation) -> tuple[Any, Any]:
        if moves:
            decision = _decide_all(composer, seen, fixed)
            return decision.action, decision.weights
        weigh = jax.vmap(lambda seen, memory: composer.weigh(seen, k, memory).weights)
        return jnp.zeros(action.shape), weigh(seen, memory)

    return jax.vjp(smooth, observation)[1]((action.astype(float), weights))[0]


def _kind_of(tensors: Iterable[Tensor]) -> torch.dtype:
    """float32 if that is the widest kind of decimals among them, float64 if there is a wider one or none."""
    kinds = {tensor.dtype for tensor in tensors if tensor.is_floating_point()}
    return torch.float32 if kinds and torch.float64 not in kinds else torch.float64


def _normalised(name: str, values: Tensor, axis: int) -> Tensor:
    total = values.sum(axis, keepdim=True)
    if not bool(((total - 1).abs() <= SUM_TOLERANCE_SINGLE).all()):
        worst = float(total.flatten()[(total - 1).abs().argmax()])
        raise ValueError(f"{name} sums to {worst:.6g}: probabilities are expected, from a softmax for instance.")
    return values / total


def _array(tensor: Tensor) -> Any:
    """The same numbers for us: NumPy on the CPU, which needs no set-up, else JAX; in float64 if they are decimals."""
    tensor = tensor.detach().contiguous()
    tensor = tensor.double() if tensor.is_floating_point() else tensor
    return np.from_dlpack(tensor) if tensor.device.type == "cpu" else jnp.from_dlpack(tensor)


def _tensor(array: Any, device: torch.device) -> Tensor:
    if isinstance(array, np.ndarray) and not array.flags.writeable:
        array = array.copy()
    return torch.from_dlpack(array if isinstance(array, np.ndarray) else jnp.asarray(array)).to(device)
