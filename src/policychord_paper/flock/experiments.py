"""Which flocks the study flies, how they are flown, and the record of all flights that claims and figures read."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from policychord import Problem, solve
from policychord.agent import Composer
from policychord.loops import Trace
from policychord.worlds.flock import (
    Flock,
    FlockFlight,
    FlockSettings,
    FlockState,
    Measures,
    View,
    boid,
    choose_episodes,
    flock_world,
    fly_together,
    in_square,
    measure,
    scenario,
)

T = TypeVar("T")
TEMPERATURES = (0.1, 1.0, 10.0)  # Fig. S3c
SCATTERED = 400.0  # m, half width of a start from which nobody sees anybody
KNOWN_SEEDS = 2
MOMENTS = 20  # of a flight, at which the collision term is weighed
FLOWN = ("flocks with leaders", "milling flocks")  # the steps that recorded problems are read from
AT_ONCE = 10  # seeds of three temperatures that fit into one batch


class FlockStudySettings(BaseModel):
    """Sizes of the reproduction: how many seeds each claim gets."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seed: int = Field(default=0, ge=0, description="of all random draws")
    seeds: int = Field(default=8, ge=1, description="of the leaderless flock; its rule asks for 8")
    goal_seeds: int = Field(default=8, ge=1, description="of milling, leaders and followers of the literature")
    temperature_seeds: int = Field(default=30, ge=2, description="compared in pairs; the paper's Fig. S3c has 30")
    keep_every: int = Field(default=5, ge=1, description="steps between those that are kept as data")
    shorten: float = Field(default=1.0, gt=0, le=1, description="share of the steps, for tests of the machinery")


def study_settings(*, quick: bool = True, seed: int = 0) -> FlockStudySettings:
    """What `--quick`, `--full` and `--seed` mean here."""
    if not quick:
        return FlockStudySettings(seed=seed)
    return FlockStudySettings(seed=seed, goal_seeds=3, temperature_seeds=2, keep_every=20)


class _Leaders(NamedTuple, Generic[T]):
    """40 boids, of which so many know the goal."""

    none: T
    tenth: T
    fifth: T
    everyone: T


class _Leaderless(NamedTuple, Generic[T]):
    """The paper's boids, and boids whose weights stay at 1/3."""

    gated: T
    fixed: T


class _Milling(NamedTuple, Generic[T]):
    """From the rotating ring of the scripts and from the random start of the text, with the collision term or not."""

    ring: T
    no_term: T
    random_start: T
    random_no_term: T


class _Temperatures(NamedTuple, Generic[T]):
    """The same flock with leaders at each of TEMPERATURES."""

    cold: T
    middle: T
    hot: T


class Forms(NamedTuple, Generic[T]):
    """Followers of a model of the literature, each form with 6 leaders and with none."""

    released: tuple[T, T]  # with the constants of the released scripts
    original: tuple[T, T]  # in the form of their own papers


class _Composed(NamedTuple, Generic[T]):
    """Flocks of composed boids alone."""

    leaders: _Leaders[T]
    leaderless: _Leaderless[T]
    milling: _Milling[T]
    temperatures: _Temperatures[T]


class _Known(NamedTuple, Generic[T]):
    """Flights of which it is known what rules must say."""

    scattered: T  # 4 leaders and 36 others, so far apart that nobody sees anybody
    no_strength: T  # the ring with a collision term without strength
    strong: T  # the ring with a collision term twice as strong


class _Flocks(NamedTuple, Generic[T]):
    """All flights of the study by theme; T is what is known of a flight: its settings, or what it gave."""

    leaders: _Leaders[T]
    leaderless: _Leaderless[T]
    milling: _Milling[T]
    temperatures: _Temperatures[T]
    couzin: Forms[T]
    cucker_smale: Forms[T]
    vicsek: Forms[T]
    in_turn: _Composed[T]  # the first four themes with boids that move one after another, as in the scripts
    known: _Known[T]


Evidence = _Flocks[FlockFlight]
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
    "scattered", "milling-term-without-strength", "milling-strong-term",
)  # fmt: skip


def by_model(flocks: _Flocks[T]) -> dict[str, Forms[T]]:
    """The flights with followers of the literature, by the name of their model."""
    return {"Couzin": flocks.couzin, "Cucker-Smale": flocks.cucker_smale, "Vicsek": flocks.vicsek}


