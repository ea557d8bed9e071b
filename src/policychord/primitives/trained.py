"""The distribution that a Stable-Baselines3 policy has itself, in numbers: read from the policy, put on an action set.

Nothing here imports Stable-Baselines3: a policy is known by what it has. Its networks need torch, which whoever
trained one has installed.
"""

from typing import Any, Literal, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr, logsumexp
from jaxtyping import Array, Float

from .._types import is_traced
from ..actions import AbstractActions, Finite, Grid, Sampled

Kind = Literal["labels", "values", "clipped", "squashed"]


class OwnDistribution(NamedTuple):
    """What kind of distribution a trained policy has. `parameters` gives its numbers for given observations.

    `labels`: logits of each label. `values`: Q of each label, for a softmax of Q / temperature. `clipped`: u = y, cut
    to the limits, with y Gaussian. `squashed`: u = tanh(y), stretched to the limits. Each number of y has a mean and an
    sd.
    """

    kind: Kind
    network: Any  # what has the distribution, an SB3 policy
    shape: tuple[int, ...]  # of the numbers for one observation: (labels,), or (2, dim) for means and sds
    low: np.ndarray  # the limits of an action; for labels the first of them
    high: np.ndarray

    def parameters(self, observation: Any, state: Any = None) -> np.ndarray:
        """The numbers for a batch of observations: logits, values, or means and standard deviations."""
        import torch

        network = self.network
        network.set_training_mode(False)
        with torch.no_grad():
            seen = network.obs_to_tensor(observation)[0]
            if self.kind == "values":
                return network.q_net(seen).double().cpu().numpy()
            if hasattr(network, "actor"):
                mean, log_sd, more = network.actor.get_action_dist_params(seen)
                distribution = network.actor.action_dist.proba_distribution(mean, log_sd, **more)
            elif state is None:
                distribution = network.get_distribution(seen)
            else:
                state = tuple(
                    torch.as_tensor(np.array(part), dtype=torch.float32, device=network.device) for part in state
                )
                begun = torch.zeros(state[0].shape[1], device=network.device)
                distribution = network.get_distribution(seen, state, begun)[0]
            inner = distribution.distribution
            numbers = inner.logits if self.kind == "labels" else torch.stack([inner.mean, inner.stddev], -2)
            return numbers.double().cpu().numpy()

    def log_prob(
        self, actions: AbstractActions, parameters: Float[Array, "..."], temperature: Float[Array, ""] | None
    ) -> Float[Array, " d"]:
        """ln probability of every action of the set, which is what the policy plays, rounded to the set."""
        if self.kind in ("labels", "values"):
            return self._of_labels(actions, parameters if temperature is None else parameters / temperature)
        mean, sd = parameters
        if isinstance(actions, Grid):
            return self._of_cells(actions, mean, sd)
        points = actions.points.reshape(actions.size, -1)
        if points.shape[1] != len(self.low) or getattr(actions, "labels", False):
            raise ValueError(
                f"the policy acts with {len(self.low)} numbers between limits, but the actions are points of shape "
                f"{actions.points.shape[1:]}: use a Grid, or vectors of {len(self.low)}."
            )
        inner = self.inner(jnp.clip(points, *self._within()))
        density = -0.5 * ((inner - mean) / sd) ** 2 - jnp.log(sd) - self._stretch(inner)
        return _normalised(jnp.sum(density, axis=-1))

    def fits(self, actions: Sampled) -> None:
        """Complain unless these actions are the policy's own: as many numbers, squashed where it squashes."""
        if self.kind in ("labels", "values"):
            raise ValueError(f"the policy chooses among labels, and Sampled actions are numbers: {self._list()}.")
        if actions.low.shape != self.low.shape:
            raise ValueError(f"the policy acts with {len(self.low)} numbers, Sampled with {len(actions.low)}.")
        # where the limits are not known yet, a composer has compared them when it was made
        same = is_traced(actions.low) or np.allclose([actions.low, actions.high], [self.low, self.high])
        if actions.squash == (self.kind == "squashed") and (same or not actions.squash):
            return
        limits = f"low = {self.low.tolist()}, high = {self.high.tolist()}"
        raise ValueError(
            f"the policy squashes its actions into {limits}: use Sampled with these and squash=True."
            if self.kind == "squashed"
            else "the policy does not squash its actions: use Sampled without squash."
        )

    def inner(self, action: Float[Array, "..."]) -> Float[Array, "..."]:
        """y, the Gaussian number behind an action; infinite at the limits of a squashed one."""
        if self.kind == "clipped":
            return action
        return jnp.arctanh(jnp.clip(2.0 * (action - self.low) / (self.high - self.low) - 1.0, -1.0, 1.0))

    def outer(self, inner: Float[Array, "..."]) -> Float[Array, "..."]:
        """The action that a Gaussian number becomes."""
        if self.kind == "clipped":
            return jnp.clip(inner, self.low, self.high)
        return self.low + 0.5 * (jnp.tanh(inner) + 1.0) * (self.high - self.low)

    def _stretch(self, inner: Array) -> Array | float:
        """ln du/dy, along each axis."""
        if self.kind == "clipped":
            return 0.0
        # 1 - tanh^2 y = 4 / (e^y + e^-y)^2, which keeps its digits far out
        return jnp.log(2.0 * (self.high - self.low)) - 2.0 * jnp.logaddexp(inner, -inner)

    def _within(self) -> tuple[np.ndarray, np.ndarray]:
        """The limits, without the two ends of a squashed action, at which its density is not a number."""
        margin = 0.0 if self.kind == "clipped" else 1e-6 * (self.high - self.low)
        return self.low + margin, self.high - margin

    def _of_labels(self, actions: AbstractActions, log_prob: Array) -> Array:
        listed = isinstance(actions, Finite) and actions.labels
        place = actions.points - self.low
        known = (place >= 0) & (place < self.shape[0])
        if not listed or (not is_traced(known) and not np.all(known)):
            raise ValueError(
                f"the policy chooses among {self.shape[0]} labels from {int(self.low)} on, so the actions must be some "
                f"of those: {self._list()}."
            )
        # a label that it does not have makes everything NaN, which no certificate survives
        return _normalised(jnp.where(known, log_prob[jnp.clip(place, 0, self.shape[0] - 1)], jnp.nan))

    def _list(self) -> str:
        return f"Finite({self.shape[0]})"

    def _of_cells(self, grid: Grid, mean: Array, sd: Array) -> Array:
        """Each point has the probability of its cell; the outermost cells have all that lies beyond."""
        if len(grid.axes) != len(self.low):
            raise ValueError(f"the policy acts with {len(self.low)} numbers, but the grid has {len(grid.axes)} axes.")
        whole = jnp.zeros(1)
        for i, axis in enumerate(grid.axes):
            edges = (axis[1:] + axis[:-1]) / 2
            side = OwnDistribution(self.kind, None, (2, 1), self.low[i], self.high[i])
            z = (side.inner(edges) - mean[i]) / sd[i]
            if self.kind == "clipped":  # what is cut to a limit lies there, in the cell of the limit
                z = jnp.where(edges >= self.high[i], jnp.inf, jnp.where(edges < self.low[i], -jnp.inf, z))
            ends = jnp.concatenate([jnp.full(1, -jnp.inf), z, jnp.full(1, jnp.inf)])
            whole = (whole[:, None] + _log_between(ends[:-1], ends[1:])).ravel()
        return whole if grid.kept is None else _normalised(whole[grid.kept])


