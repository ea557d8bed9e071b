"""Groups that move by known rules, as tracks: to try the commands with, and to measure how often a verdict is right.

The rules are written here once more, in NumPy and on their own: nothing is shared with the forces that are fitted, so a
mistake of these does not cancel. Lengths are about one body, the usual speed is one. An individual's acceleration is
(1 - speed) heading / relaxation + sum_a k_a(situation, time) force_a + white noise, unless the kind says otherwise.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from .reading import Tracks, Trial

RATE = 20.0  # frames a second
RELAXATION = 0.5  # s
NOISE = 0.6  # of velocity, in a second
STRENGTH = 1.6  # of a force, in speeds a second
SEPARATION, ALIGNMENT, COHESION = 1.0, 3.0, 12.0  # radii
DISH = 5.0  # radius
TOGETHER = 7.5  # s after which all change their rule
SWAPS = 2.0  # a second
TURN_NOISE = 0.8  # rad in a second, of walkers

Weights = Float[np.ndarray, "id 3"]  # of separation, alignment and cohesion


class _Scene(NamedTuple):
    """What everybody could react to at one moment."""

    force: Float[np.ndarray, "id 3 2"]  # separation, alignment, cohesion
    nearest: Float[np.ndarray, " id"]
    company: Float[np.ndarray, " id"]  # how many within 1.5
    centre: Float[np.ndarray, " id"]  # distance to the group's centre, in mean distances
    time: float


class Kind(NamedTuple):
    """A rule with a name: whether the weights of its social forces change, and how it moves."""

    changes: bool
    description: str
    run: Callable[[np.random.Generator, int, int], Float[np.ndarray, "frame id 2"]]


def simulate_kind(kind: str, *, seed: int = 0, individuals: int = 10, seconds: float = 45.0) -> Tracks:
    """Tracks of one group that moves by the rule `kind`, a name in `KINDS`, at 20 frames a second."""
    if kind not in KINDS:
        raise ValueError(f"kind = {kind!r}: use one of {', '.join(KINDS)}.")
    if individuals < 2 or seconds < 1:
        raise ValueError(f"individuals = {individuals}, seconds = {seconds:g}: two or more, for a second or more.")
    rng = np.random.default_rng([seed, sorted(KINDS).index(kind)])
    position = KINDS[kind].run(rng, individuals, round(seconds * RATE))
    return Tracks(kind, (Trial(str(seed), tuple(map(str, range(individuals))), position),), RATE, "units", ())


def _unit(vector: np.ndarray) -> np.ndarray:
    length = np.linalg.norm(vector, axis=-1, keepdims=True)
    return np.divide(vector, length, out=np.zeros_like(vector), where=length > 0)


def _scene(p: np.ndarray, v: np.ndarray, time: float) -> _Scene:
    offset = p[None] - p[:, None]
    distance = np.linalg.norm(offset, axis=-1) + np.where(np.eye(len(p)), np.inf, 0.0)
    heading, toward = _unit(v), _unit(offset)

    def mean(values: np.ndarray, among: np.ndarray) -> np.ndarray:
        return np.einsum("ij,ijk->ik", among, values) / np.maximum(among.sum(axis=1, keepdims=True), 1)

    near = np.clip(1 - distance / SEPARATION, 0, None)
    seen = (distance < ALIGNMENT).astype(float)
    aligned = mean(np.broadcast_to(heading, toward.shape), seen) - heading * seen.any(axis=1, keepdims=True)
    cohere = _unit(mean(offset, (distance < COHESION).astype(float)))
    pushed = -_unit(np.einsum("ij,ijk->ik", near, toward))
    middle = np.linalg.norm(p - p.mean(axis=0), axis=1)
    return _Scene(np.stack([pushed, aligned, cohere], axis=1), distance.min(axis=1), (distance < 1.5).sum(axis=1),
                  middle / middle.mean(), time)  # fmt: skip


def _begin(rng: np.random.Generator, count: int, radius: float = 2.0) -> tuple[np.ndarray, np.ndarray]:
    angle, place = rng.uniform(0, 2 * np.pi, (2, count))
    p = radius * np.sqrt(rng.uniform(0, 1, (count, 1))) * np.stack([np.cos(place), np.sin(place)], axis=-1)
    return p, np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def _by_sum(weights: Callable[[_Scene], Weights], noise: float = NOISE) -> Callable[..., np.ndarray]:
    """Individuals that follow the weighted sum of the forces."""

    def run(rng: np.random.Generator, count: int, frames: int) -> np.ndarray:
        (p, v), path, dt = _begin(rng, count), [], 1 / RATE
        for frame in range(-200, frames):  # ten seconds until the start is forgotten
            scene = _scene(p, v, frame * dt)
            push = np.einsum("ia,iak->ik", weights(scene), scene.force)
            own = _unit(v) - v
            v = v + (own / RELAXATION + push) * dt + noise * np.sqrt(dt) * rng.normal(size=v.shape)
            p = p + v * dt
            path.append(p)
        return np.stack(path[200:])

    return run


def _constant(scene: _Scene) -> Weights:
    return np.tile([1.0, 0.6, 0.5], (len(scene.nearest), 1)) * STRENGTH


def _either(first: np.ndarray, one: list[float], other: list[float]) -> Weights:
    return np.where(first[:, None], one, other) * STRENGTH


def _zones(scene: _Scene) -> Weights:
    return _either(scene.nearest < SEPARATION, [1.5, 0, 0], [0, 1.0, 0.6])


def _company(scene: _Scene) -> Weights:
    return _either(scene.company < 2, [0.8, 0, 1.0], [0.8, 1.2, 0])


def _crowded(scene: _Scene) -> Weights:
    return _either(scene.company > 2, [1.5, 0, 0], [0, 0.8, 0.8])


def _edge(scene: _Scene) -> Weights:
    return _either(scene.centre > 1, [0.6, 0, 1.2], [0.6, 1.2, 0])


def _together(scene: _Scene) -> Weights:
    swarm = (scene.time // TOGETHER) % 2 == 0
    return _either(np.full(len(scene.nearest), swarm), [0.6, 1.2, 0.2], [1.2, 0, 0.8])


def _mixture(rng: np.random.Generator, count: int, frames: int) -> np.ndarray:
    """One force at a time, drawn again every quarter of a second with the same odds."""
    chosen: dict[int, np.ndarray] = {}

    def weights(scene: _Scene) -> Weights:
        moment = int(scene.time * 4 + 1e4)
        if moment not in chosen:
            chosen.clear()
            chosen[moment] = rng.choice(4, count, p=[0.25, 0.25, 0.25, 0.25])
        return 2.5 * STRENGTH * np.eye(4)[chosen[moment]][:, :3]

    return _by_sum(weights, 0.4)(rng, count, frames)


def _walk(rng: np.random.Generator, count: int, frames: int, radius: float = 0.0) -> np.ndarray:
    """Correlated random walks, turned inward near the wall of a dish if there is one."""
    (p, v), path, dt = _begin(rng, count, radius or 2.0), [], 1 / RATE
    angle, speed = np.arctan2(v[:, 1], v[:, 0]), np.ones(count)
    for _ in range(frames):
        angle = angle + TURN_NOISE * np.sqrt(dt) * rng.normal(size=count)
        if radius:
            far = np.linalg.norm(p, axis=1)
            inward = np.arctan2(-p[:, 1], -p[:, 0])
            turn = (inward - angle + np.pi) % (2 * np.pi) - np.pi
            angle = angle + 6.0 * dt * np.clip(far / radius - 0.75, 0, None) / 0.25 * np.sign(turn)
        speed = speed + (1 - speed) * dt + 0.25 * np.sqrt(dt) * rng.normal(size=count)
        p = p + speed[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1) * dt
        path.append(p)
    return np.stack(path)


def _burst(social: bool) -> Callable[..., np.ndarray]:
    """Bursts at random moments, each with a turn, and coasting between them."""

    def run(rng: np.random.Generator, count: int, frames: int) -> np.ndarray:
        (p, v), path, dt = _begin(rng, count), [], 1 / RATE
        left = np.zeros(count)  # s of the present burst
        aim = _unit(v)
        for frame in range(frames):
            starts = (left <= 0) & (rng.uniform(size=count) < 1.8 * dt)
            turn = 0.7 * rng.normal(size=count)
            heading = np.stack([np.cos(turn) * aim[:, 0] - np.sin(turn) * aim[:, 1],
                                np.sin(turn) * aim[:, 0] + np.cos(turn) * aim[:, 1]], axis=-1)  # fmt: skip
            if social:
                force = _scene(p, v, frame * dt).force
                heading = _unit(heading + 0.8 * np.einsum("a,iak->ik", [1.0, 0.6, 0.5], force))
            aim = np.where(starts[:, None], heading, aim)
            left = np.where(starts, 0.12, left - dt)
            v = v + np.where(left[:, None] > 0, 9.0 * aim, 0.0) * dt - 1.3 * v * dt
            p = p + v * dt + 0.003 * rng.normal(size=p.shape)
            path.append(p)
        return np.stack(path)

    return run


def _stop_and_go(rng: np.random.Generator, count: int, frames: int) -> np.ndarray:
    """Independent walkers that rest now and then."""
    (p, v), path, dt = _begin(rng, count), [], 1 / RATE
    angle, goes = np.arctan2(v[:, 1], v[:, 0]), rng.uniform(size=count) < 0.6
    speed = goes.astype(float)
    for _ in range(frames):
        changes = rng.uniform(size=count) < np.where(goes, 0.5, 0.8) * dt
        angle = angle + np.where(changes & ~goes, 1.2, TURN_NOISE * np.sqrt(dt)) * rng.normal(size=count)
        goes = goes ^ changes
        speed = speed + (goes - speed) * dt / 0.2
        p = p + speed[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1) * dt
        path.append(p + 0.002 * rng.normal(size=p.shape))
    return np.stack(path)


def _vicsek(rng: np.random.Generator, count: int, frames: int) -> np.ndarray:
    """Constant speed in a box without borders of its own: everybody takes the neighbours' mean heading, with noise."""
    (p, v), path, dt = _begin(rng, count), [], 1 / RATE
    angle = np.arctan2(v[:, 1], v[:, 0])
    for _ in range(frames):
        near = np.linalg.norm(p[None] - p[:, None], axis=-1) < ALIGNMENT
        mean = np.arctan2(near @ np.sin(angle), near @ np.cos(angle))
        turn = (mean - angle + np.pi) % (2 * np.pi) - np.pi
        angle = angle + 2.0 * dt * turn + 0.9 * np.sqrt(dt) * rng.normal(size=count)
        p = p + np.stack([np.cos(angle), np.sin(angle)], axis=-1) * dt
        path.append(p)
    return np.stack(path)


