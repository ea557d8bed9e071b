"""Members that learn while they are primitives, against members that learn alone: `python -m benchmarks.collective`.

Each seed draws members that know nothing.
together     they act as one group and learn, by the gate's signal, from what the group meets
alone        every member acts by itself and learns from what it meets itself, from as many decisions as the group has
same data    the same, from what the learning group met: its situations without the gate's signal
All are compared in the same episodes. Alone or together, members have the same numbers to begin with.
"""

import argparse
import json
from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.ndimage import map_coordinates

import policychord as pc
from policychord import gym, inference
from policychord.loops.contest import _half_interval
from policychord.models import linearise, riccati
from policychord.runs.compiled import keep_programs
from policychord.worlds import Pendulum, PendulumState, upright

from .tables import keep

ROUNDS, STARTS = 4, 3
DECISIONS = 500  # of every round
JUDGED = 1_000_000  # the first of the episodes in which all are compared
Meet = Callable[[pc.Composer, int], inference.Observations]


class World(NamedTuple):
    """How members are drawn, what the group's model is, and how agents act and are judged there."""

    model: pc.Cost
    actions: Any
    eps: float
    members: Mapping[str, Callable[[np.random.Generator], Any]]  # by what they can do
    certain: tuple[Any, ...]  # one primitive for each of some actions: what the model can do by itself
    meet: Meet  # `DECISIONS` of an agent, for `learn`
    score: Callable[[pc.Composer], float]  # mean return

    def agent(self, parts: Any, **changes: Any) -> pc.Composer:
        return pc.Composer(parts, self.model, self.actions, self.eps, **changes)


# ------------------------------------------------------------------------------------------------- a pendulum

PENDULUM, DISCOUNT, CELLS = Pendulum(), 0.98, 81


def swung(state: PendulumState, torque: Any, k: Any) -> PendulumState:
    return PENDULUM.move(state, torque[0])


def effort(state: PendulumState, torque: Any, k: Any) -> Any:
    return 0.001 * torque[0] ** 2


def value() -> Callable[..., Any]:
    """What a state costs from there on, by value iteration on a grid of states."""
    axes = np.linspace(-np.pi, np.pi, CELLS), np.linspace(-8.0, 8.0, CELLS)
    states = PendulumState(*(jnp.asarray(a)[..., None] for a in np.meshgrid(*axes, indexing="ij")))
    torques = jnp.linspace(-2.0, 2.0, 21)[None]
    stage = upright(states.angle) ** 2 + 0.1 * states.velocity**2 + effort(states, torques, 0)
    following = swung(states, torques, 0)

    def look_up(values: Any, state: PendulumState) -> Any:
        cells = [(upright(state.angle) + np.pi) * (CELLS - 1) / (2 * np.pi), (state.velocity + 8.0) * (CELLS - 1) / 16]
        return map_coordinates(values, cells, order=1, mode="nearest")

    def sweep(_: Any, values: Any) -> Any:
        return jnp.min(stage + DISCOUNT * look_up(values, following), axis=-1)

    values = jax.jit(lambda: jax.lax.fori_loop(0, 400, sweep, jnp.zeros((CELLS, CELLS))))()
    return lambda state, k: DISCOUNT * look_up(values, state)


def push(state: PendulumState, k: Any, *, gain: Any) -> Any:
    return gain


def linear(state: PendulumState, k: Any, *, gain: Any) -> Any:
    return (gain @ jnp.stack([upright(state.angle), state.velocity]))[None]


def switching(state: PendulumState, k: Any, *, gain: Any) -> Any:
    """Linear near the top, and along the velocity elsewhere: it gets up alone, and too fast to stay."""
    near = jnp.abs(upright(state.angle)) < 0.85
    return jnp.where(near, gain[:2] @ jnp.stack([upright(state.angle), state.velocity]), gain[2] * state.velocity)[None]


