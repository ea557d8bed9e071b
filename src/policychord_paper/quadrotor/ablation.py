"""The LQR pair with the stabilising weight clamped after the impulse: what its recovery owes to that primitive."""

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from policychord.worlds import AbstractEnv, Spaces, Step, Variable
from policychord.worlds.quadrotor import (
    Flight,
    Quadrotor,
    QuadrotorSettings,
    QuadrotorState,
    agent_and_world,
    fly_episodes,
    roster,
)

CLAMPED_FOR = 2.0  # s from the decision after the impulse on: as long as the error is summed up
STIFF = 1e9  # a temperature at which weights are the prior's
NOTHING = 1e-300  # as a prior weight: zero to all digits
BATCH = 100  # episodes at once, as in other flights


class Clamped(NamedTuple):
    """One gate in the same weather: as it is, without its stabilising primitive after the impulse, and held."""

    free: Flight
    without: Flight  # the stabilising weight at zero
    held: Flight  # at its mean before the impulse, over all flights


class _Watched(NamedTuple):
    """What a controller sees, and the decisions since the impulse."""

    x: jax.Array
    previous_pitch: jax.Array
    since: jax.Array


class _Watching(AbstractEnv):
    """The drone's world, which tells when its impulse was."""

    world: Quadrotor
    variables: ClassVar[Mapping[str, Variable]] = Quadrotor.variables

    @property
    def path(self) -> jax.Array:
        return self.world.path

    def reset(self, key: Any) -> QuadrotorState:
        return self.world.reset(key)

    def step(self, key: Any, state: QuadrotorState, action: Any, k: Any) -> Step:
        return self.world.step(key, state, action, k)

    def observe(self, state: QuadrotorState) -> _Watched:
        return _Watched(*self.world.observe(state), state.time - state.impulse_time)

    def signals(self, state: QuadrotorState) -> jax.Array:
        return self.world.signals(state)

    def spaces(self) -> Spaces:
        return self.world.spaces()


class _Clamp(eqx.Module):
    """Temperature and prior that hold the stabilising weight at `level` for a while after the impulse, if `active`."""

    eps: jax.Array
    level: jax.Array
    active: jax.Array
    decisions: jax.Array

    def holds(self, view: _Watched) -> jax.Array:
        return (self.active > 0) & (view.since >= 1) & (view.since <= self.decisions)

    def temperature(self, view: _Watched, k: Any) -> jax.Array:
        return jnp.where(self.holds(view), STIFF, self.eps)

    def prior(self, view: _Watched, k: Any) -> jax.Array:
        level = jnp.where(self.holds(view), self.level, 0.5)
        return jnp.stack([level, 1.0 - level])


def fly_clamped(settings: QuadrotorSettings, name: str) -> Clamped:
    """The LQR pair with this gate: free, and with its stabilising weight clamped in two ways."""
    how = roster(settings)[name]
    assert how is not None
    agent, world = agent_and_world(settings, "lqr", name, how)
    watching: Any = _Watching(world)  # flies as the world that it watches
    decisions = jnp.asarray(round(CLAMPED_FOR / settings.dt))

    def fly(level: float, active: bool) -> Flight:
        clamp = _Clamp(jnp.asarray(how.eps), jnp.asarray(level), jnp.asarray(float(active)), decisions)
        clamped = agent.replace(eps=clamp.temperature, prior=clamp.prior)  # type: ignore[union-attr]
        size = min(settings.seeds, BATCH)
        batches = [
            fly_episodes(settings, clamped, watching, range(k, k + size)) for k in range(0, settings.seeds, size)
        ]
        return Flight(*(np.concatenate(parts)[: settings.seeds] for parts in zip(*batches, strict=True)))

    with jax.enable_x64(True):
        free = fly(0.5, active=False)
        before = np.arange(free.stabilising.shape[1]) < free.impulse_time[:, None]
        level = float(free.stabilising[before].mean()) if before.any() else 0.5
        flights = (free, fly(NOTHING, active=True), fly(level, active=True))
    return Clamped(*(flight._replace(states=flight.states[:1]) for flight in flights))
