"""Which flocks the study flies, how they are flown, and the record of all flights that claims and figures read."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ...agent import Composer
from ...core.equilibrium import solve
from ...core.objective import Problem
from ...envs.flock import Flock, FlockState, Start, in_square
from ...envs.neighbours import View
from ...loops import Carry, Labels, Record, Trace, rollout, step, step_in_turn, streams_of
from ...loops.trace import trace_of
from ...population import Passive, Population, Stack, stack
from .agents import FORCES, boid, flock, world
from .measures import Measures, Numbers, measure
from .settings import TEMPERATURES, FlockSettings, FlockStudySettings, scenario

T = TypeVar("T")
MOMENTS = 20  # of a flight, at which the collision term is weighed
AT_ONCE = 10  # seeds of three temperatures that fit into one batch
UNIFORM = 1e9  # the temperature at which weights are 1/3 to six digits or more: fixed weights without another program


class Flight(NamedTuple):
    """One experiment: its settings, the measures of all seeds, and the first seed in full."""

    settings: FlockSettings
    measured: Measures
    shown: Trace


class Leaders(NamedTuple, Generic[T]):
    """40 boids, of which so many know the goal."""

    none: T
    tenth: T
    fifth: T
    everyone: T


class Leaderless(NamedTuple, Generic[T]):
    """The paper's boids, and boids whose weights stay at 1/3."""

    gated: T
    fixed: T


class Milling(NamedTuple, Generic[T]):
    """From the rotating ring of the scripts and from the random start of the text, with the collision term or not."""

    ring: T
    no_term: T
    random_start: T
    random_no_term: T


class Temperatures(NamedTuple, Generic[T]):
    """The same flock with leaders at each of TEMPERATURES."""

    cold: T
    middle: T
    hot: T


class Forms(NamedTuple, Generic[T]):
    """Followers of a model of the literature, each form with 6 leaders and with none."""

    released: tuple[T, T]  # with the constants of the released scripts
    original: tuple[T, T]  # in the form of their own papers


class Composed(NamedTuple, Generic[T]):
    """Flocks of composed boids alone."""

    leaders: Leaders[T]
    leaderless: Leaderless[T]
    milling: Milling[T]
    temperatures: Temperatures[T]


class Flocks(NamedTuple, Generic[T]):
    """All flights of the study by theme; T is what is known of a flight: its settings, or what it gave."""

    leaders: Leaders[T]
    leaderless: Leaderless[T]
    milling: Milling[T]
    temperatures: Temperatures[T]
    couzin: Forms[T]
    cucker_smale: Forms[T]
    vicsek: Forms[T]
    in_turn: Composed[T]  # the first four themes with boids that move one after another, as in the scripts


Evidence = Flocks[Flight]

# The names under which flights are stored as data, in the order of their fields.
COMPOSED = (
    "leaders-0", "leaders-10", "leaders-20", "leaders-100",
    "polarization", "polarization-fixed-weights",
    "milling", "milling-no-collision-term", "milling-random-start", "milling-random-start-no-collision-term",
    *(f"temperature-{eps:g}" for eps in TEMPERATURES),
)  # fmt: skip
NAMES = (
    *COMPOSED,
    *(
        f"{model}-{form}{alone}"
        for model in ("couzin", "cucker-smale", "vicsek")
        for form in Forms._fields
        for alone in ("", "-no-leaders")
    ),
    *(f"{name}-in-turn" for name in COMPOSED),
)


def by_model(flocks: Flocks[T]) -> dict[str, Forms[T]]:
    """The flights with followers of the literature, by the name of their model."""
    return {"Couzin": flocks.couzin, "Cucker-Smale": flocks.cucker_smale, "Vicsek": flocks.vicsek}


def by_name(evidence: Evidence) -> dict[str, Flight]:
    """Every flight under the name of its data."""
    flights = jax.tree_util.tree_leaves(evidence, is_leaf=lambda part: isinstance(part, Flight))
    return dict(zip(NAMES, flights, strict=True))