def _swapped(rng: np.random.Generator, count: int, frames: int) -> np.ndarray:
    """The constant sum, with the identities of near pairs exchanged twice a second."""
    path = _by_sum(_constant)(rng, count, frames)
    for frame in np.flatnonzero(rng.uniform(size=frames) < SWAPS / RATE):
        i = int(rng.integers(count))
        distance = np.linalg.norm(path[frame] - path[frame, i], axis=1)
        j = int(np.argsort(distance)[1])
        path[frame:, [i, j]] = path[frame:, [j, i]]
    return path


def _ours(gate: Any) -> Callable[..., np.ndarray]:
    """Individuals of this library, whose weights solve a gating problem at every decision, or stay at its prior."""

    def run(rng: np.random.Generator, count: int, frames: int) -> np.ndarray:
        from ..worlds.flock.neighbours import Zones
        from .decisions import cells_of
        from .forces import USUAL, Layout
        from .simulate import as_tracks, blank_decisions, simulate_group

        layout = Layout(Zones(SEPARATION, ALIGNMENT, COHESION, 320.0), None, 1.0, 0.15, 0.25, (), None, 24.0)
        cells = cells_of(1.3 * np.random.default_rng(0).standard_t(4, size=(5000, 2)))
        theta = {"eps": 0.2, "prior": [0.25] * 4, "gain": [3.0, 4.0, 4.0, 4.0], "sd": 0.5, "tail": 8.0}
        steps, each = -(-frames // 5) + 1, 5
        group = simulate_group(blank_decisions(layout, cells, USUAL), theta, _begin(rng, count), steps,
                               int(rng.integers(2**31)), gate=gate)  # fmt: skip
        return as_tracks(group, layout, each, noise=0.002, seed=int(rng.integers(2**31))).trials[0].position[:frames]

    return run


def _grazers(rng: np.random.Generator, count: int, frames: int) -> np.ndarray:
    """Independent walkers whose speed changes slowly between resting and running."""
    (p, v), path, dt = _begin(rng, count), [], 1 / RATE
    angle, drive = np.arctan2(v[:, 1], v[:, 0]), rng.normal(size=count)
    for _ in range(frames):
        drive = drive - 0.4 * drive * dt + 0.9 * np.sqrt(dt) * rng.normal(size=count)
        speed = np.exp(0.8 * drive) / (1 + np.exp(-4 * drive))
        angle = angle + 0.6 * np.sqrt(dt) * rng.normal(size=count)
        p = p + speed[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1) * dt
        path.append(p + 0.002 * rng.normal(size=p.shape))
    return np.stack(path)


def _followers(rng: np.random.Generator, count: int, frames: int) -> np.ndarray:
    """The first one walks on its own; the others follow the constant sum, and it among their neighbours."""
    lead = _walk(rng, 1, frames + 200)

    def place(frame: int, p: np.ndarray) -> np.ndarray:
        return np.concatenate([lead[frame + 200], p[1:]])

    (p, v), path, dt = _begin(rng, count), [], 1 / RATE
    for frame in range(-200, frames):
        p = place(frame, p)
        scene = _scene(p, v, frame * dt)
        toward = _unit(p[:1] - p) * np.minimum(np.linalg.norm(p[:1] - p, axis=1, keepdims=True), 1.0)
        push = np.einsum("ia,iak->ik", _constant(scene), scene.force) + STRENGTH * toward
        v = v + ((_unit(v) - v) / RELAXATION + push) * dt + NOISE * np.sqrt(dt) * rng.normal(size=v.shape)
        v[0] = (lead[min(frame + 201, len(lead) - 1), 0] - lead[frame + 200, 0]) / dt
        p = p + v * dt
        path.append(p)
    return np.stack(path[200:])


def _slower_in_crowds(rng: np.random.Generator, count: int, frames: int) -> np.ndarray:
    """The constant sum, with a preferred speed that falls with the number of near neighbours."""
    (p, v), path, dt = _begin(rng, count), [], 1 / RATE
    for frame in range(-200, frames):
        scene = _scene(p, v, frame * dt)
        wanted = (1.4 - 0.15 * np.minimum(scene.company, 6))[:, None]
        push = np.einsum("ia,iak->ik", _constant(scene), scene.force)
        v = v + ((wanted * _unit(v) - v) / RELAXATION + push) * dt + NOISE * np.sqrt(dt) * rng.normal(size=v.shape)
        p = p + v * dt
        path.append(p)
    return np.stack(path[200:])


def _alarm(scene: _Scene) -> Weights:
    """Every twelve seconds an alarm of three: all bunch and align, and separation is forgotten."""
    return _either(np.full(len(scene.nearest), scene.time % 12 < 3), [0, 1.5, 1.2], [1.0, 0.4, 0.3])


KINDS: Mapping[str, Kind] = {
    "walkers": Kind(False, "independent walkers", _walk),
    "burst-and-coast": Kind(False, "independent swimmers that burst and coast", _burst(False)),
    "stop-and-go": Kind(False, "independent walkers that rest", _stop_and_go),
    "dish": Kind(False, "independent walkers in a dish with soft walls", partial(_walk, radius=DISH)),
    "sum": Kind(False, "a constant sum of separation, alignment and cohesion", _by_sum(_constant)),
    "mixture": Kind(False, "one force at a time with constant odds", _mixture),
    "swaps": Kind(False, "the constant sum, with identities exchanged twice a second", _swapped),
    "vicsek": Kind(False, "Vicsek: the neighbours' mean heading, with noise", _vicsek),
    "social-bursts": Kind(False, "burst and coast, each burst aimed by a constant sum", _burst(True)),
    "ours-constant": Kind(False, "this library's individuals with constant weights", _ours("constant")),
    "ours": Kind(True, "this library's individuals, whose weights solve a gating problem", _ours("composed")),
    "zones": Kind(True, "Couzin: repulsion has priority", _by_sum(_zones)),
    "company": Kind(True, "cohesion while isolated, alignment in company", _by_sum(_company, 0.8)),
    "crowded": Kind(True, "separation in a crowd, else alignment and cohesion", _by_sum(_crowded)),
    "edge": Kind(True, "cohesion at the group's edge, alignment inside", _by_sum(_edge)),
    "together": Kind(True, "all change their rule at once, every 7.5 s, for no reason that can be seen",
                     _by_sum(_together)),
    "grazers": Kind(False, "independent walkers between resting and running", _grazers),
    "followers": Kind(False, "a constant sum, and a leader among them who walks on its own", _followers),
    "slower-in-crowds": Kind(False, "a constant sum, at a speed that falls with density", _slower_in_crowds),
    "alarm": Kind(True, "all bunch and align in an alarm of three seconds, every twelve", _by_sum(_alarm)),
}  # fmt: skip