def by_name(evidence: Evidence) -> dict[str, FlockFlight]:
    """Every flight under the name of its data."""
    flights = jax.tree_util.tree_leaves(evidence, is_leaf=lambda part: isinstance(part, FlockFlight))
    return dict(zip(NAMES, flights, strict=True))


def _plan(settings: FlockStudySettings) -> _Flocks[FlockSettings]:
    """The settings of every flight, each from the same random starts as those it is compared with."""

    def plan_flight(name: str, seeds: int = settings.goal_seeds, **changes: Any) -> FlockSettings:
        chosen = scenario(name, seeds=seeds, seed=settings.seed, **changes)
        return chosen.model_copy(update={"steps": max(int(chosen.steps * settings.shorten), 2)})

    def followers(model: str) -> Forms[FlockSettings]:
        return Forms(
            *((plan_flight(model, form=form), plan_flight(model, form=form, leaders=0)) for form in Forms._fields)
        )

    def composed(**order: Any) -> _Composed[FlockSettings]:
        terms: tuple[dict[str, Any], ...] = ({}, {"ablation": "no-collision-term"})
        starts: tuple[dict[str, Any], ...] = (order, {"start": "square"} | order)
        return _Composed(
            _Leaders(*(plan_flight("leaders", leaders=leaders, **order) for leaders in (0, 4, 8, 40))),
            _Leaderless(
                plan_flight("polarization", settings.seeds, **order),
                plan_flight("polarization", ablation="fixed-weights", **order),
            ),
            _Milling(*(plan_flight("milling", **term, **start) for start in starts for term in terms)),
            _Temperatures(
                *(plan_flight("temperature", settings.temperature_seeds, eps=eps, **order) for eps in TEMPERATURES)
            ),
        )

    couzin, cucker_smale, vicsek = (followers(model) for model in ("couzin", "cucker-smale", "vicsek"))
    known = _Known(
        plan_flight("leaders", min(settings.goal_seeds, KNOWN_SEEDS), start_size=SCATTERED),
        *(plan_flight("milling", 1, collision_strength=strength) for strength in (0.0, 4.0)),
    )
    return _Flocks(*composed(), couzin, cucker_smale, vicsek, composed(update="sequential"), known)


def _groups(settings: FlockStudySettings, planned: _Flocks[FlockSettings]) -> dict[str, list[FlockSettings]]:
    """The plan in groups that share a compiled program."""

    def composed(
        flocks: _Flocks[FlockSettings] | _Composed[FlockSettings], order: str
    ) -> dict[str, list[FlockSettings]]:
        each = {
            f"temperature {eps:g}{order}": [flock] for eps, flock in zip(TEMPERATURES, flocks.temperatures, strict=True)
        }
        together = {f"temperatures{order}": list(flocks.temperatures)}
        return {
            f"flocks with leaders{order}": list(flocks.leaders),
            f"leaderless flocks{order}": list(flocks.leaderless),
            f"milling flocks{order}": list(flocks.milling),
            **(together if settings.temperature_seeds <= AT_ONCE else each),
        }

    groups = {
        **composed(planned, ""),
        **{f"{name} followers": jax.tree_util.tree_leaves(forms) for name, forms in by_model(planned).items()},
        **composed(planned.in_turn, ", in turn"),
    }
    groups[FLOWN[0]].append(planned.known.scattered)
    groups[FLOWN[1]] += [planned.known.no_strength, planned.known.strong]
    return groups


Result = tuple[Measures, Trace]


def experiments(settings: FlockStudySettings) -> Mapping[str, Callable[[], list[Result]]]:
    """A step for each group of flights, the longest first."""
    return {name: partial(_fly_group, flights) for name, flights in _groups(settings, _plan(settings)).items()}


def _fly_group(flights: Sequence[FlockSettings]) -> list[Result]:
    """What is kept of every flight of a group."""
    results = []
    for flight, trace in zip(flights, fly_together(flights), strict=True):
        measured = measure(flight, trace)
        if flight.collision_term:
            measured = measured._replace(raised=_raise_separation(flight, trace))
        results.append((measured, choose_episodes(trace, [0])))
    return results


def gather(settings: FlockStudySettings, results: Mapping[str, Sequence[Result]]) -> Evidence:
    """The results of all steps as the record that claims and figures read."""
    plan = _plan(settings)
    planned, structure = jax.tree_util.tree_flatten(plan)
    # two flights may have equal settings, so the plan's own records tell them apart
    flown = {
        id(flight): result
        for name, group in _groups(settings, plan).items()
        for flight, result in zip(group, results[name], strict=True)
    }
    flights = [FlockFlight(flight, *flown[id(flight)]) for flight in planned]
    evidence: Evidence = jax.tree_util.tree_unflatten(structure, flights)
    return evidence