def plan(settings: FlockStudySettings) -> Flocks[FlockSettings]:
    """The settings of every flight, each from the same random starts as those it is compared with."""

    def one(name: str, seeds: int = settings.goal_seeds, **changes: Any) -> FlockSettings:
        chosen = scenario(name, seeds=seeds, seed=settings.seed, **changes)
        return chosen.model_copy(update={"steps": max(int(chosen.steps * settings.shorten), 2)})

    def followers(model: str) -> Forms[FlockSettings]:
        return Forms(*((one(model, form=form), one(model, form=form, leaders=0)) for form in Forms._fields))

    def composed(**order: Any) -> Composed[FlockSettings]:
        terms: tuple[dict[str, Any], ...] = ({}, {"ablation": "no-collision-term"})
        starts: tuple[dict[str, Any], ...] = (order, {"start": "square"} | order)
        return Composed(
            Leaders(*(one("leaders", leaders=leaders, **order) for leaders in (0, 4, 8, 40))),
            Leaderless(
                one("polarization", settings.seeds, **order), one("polarization", ablation="fixed-weights", **order)
            ),
            Milling(*(one("milling", **term, **start) for start in starts for term in terms)),
            Temperatures(*(one("temperature", settings.temperature_seeds, eps=eps, **order) for eps in TEMPERATURES)),
        )

    couzin, cucker_smale, vicsek = (followers(model) for model in ("couzin", "cucker-smale", "vicsek"))
    return Flocks(*composed(), couzin, cucker_smale, vicsek, composed(update="sequential"))


def groups(settings: FlockStudySettings) -> dict[str, list[FlockSettings]]:
    """The plan in groups that share a compiled program, in the order of the plan."""
    planned = plan(settings)

    def composed(flocks: Flocks[FlockSettings] | Composed[FlockSettings], order: str) -> dict[str, list[FlockSettings]]:
        each = {
            f"temperature {eps:g}{order}": [one] for eps, one in zip(TEMPERATURES, flocks.temperatures, strict=True)
        }
        together = {f"temperatures{order}": list(flocks.temperatures)}
        return {
            f"flocks with leaders{order}": list(flocks.leaders),
            f"leaderless flocks{order}": list(flocks.leaderless),
            f"milling flocks{order}": list(flocks.milling),
            **(together if settings.temperature_seeds <= AT_ONCE else each),
        }

    return {
        **composed(planned, ""),
        **{f"{name} followers": jax.tree_util.tree_leaves(forms) for name, forms in by_model(planned).items()},
        **composed(planned.in_turn, ", in turn"),
    }


Result = tuple[Measures, Trace]


def experiments(settings: FlockStudySettings) -> Mapping[str, Callable[[], list[Result]]]:
    """A step for each group of flights, the longest first."""
    return {name: partial(fly_group, flights) for name, flights in groups(settings).items()}


def fly_group(flights: Sequence[FlockSettings]) -> list[Result]:
    """What is kept of every flight of a group."""
    traces = fly_together(flights)
    measured = [measure(one, trace) for one, trace in zip(flights, traces, strict=True)]
    found = []
    for one, trace, numbers in zip(flights, traces, measured, strict=True):
        raised = raise_separation(one, trace) if one.collision_term else numbers.raised
        found.append((numbers._replace(raised=raised), choose_episodes(trace, [0])))
    return found


def gather(settings: FlockStudySettings, results: Mapping[str, Sequence[Result]]) -> Evidence:
    """The results of all steps as the record that claims and figures read."""
    planned, structure = jax.tree_util.tree_flatten(plan(settings))
    found = [result for name in groups(settings) for result in results[name]]
    flights = [Flight(one, *result) for one, result in zip(planned, found, strict=True)]
    evidence: Evidence = jax.tree_util.tree_unflatten(structure, flights)
    return evidence


def redraw(settings: FlockStudySettings, evidence: Evidence, number: int) -> tuple[FlockStudySettings, Evidence]:
    """The evidence with seeds drawn anew, the same for all flights with equally many: comparisons stay paired."""

    def drawn(flight: Flight) -> Flight:
        seeds = len(flight.measured.polarization)
        rows = np.random.default_rng((number, seeds)).integers(seeds, size=seeds)
        anew = (field[rows] if isinstance(field, np.ndarray) else field for field in flight.measured)
        return flight._replace(measured=Measures._make(anew))

    changed: Evidence = jax.tree_util.tree_map(drawn, evidence, is_leaf=lambda part: isinstance(part, Flight))
    return settings, changed


# ------------------------------------------------------------------------------------ gating problems of a flight