def torque(act: Callable[..., Any], numbers: int, rng: np.random.Generator) -> pc.Gaussian:
    return pc.Gaussian(eqx.Partial(act, gain=jnp.asarray(rng.normal(size=numbers))), 0.3, outside="tail")


def pendulum() -> World:
    """The library's pendulum; the model knows what a state costs from there on."""

    def meet(agent: pc.Composer, number: int) -> inference.Observations:
        trace = pc.rollout(agent, PENDULUM, steps=100, episodes=range(5 * number, 5 * number + DECISIONS // 100))
        return inference.from_trace(trace, PENDULUM)

    def score(agent: pc.Composer) -> float:
        played = pc.rollout(agent, PENDULUM, steps=200, episodes=range(JUDGED, JUDGED + 40))
        return float(played.total_reward.mean())

    able = {"constant": (push, 1), "linear": (linear, 2), "switching": (switching, 3)}
    certain = [pc.Gaussian(np.array([torque]), 0.3, outside="tail") for torque in (-2.0, -1.0, 0.0, 1.0, 2.0)]
    return World(
        pc.Cost(effort, predict=swung, cost_to_go=value()), pc.Grid(-2.0, 2.0, 41, saturates=True), 0.05,
        {name: partial(torque, *of) for name, of in able.items()}, tuple(certain), meet, score,
    )  # fmt: skip


# ------------------------------------------------------------------------------------------ Gymnasium's CartPole

WORTH = 30.0  # of the quadratic cost: in nats, or chance would choose


def driven(state: Any, label: Any, k: Any) -> Any:
    """The equations of CartPole-v1, for a push to the left (0) or to the right (1)."""
    place, velocity, angle, spin = state
    pull = (20.0 * label - 10.0 + 0.05 * spin**2 * jnp.sin(angle)) / 1.1
    turn = (9.8 * jnp.sin(angle) - jnp.cos(angle) * pull) / (0.5 * (4.0 / 3.0 - 0.1 * jnp.cos(angle) ** 2 / 1.1))
    faster = pull - 0.05 * turn * jnp.cos(angle) / 1.1
    return jnp.stack([place + 0.02 * velocity, velocity + 0.02 * faster, angle + 0.02 * spin, spin + 0.02 * turn])


def chances(state: Any, k: Any, *, gain: Any) -> Any:
    return jnp.array([0.0, 1.0]) * (10.0 * gain[:4] @ state + gain[4])


def cart_pole() -> World:
    """CartPole-v1 as it is installed; the model has its equations and the cost-to-go of a linear regulator."""
    A, middle = linearise(driven, np.zeros(4), 0.5)
    P = riccati(A, middle[:, None] / 10.0, np.diag([1.0, 0.1, 10.0, 0.1]), [[0.01]]).cost_to_go

    def meet(agent: pc.Composer, number: int) -> inference.Observations:
        trace = gym.play(agent, "CartPole-v1", seeds=range(60 * number, 60 * number + 60), steps=100)
        lived = np.cumsum(trace.alive).reshape(trace.alive.shape) <= DECISIONS  # episode by episode
        rows = trace.alive & lived
        return inference.observations(trace.state.observation[rows].astype(float), trace.action[rows])

    def score(agent: pc.Composer) -> float:
        return float(gym.play(agent, "CartPole-v1", seeds=range(JUDGED, JUDGED + 20)).total_reward.mean())

    def constant(rng: np.random.Generator) -> pc.Table:
        return pc.Table(rng.dirichlet([5.0, 5.0]))

    def linear(rng: np.random.Generator) -> pc.Categorical:
        return pc.Categorical(eqx.Partial(chances, gain=jnp.asarray(0.3 * rng.normal(size=5))))

    certain = (pc.Table([1.0, 0.0]), pc.Table([0.0, 1.0]))
    model = pc.Cost(predict=driven, cost_to_go=WORTH * P)
    return World(model, pc.Finite(2), 0.05, {"constant": constant, "linear": linear}, certain, meet, score)


# --------------------------------------------------------------------------------------------------- comparison

# world, what its members can do, how many, whether they are two groups that are members of one
CELLS_OF = {
    "pendulum, 2 constant": (pendulum, "constant", 2, False),
    "pendulum, 2 linear": (pendulum, "linear", 2, False),
    "pendulum, 4 linear": (pendulum, "linear", 4, False),
    "pendulum, 2 groups of 2 linear": (pendulum, "linear", 4, True),
    "pendulum, 2 switching": (pendulum, "switching", 2, False),
    "CartPole-v1, 2 constant": (cart_pole, "constant", 2, False),
    "CartPole-v1, 2 linear": (cart_pole, "linear", 2, False),
}


def group(world: World, kind: str, count: int, nested: bool, seed: int) -> pc.Composer:
    """Members that know nothing."""
    rng = np.random.default_rng(seed)
    parts = {f"member {i}": world.members[kind](rng) for i in range(count)}
    if nested:
        pairs = [dict(list(parts.items())[i : i + 2]) for i in range(0, count, 2)]
        return world.agent({f"group {i}": world.agent(pair) for i, pair in enumerate(pairs)})
    return world.agent(parts)


def improve(agent: pc.Composer, free: tuple[str, ...], meet: Meet, rounds: int = ROUNDS) -> pc.Composer:
    return pc.learn(agent, "energy", env=meet, rounds=rounds, free=free, starts=STARTS).agent


def measure(world: World, kind: str, count: int, nested: bool, seed: int) -> dict[str, Any]:
    """Mean returns of one seed."""
    begin, seen = group(world, kind, count, nested, seed), []
    free = ("log_rows",) if isinstance(begin.primitives[0], pc.Table) else ("gain",)

    def watched(agent: pc.Composer, number: int) -> inference.Observations:
        seen.append(world.meet(agent, number))
        return seen[-1]

    together = improve(begin, free, watched)
    met = jax.tree.map(lambda *rows: np.concatenate(rows), *seen)
    own, same = {}, {}
    for name, member in zip(begin.names, begin.primitives, strict=True):
        single = member if isinstance(member, pc.Composer) else begin.replace(primitives={name: member})
        lone, shown = improve(single, free, world.meet), improve(single, free, lambda agent, number: met, 1)
        own[name], same[name] = ((each if isinstance(member, pc.Composer) else each.primitives[0])
                                 for each in (lone, shown))  # fmt: skip
    alone = [world.score(one if isinstance(one, pc.Composer) else begin.replace(primitives={name: one}))
             for name, one in own.items()]  # fmt: skip
    return {
        "before": world.score(begin), "together": world.score(together), "best alone": max(alone),
        "alone": world.score(begin.replace(primitives=own)), "same data": world.score(begin.replace(primitives=same)),
        "gains": [np.asarray(leaf).tolist() for leaf in jax.tree.leaves(eqx.filter(together.primitives, eqx.is_array))],
    }  # fmt: skip


def paired(rows: list[dict[str, Any]], rival: str) -> tuple[float, float, int, int]:
    """Mean gain of learning together over a rival, half its 95% interval, wins, losses."""
    gain = np.array([row["together"] - row[rival] for row in rows])
    return float(gain.mean()), _half_interval(gain), int((gain > 0).sum()), int((gain < 0).sum())


def record(path: Path, rows: dict[str, Any]) -> None:
    """Keep the tables for the page: returns, and gains of learning together."""
    columns = {"world, members": "", "seeds": "d"} | dict.fromkeys(
        ("before", "best alone", "alone, then composed", "same data", "together", "model alone"), ".0f"
    )
    returns, gains = [], []
    for name, cell in rows.items():
        seeds = cell["seeds"]
        mean = [
            np.mean([row[key] for row in seeds]) for key in ("before", "best alone", "alone", "same data", "together")
        ]
        returns.append([name, len(seeds), *map(float, mean), cell["model alone"]])
        cells = []
        for rival in ("alone", "same data"):
            gain, half, wins, losses = paired(seeds, rival)
            cells.append(f"{gain:+.0f} ± {half:.0f} ({wins} to {losses})")
        gains.append([name, *cells])
    command = "python -m benchmarks.collective"
    keep(path, "returns", command, columns, returns)
    titles = ("world, members", "over learning alone", "over same data")
    keep(path, "gains", command, dict.fromkeys(titles, ""), gains)


def draw(rows: dict[str, Any], path: Path) -> None:
    """Returns of every seed, one panel for each world."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(9.0, 3.4), layout="constrained")
    worlds = {name.partition(",")[0]: None for name in rows}
    sizes = [sum(name.startswith(world) for name in rows) for world in worlds]
    panels = fig.subplots(1, len(worlds), width_ratios=sizes, squeeze=False)[0]
    for ax, world in zip(panels, worlds, strict=True):
        cells = {name.partition(", ")[2]: cell for name, cell in rows.items() if name.startswith(world)}
        for place, cell in enumerate(cells.values()):
            for shift, key, color in ((-0.25, "best alone", "C1"), (0.0, "alone", "C0"), (0.25, "together", "C2")):
                values = np.array([row[key] for row in cell["seeds"]])
                jitter = np.linspace(-0.08, 0.08, len(values))
                ax.plot(place + shift + jitter, values, ".", color=color, ms=4, alpha=0.6)
                ax.plot(place + shift + np.array([-0.1, 0.1]), [values.mean()] * 2, color=color, lw=2)
            ax.plot(place + np.array([-0.4, 0.4]), [cell["model alone"]] * 2, "k:", lw=1)
        ax.set_xticks(range(len(cells)), [name.replace(" of", "\nof") for name in cells], fontsize=8)
        ax.set(title=world, ylabel="mean return")
    labels = {"best member that learned alone": "C1", "learned alone, then composed": "C0", "learned together": "C2"}
    marks = [panels[0].plot([], [], "-", color=color, lw=2)[0] for color in labels.values()]
    marks.append(panels[0].plot([], [], "k:", lw=1)[0])
    fig.legend(
        marks, [*labels, "a primitive for each action"], loc="outside lower center", ncols=4, frameon=False, fontsize=8
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(path, dpi=150)


def main() -> None:
    """Measure what the file of results lacks; show, record and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--cells", nargs="*", default=list(CELLS_OF), help="which rows")
    parser.add_argument("--out", type=Path, default=Path("build/collective.json"), help="results; what it has is kept")
    parser.add_argument("--record", type=Path, help="keep the tables that a page shows")
    parser.add_argument("--figure", type=Path)
    given = parser.parse_args()
    pc.enable_x64()
    keep_programs()
    rows = json.loads(given.out.read_text()) if given.out.exists() else {}
    made: dict[Any, World] = {}
    for seed, name in product(range(given.seeds), given.cells):
        make, kind, count, nested = CELLS_OF[name]
        if len(rows.get(name, {"seeds": ()})["seeds"]) > seed:
            continue
        world = made[make] if make in made else made.setdefault(make, make())
        cell = rows.setdefault(name, {"seeds": [], "model alone": world.score(world.agent(list(world.certain)))})
        cell["seeds"].append(measure(world, kind, count, nested, seed))
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(json.dumps(rows))
    for name in given.cells:
        for rival in ("alone", "best alone", "same data"):
            gain, half, wins, losses = paired(rows[name]["seeds"], rival)
            print(f"{name}, over {rival}: {gain:+.0f} ± {half:.0f} ({wins} to {losses})", flush=True)
    if given.record:
        record(given.record, rows)
    if given.figure:
        draw(rows, given.figure)


if __name__ == "__main__":
    main()
