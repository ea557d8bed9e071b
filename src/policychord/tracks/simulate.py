"""Groups simulated with given or estimated parameters: as synthetic tracks, and as what the estimates predict."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.stats import ks_2samp

from .._types import require_float64
from ..core.equilibrium import solve
from ..worlds.flock.measures import flock_spread, polarization
from ..worlds.flock.neighbours import unit
from .decisions import Cells, Decisions, marked
from .forces import Force, ForceSettings, Layout, NamedForces, World, absent_far, forces_of, see, to_body
from .gating import Theta, complete, gating_problem
from .motion import Motion, lengths
from .reading import Tracks, Trial

Gate = Literal["composed", "constant"]


class Group(NamedTuple):
    """A group that moved: at every decision its state, and the weights with their certified gap."""

    position: Float[np.ndarray, "time id 2"]
    velocity: Float[np.ndarray, "time id 2"]
    weights: Float[np.ndarray, "time id n"]
    gap: Float[np.ndarray, "time id"]


def simulate_group(
    given: Decisions,
    theta: Mapping[str, Any],
    start: tuple[np.ndarray, np.ndarray],
    steps: int,
    seed: int = 0,
    *,
    gate: Gate = "composed",
    forces: Mapping[str, Force] | None = None,
    settings: ForceSettings | None = None,
    marks: tuple[np.ndarray, np.ndarray] | None = None,
) -> Group:
    """A group that decides as `theta` says, from positions and velocities at the start.

    Each draws a change of velocity from its mixture of forces; velocity grows evenly until the next decision. With
    `gate="constant"` all decisions have the prior as weights. `marks` says where predator and leader are at every
    step, (steps, 2) each: they move as recorded, whatever the group does. Without it there are none.
    """
    require_float64()
    if forces is None:
        forces = forces_of(ForceSettings(forces=given.names) if settings is None else settings)
    nowhere = np.full((steps, 2), np.nan)
    moments = (
        jax.random.split(jax.random.key(seed), steps),
        *(jnp.asarray(absent_far(place), float) for place in marks or (nowhere, nowhere)),
    )
    begin = jnp.asarray(start[0], float), jnp.asarray(start[1], float)
    known = complete(given.names, theta)
    moved = _move_on(given.cells, known, given.layout, tuple(forces.items()), begin, moments, gate == "constant")
    return Group(*(np.asarray(part) for part in moved))


@eqx.filter_jit
def _move_on(
    cells: Cells, theta: Theta, layout: Layout, forces: NamedForces, start: Any, moments: Any, constant: bool
) -> tuple[Any, ...]:
    """State, weights and gap at every decision; `moments` has a random key and both marks for each."""

    def decide(world: World, i: Any, key: Any) -> Any:
        problem = gating_problem(cells, theta, see(layout, dict(forces), world, i))
        w: Any = jnp.exp(problem.log_prior)
        gap: Any = jnp.zeros(())
        if not constant:
            equilibrium = solve(problem)
            w, gap = equilibrium.weights, equilibrium.certificate.gap
        which, where = jax.random.split(key)
        cell = jax.random.categorical(which, jnp.log(jnp.maximum(problem.pi @ w, 1e-300)))
        # anywhere in the cell, or turning angles would be those of its middle
        change = cells.low[cell] + jax.random.uniform(where, (2,)) * cells.wide[cell]
        return change @ to_body(unit(world.velocity[i])) * layout.change, w, gap

    def step(carry: Any, now: Any) -> Any:
        position, velocity = carry
        key, predator, leader = now
        everybody = jnp.arange(len(position)), jax.random.split(key, len(position))
        world = World(position, velocity, predator, leader)
        change, w, gap = jax.vmap(partial(decide, world))(*everybody)
        later = velocity + change
        return (position + 0.5 * (velocity + later) * layout.every, later), (position, velocity, w, gap)

    return jax.lax.scan(step, start, moments)[1]


def blank_decisions(layout: Layout, cells: Cells, names: tuple[str, ...]) -> Decisions:
    """No decisions, but all that a simulation needs to know: forces, layout and cells."""
    none, pairs = np.zeros(0, int), np.zeros((0, 2))
    seen: Any = None
    return Decisions(names, layout, cells, seen, none, pairs, none, none, none, pairs, pairs, pairs, none, "", 1, 0.0)


def as_tracks(
    group: Group, layout: Layout, frames: int, *, noise: float = 0.0, gaps: float = 0.0, seed: int = 0
) -> Tracks:
    """A simulated group as if it had been filmed: `frames` from one decision to the next, with errors and gaps.

    `noise` is the sd of an error of positions, in lengths; `gaps` the share of positions that are missing, in
    stretches of up to five frames.
    """
    rng = np.random.default_rng(seed)
    p, v = group.position[:-1], group.velocity[:-1]
    change = np.diff(group.velocity, axis=0)
    time = np.arange(frames) / frames
    # velocity grows evenly between decisions
    paths = [p + (v * s + 0.5 * change * s**2) * layout.every for s in time]
    position = np.stack(paths, axis=1).reshape(-1, *p.shape[1:])
    position = position + noise * rng.normal(size=position.shape)
    total, count = position.shape[:2]
    for _ in range(int(gaps * total * count / 3)):
        begin, who = rng.integers(total), rng.integers(count)
        position[begin : begin + rng.integers(1, 6), who] = np.nan
    trial = Trial("0", tuple(str(i) for i in range(count)), position)
    return Tracks("simulated", (trial,), frames / layout.every, "units", ())


# --------------------------------------------------------------------------- what the estimates predict


class Predicted(NamedTuple):
    """One measure of the data and of simulated groups, and how far apart their distributions are."""

    name: str
    data: Float[np.ndarray, " a"]
    simulated: Float[np.ndarray, " b"]
    distance: float  # of Kolmogorov and Smirnov: the largest difference of the two distributions
    inside: float  # where the median of the data lies among the simulated values, from 0 to 1


def predict(
    motion: Motion,
    given: Decisions,
    theta: Mapping[str, Any],
    settings: ForceSettings,
    *,
    groups: int = 10,
    seconds: float = 5.0,
    seed: int = 0,
    own: Mapping[str, Force] | None = None,
) -> tuple[Predicted, ...]:
    """Let groups start where the data were at some moments, and compare the next seconds of both.

    Polarization and spread of the group, speeds, and turning (the angle of the heading from one decision to the next).
    """
    steps = max(2, round(seconds / given.layout.every))
    forces, data, simulated = forces_of(settings, own), [], []
    for number, (index, frame) in enumerate(_moments(motion, given, steps, groups, seed)):
        trial = motion.trials[index]
        rows = frame + given.step * np.arange(steps)
        there = np.unique(given.individual[(given.trial == index) & (given.frame == frame)])
        stays = there[np.isfinite(trial.velocity[rows][:, there]).all(axis=(0, 2))]
        if len(stays) < 2:
            continue
        p, v = trial.position[rows][:, stays], trial.velocity[rows][:, stays]
        marks = marked(trial, rows, settings.predator), marked(trial, rows, settings.leader)
        group = simulate_group(given, theta, (p[0], v[0]), steps, seed + number, forces=forces, marks=marks)
        data.append(_measured(p, v))
        simulated.append(_measured(group.position, group.velocity))
    if not data:
        raise ValueError(f"no moment has two individuals that are followed for {seconds:g} s: ask for fewer seconds.")
    return tuple(_compared(name, *([group[name] for group in groups] for groups in (data, simulated)))
                 for name in data[0])  # fmt: skip


def _compared(name: str, data: list[np.ndarray], simulated: list[np.ndarray]) -> Predicted:
    a, b = np.concatenate(data), np.concatenate(simulated)
    return Predicted(name, a, b, float(ks_2samp(a, b, method="asymp").statistic), float((b < np.median(a)).mean()))


def _moments(motion: Motion, given: Decisions, steps: int, groups: int, seed: int) -> list[tuple[int, int]]:
    """Frames at which simulated groups start: some of those with decisions and enough time left."""
    pairs = np.unique(np.stack([given.trial, given.frame], axis=1), axis=0)
    frames = np.array([len(trial.position) for trial in motion.trials])
    pairs = pairs[pairs[:, 1] + steps * given.step < frames[pairs[:, 0]]]
    order = np.random.default_rng(seed).permutation(len(pairs))[:groups]
    return [(trial, frame) for trial, frame in pairs[np.sort(order)].tolist()]


def _measured(position: np.ndarray, velocity: np.ndarray) -> dict[str, np.ndarray]:
    angle = np.arctan2(velocity[..., 1], velocity[..., 0])
    turn = np.abs((np.diff(angle, axis=0) + np.pi) % (2 * np.pi) - np.pi)
    return {
        "polarization": polarization(velocity[None])[0],
        "spread": flock_spread(position[None])[0],
        "speed": lengths(velocity),
        "turning (rad)": turn.ravel(),
    }