def pose(settings: FlockSettings, state: FlockState, boids: Numbers) -> tuple[View, Problem]:
    """What these boids see at these moments, and their gating problems; states and boids have one leading axis."""
    with jax.enable_x64(True):
        # where the flight began does not matter here, and one start for all means one program for all
        env = eqx.tree_at(lambda e: e.start, world(settings), in_square())
        composers = [boid(settings, env, informed) for informed in (True, False)]
        views, *both = _pose(env, composers, jax.tree_util.tree_map(jnp.asarray, state), jnp.asarray(boids))
    leads = np.asarray(boids) < settings.leaders
    chosen = [np.where(_beside(leads, own), own, other) for own, other in zip(*map(_arrays, both), strict=True)]
    return jax.tree_util.tree_map(np.asarray, views), Problem(*chosen)


def _arrays(batch: Problem) -> list[Numbers]:
    return [np.asarray(field) for field in batch]


def _beside(flags: Numbers, array: Numbers) -> Numbers:
    return flags.reshape(-1, *[1] * (array.ndim - 1))


@eqx.filter_jit
def _pose(env: Flock, composers: list[Composer], state: FlockState, boids: jax.Array) -> tuple[Any, ...]:
    def one(state: FlockState, i: jax.Array) -> tuple[Any, ...]:
        view = env.view(state, i)
        return view, *(composer.problem(view) for composer in composers)

    return jax.vmap(one)(state, boids)


def raise_separation(settings: FlockSettings, trace: Trace) -> Numbers:
    """Of each episode: boids with a neighbour in the separation zone, and those of them whose weight of separation is
    higher with the collision term than it would be without it, in the same state.
    """
    moments = np.linspace(0, settings.steps - 1, min(MOMENTS, settings.steps)).astype(int)
    bare = settings.model_copy(update={"collision_term": False})
    boids = np.tile(np.arange(settings.boids), len(moments))
    found = []
    for episode in range(len(trace.weights)):
        seen = (np.repeat(np.asarray(field)[episode, moments], settings.boids, axis=0) for field in trace.state)
        state = FlockState._make(seen)
        (view, careful), (_, careless) = (pose(one, state, boids) for one in (settings, bare))
        near = np.flatnonzero(np.any(view.closeness != 0, axis=(-1, -2)))
        weights = [
            np.asarray(solve(Problem(*(field[near] for field in one))).weights)[:, 0] for one in (careful, careless)
        ]
        found.append([len(near), (weights[0] > weights[1]).sum()])
    return np.array(found, dtype=float)


RECORDED = 200  # problems of a study's own runs
FLOWN = ("flocks with leaders", "milling flocks")  # the steps that they are read from