def own_distribution(policy: Any) -> OwnDistribution:
    """The distribution that this policy has, or why it has none that a composer can use."""
    network = getattr(policy, "policy", policy)  # an algorithm has a policy; a policy is one
    name = type(policy).__name__
    space: Any = getattr(network, "action_space", None)
    has_values = callable(getattr(network, "q_net", None))
    has_actor = hasattr(getattr(network, "actor", None), "get_action_dist_params")
    if hasattr(space, "n") and hasattr(space, "start") and (has_values or hasattr(network, "get_distribution")):
        kind: Kind = "values" if has_values else "labels"
        first = np.asarray(int(space.start))
        return OwnDistribution(kind, network, (int(space.n),), first, first)
    if hasattr(space, "low") and (has_actor or hasattr(network, "get_distribution")):
        low, high = (np.asarray(end, dtype=float).ravel() for end in (space.low, space.high))
        kind = "squashed" if has_actor or network.squash_output else "clipped"
        return OwnDistribution(kind, network, (2, len(low)), low, high)
    raise ValueError(
        f"policy is a {name} with actions {space}: distribution='own' reads policies of Stable-Baselines3 for labels "
        "or for numbers between limits (PPO, A2C, SAC, DQN and their like). Give another one a spread instead."
    )


def _log_between(low: Array, high: Array) -> Array:
    """ln( Phi(high) - Phi(low) ), low < high, from the side on which the difference keeps its digits."""
    mirrored = low > 0
    low, high = jnp.where(mirrored, -high, low), jnp.where(mirrored, -low, high)
    above = log_ndtr(high)
    return above + jnp.log1p(-jnp.exp(log_ndtr(low) - above))


def _normalised(z: Array) -> Array:
    return z - logsumexp(z)