def redraw(settings: FlockStudySettings, evidence: Evidence, number: int) -> tuple[FlockStudySettings, Evidence]:
    """The evidence with seeds resampled, the same for all flights with equally many: comparisons stay paired."""

    def drawn(flight: FlockFlight) -> FlockFlight:
        seeds = len(flight.measured.polarization)
        rows = np.random.default_rng((number, seeds)).integers(seeds, size=seeds)
        anew = (field[rows] if isinstance(field, np.ndarray) else field for field in flight.measured)
        return flight._replace(measured=Measures._make(anew))

    changed: Evidence = jax.tree_util.tree_map(drawn, evidence, is_leaf=lambda part: isinstance(part, FlockFlight))
    return settings, changed


def _pose_all(settings: FlockSettings, state: FlockState, boids: np.ndarray) -> tuple[View, Problem]:
    """What these boids see at these moments, and their gating problems; states and boids have one leading axis."""
    with jax.enable_x64(True):
        # where the flight began does not matter here, and one start for all means one program for all
        env = eqx.tree_at(lambda e: e.start, flock_world(settings), in_square())
        composers = [boid(settings, env, informed) for informed in (True, False)]
        views, *both = _pose(env, composers, jax.tree_util.tree_map(jnp.asarray, state), jnp.asarray(boids))
    leads = np.asarray(boids) < settings.leaders
    views, informed, other = jax.tree_util.tree_map(np.asarray, (views, *both))
    chosen = (np.where(leads.reshape(-1, *[1] * (a.ndim - 1)), a, b) for a, b in zip(informed, other, strict=True))
    return views, Problem(*chosen)


@eqx.filter_jit
def _pose(env: Flock, composers: list[Composer], state: FlockState, boids: jax.Array) -> tuple[Any, ...]:
    def pose_boid(state: FlockState, i: jax.Array) -> tuple[Any, ...]:
        view = env.view(state, i)
        return view, *(composer.problem(view) for composer in composers)

    return jax.vmap(pose_boid)(state, boids)


def _raise_separation(settings: FlockSettings, trace: Trace) -> np.ndarray:
    """Of each episode: boids with a neighbour in the separation zone, and those of them whose weight of separation is
    higher with the collision term than it would be without it, in the same state.
    """
    moments = np.linspace(0, settings.steps - 1, min(MOMENTS, settings.steps)).astype(int)
    bare = settings.model_copy(update={"collision_term": False})
    boids = np.tile(np.arange(settings.boids), len(moments))
    counts = []
    for episode in range(len(trace.weights)):
        seen = (np.repeat(np.asarray(field)[episode, moments], settings.boids, axis=0) for field in trace.state)
        state = FlockState._make(seen)
        (view, careful), (_, careless) = (_pose_all(setting, state, boids) for setting in (settings, bare))
        near = np.flatnonzero(np.any(view.closeness != 0, axis=(-1, -2)))
        weights = [
            np.asarray(solve(Problem(*(field[near] for field in batch))).weights)[:, 0] for batch in (careful, careless)
        ]
        counts.append([len(near), (weights[0] > weights[1]).sum()])
    return np.array(counts, dtype=float)


RECORDED = 200  # problems of a study's own runs


def recorded(settings: FlockStudySettings, results: Mapping[str, Sequence[Result]]) -> dict[str, Problem]:
    """Gating problems of boids, evenly over the first seed of the flock with 10% leaders and of the mill."""
    planned = _plan(settings)
    flights = ((planned.leaders.tenth, results[FLOWN[0]][1]), (planned.milling.ring, results[FLOWN[1]][0]))
    batches = []
    for flock, (_, shown) in flights:
        moments = np.linspace(0, flock.steps - 1, RECORDED // len(flights)).astype(int)
        boids = np.arange(len(moments)) * 7 % flock.boids  # leaders and others in turn, whatever the moment
        state = FlockState._make(np.asarray(field)[0, moments] for field in shown.state)
        batches.append(_pose_all(flock, state, boids)[1])
    return {"flock": Problem(*(np.concatenate(fields) for fields in zip(*batches, strict=True)))}