def recorded(settings: FlockStudySettings, results: Mapping[str, Sequence[Result]]) -> dict[str, Problem]:
    """Gating problems of boids, evenly over the first seed of the flock with 10% leaders and of the mill."""
    planned = plan(settings)
    flights = ((planned.leaders.tenth, results[FLOWN[0]][1]), (planned.milling.ring, results[FLOWN[1]][0]))
    batches = []
    for one, (_, shown) in flights:
        moments = np.linspace(0, one.steps - 1, RECORDED // len(flights)).astype(int)
        boids = np.arange(len(moments)) * 7 % one.boids  # leaders and others in turn, whatever the moment
        state = FlockState._make(np.asarray(field)[0, moments] for field in shown.state)
        batches.append(pose(one, state, boids)[1])
    return {"flock": Problem(*(np.concatenate(fields) for fields in zip(*batches, strict=True)))}


# ------------------------------------------------------------------------------------ one experiment


def simulate(settings: FlockSettings, episodes: Sequence[int] | None = None) -> Trace:
    """Let the flock fly: all seeds, or the episodes that are named, at once; every weight with its certificate."""
    env = world(settings)
    trace = rollout(
        flock(settings, env), env, steps=settings.steps, episodes=settings.seeds if episodes is None else episodes,
        seed=settings.seed, in_turn=settings.update == "sequential",
    )  # fmt: skip
    labels = trace.labels._replace(action_unit="m/s^2")
    return jax.tree_util.tree_map(np.asarray, trace)._replace(labels=labels)


def choose_episodes(trace: Trace, places: Sequence[int]) -> Trace:
    """The trace of a few episodes, without holding on to the others."""
    labels = trace.labels._replace(episodes=tuple(trace.labels.episodes[place] for place in places))
    return jax.tree_util.tree_map(lambda array: array[list(places)], trace)._replace(labels=labels)


def measure_flight(settings: FlockSettings, trace: Trace) -> Flight:
    """The measures of a trace, and its first episode."""
    return Flight(settings, measure(settings, trace), choose_episodes(trace, [0]))


# ------------------------------------------------------------------------------------ several in one program


def fly_together(flights: Sequence[FlockSettings]) -> list[Trace]:
    """The traces of several experiments: boids, update and kind of followers agree, any number may differ.

    A compilation takes longer than most flights, so all seeds of all flights run in one compiled program.
    """
    if len({(flight.update, flight.seed) for flight in flights}) > 1:
        raise ValueError("these flights differ in update or seed: fly them one by one.")
    try:
        stacked = stack([_build(_align(one, flights), one) for one in flights], "flights")
    except ValueError as error:
        raise ValueError(f"these flights differ in more than numbers, so fly them one by one: {error}") from None
    row = np.repeat(np.arange(len(flights)), [one.seeds for one in flights])
    root = jax.random.key(flights[0].seed)
    numbers = np.concatenate([np.arange(one.seeds) for one in flights])
    starts = [_starts(world(one).start, one.boids, root, jnp.arange(one.seeds)) for one in flights]
    start = jax.tree_util.tree_map(lambda *parts: jnp.concatenate(parts), *starts)
    move = step_in_turn if flights[0].update == "sequential" else step
    longest = max(one.steps for one in flights)
    flown = _fly(stacked.take(row), root, jnp.asarray(numbers), start, longest, move)
    record, final = jax.tree_util.tree_map(np.asarray, flown)
    return [_trace(record, final, one, np.flatnonzero(row == k)) for k, one in enumerate(flights)]


def _align(flight: FlockSettings, flights: Sequence[FlockSettings]) -> FlockSettings:
    """The flight in the terms of a program that serves all of them: what it lacks is there with no strength."""
    changes: dict[str, Any] = {}
    if any(one.collision_term for one in flights):
        strength = flight.collision_strength if flight.collision_term else 0.0
        changes |= {"collision_term": True, "collision_strength": strength}
    if flight.fixed_weights:
        changes |= {"fixed_weights": False, "eps": UNIFORM}
    if flight.followers != "composed":
        changes |= {"leaders": max(one.leaders for one in flights)}
    return flight.model_copy(update=changes)


def _build(settings: FlockSettings, own: FlockSettings) -> tuple[Population | Passive, Flock]:
    """Agents and world. Where boids might lead, each has a number of its own that says whether it does."""
    env = eqx.tree_at(lambda e: e.start, world(settings), in_square())  # starts are handed in
    if settings.followers != "composed":
        # an agent of the program that is no agent of its own flight follows the rule
        env = eqx.tree_at(lambda e: e.deciding, env, jnp.asarray(own.leaders), is_leaf=lambda leaf: leaf is None)
    if settings.followers != "composed" or env.agents < 2:
        return flock(settings, env), env
    leader, other = (boid(settings, env, informed) for informed in (True, False))
    both = Population([leader] + [other] * (env.agents - 1))
    leads = np.where(np.arange(env.agents) < settings.leaders, 0, 1)
    return eqx.tree_at(lambda p: p.members, both, both.members.take(leads)), env


@eqx.filter_jit
def _starts(start: Start, boids: int, root: jax.Array, numbers: jax.Array) -> FlockState:
    return jax.vmap(lambda number: start(streams_of(root, number).start, boids))(numbers)


@eqx.filter_jit
def _fly(
    flights: Stack, root: jax.Array, numbers: jax.Array, start: FlockState, steps: int, move: Callable[..., Any]
) -> tuple[Record, FlockState]:
    def episode(flight: tuple[Any, Flock], number: jax.Array, begin: FlockState) -> tuple[Record, FlockState]:
        agents, env = flight
        carry = Carry(begin, agents.start(), jnp.asarray(True))
        last, record = jax.lax.scan(partial(move, agents, env, streams_of(root, number)), carry, jnp.arange(steps))
        return record, last.state

    return flights.for_each(episode, numbers, start)


def _trace(record: Record, final: FlockState, settings: FlockSettings, rows: Numbers) -> Trace:
    """The rows of one experiment, as long and with as many agents as it has."""
    steps, env = settings.steps, world(settings)
    if steps < record.state.position.shape[1]:
        final = FlockState(*(field[:, steps] for field in record.state))

    def cut(name: str) -> Any:
        own = (rows, slice(steps)) if name in ("state", "reward", "alive") else (rows, slice(steps), slice(env.agents))
        return jax.tree_util.tree_map(lambda array: array[own].copy(), getattr(record, name))

    labels = Labels(FORCES, tuple(range(len(rows))), dict(env.variables), action_unit="m/s^2")
    return trace_of(Record(*map(cut, Record._fields)), FlockState(*(field[rows].copy() for field in final)), labels)
