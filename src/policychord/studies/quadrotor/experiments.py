"""The study's flights: who flies where, in which steps of work, and the evidence that they leave.

Every controller meets the same disturbances, a thousand seeds in one call each.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Literal, NamedTuple, TypeVar, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from ...agent import Agent
from ...core.objective import Problem
from ...envs.quadrotor import MASS, Disturbance, Quadrotor, QuadrotorState, QuadrotorView, seen
from ...loops.rollout import rollout
from .agents import ALONE, FIXED, Roster, agent_and_world, composer, roster
from .settings import Composition, Experiment, Horizon, QuadrotorSettings

WORLDS: tuple[Disturbance, ...] = ("stale-point", "centre")  # the paper's first
SHOWN = 16  # episodes of which the whole flight is kept
BATCH = 100  # episodes at once: few enough for the processor's cache, and any number of seeds is one compiled program
# Decisions in one step. The one-step gate costs three times as much as the optimum: it has a floor under every action.
LONGEST, DEAR = 1_000_000, 3
# Text and scripts of the paper disagree on two numbers, which are flown the other way too: the text reads disturbances
# as accelerations, the script has another second weight of the stabilising LQR.
SCRIPT_VALUE = 0.05
DISPUTED = (*ALONE, "one-step gate", "equilibrium, sample", FIXED)
PUSHED = ("baseline", "equilibrium, sample")
# PID and the PD primitives fly chaotically: a start that differs in the last digit leads to another flight. How far
# that moves what is said about all flights is measured by flying them twice.
ROUNDING = 1e-15  # m
TWICE = ("baseline", "one-step gate")
T = TypeVar("T")


class Flight(NamedTuple):
    """What one controller did in all episodes."""

    cost: Float[np.ndarray, " episode"]  # total, as the paper counts it
    distance: Float[np.ndarray, "episode sample"]  # from the path's row, in metres
    stabilising: Float[np.ndarray, "episode time"]  # weight of the stabilising primitive (1 for a controller alone)
    impulse_time: Int[np.ndarray, " episode"]
    states: Float[np.ndarray, "shown sample 6"]  # as seen, of the first episodes


Flights = Mapping[str, Flight]  # by controller


class Pairs(NamedTuple):
    """All controllers of both pairs of primitives in one world."""

    pd: Flights
    lqr: Flights


class Evidence(NamedTuple):
    """Everything that was flown."""

    stale_point: Pairs  # forces as in the paper's simulator
    centre: Pairs  # the same forces at the centre of mass
    accelerations: Pairs  # with the text's own disturbances: accelerations, at the centre of mass
    script_weight: Flights  # LQR pair, with the script's weight
    weak_push: Flights  # LQR pair, with the text's own disturbances and the impulse as an acceleration too
    beside: Flights  # PD pair, from a start that differs by rounding alone
    one_step: Mapping[float, Flight]  # PD pair by temperature: mean action, wide grid, cost of one step
    cost_to_go: Mapping[float, Flight]  # the same with the cost-to-go


class FlightKey(NamedTuple):
    """Which flight of the study."""

    series: Literal[
        Disturbance, "accelerations", "script's weight", "weak push", "beside", Horizon
    ]  # a Literal in another is flattened
    experiment: Experiment
    controller: str = ""  # by its name in the roster
    eps: float = 0.0  # of the flights by temperature, whose series is the horizon


class Leg(NamedTuple):
    """One controller in all episodes of one world."""

    key: FlightKey
    settings: QuadrotorSettings
    how: Composition | None

    @property
    def decisions(self) -> int:
        dear = self.how is not None and self.how.gate == "one-step"
        return self.settings.seeds * self.settings.steps * (DEAR if dear else 1)


def fly(settings: QuadrotorSettings, experiment: Experiment, name: str, how: Composition | None) -> Flight:
    """One controller in every episode. Disturbances depend on the seed, the episode and the step only."""
    agent, env = agent_and_world(settings, experiment, name, how)
    size = min(settings.seeds, BATCH)
    # the last batch is as long as the others, and cut
    batches = [fly_episodes(settings, agent, env, range(k, k + size)) for k in range(0, settings.seeds, size)]
    whole = Flight(*(np.concatenate(parts)[: settings.seeds] for parts in zip(*batches, strict=True)))
    return whole._replace(states=whole.states[:SHOWN].copy())


def fly_episodes(settings: QuadrotorSettings, agent: Agent, env: Quadrotor, episodes: Sequence[int]) -> Flight:
    """Episodes by number, all at once, each with its whole flight."""
    trace = rollout(agent, env, steps=settings.steps, episodes=episodes, seed=settings.seed)
    states = _all_states(trace.state, trace.final_state)
    path = np.asarray(env.path)[: settings.steps + 1]
    return Flight(
        cost=-np.asarray(trace.total_reward),
        distance=np.hypot(states[..., 0] - path[:, 0], states[..., 2] - path[:, 2]),
        stabilising=np.asarray(trace.weights)[..., 0],
        impulse_time=np.asarray(trace.final_state.impulse_time),
        states=states,
    )


@jax.jit
def _seen(states: QuadrotorState) -> jax.Array:
    return jax.vmap(jax.vmap(seen))(states)


def _all_states(before: QuadrotorState, final: QuadrotorState) -> Float[np.ndarray, "episode sample 6"]:
    last = jax.tree.map(lambda a: jnp.asarray(a)[:, None], final)
    return np.concatenate([np.asarray(_seen(before)), np.asarray(_seen(last))], axis=1)


def program(how: Composition | None) -> str:
    """What has to be compiled: those that differ in numbers only share a program."""
    return "fixed weights" if how is None else f"{how.gate}, {how.selection}, {how.points} points"


def _by_program(given: Iterable[tuple[T, Composition | None]]) -> dict[str, list[T]]:
    groups: dict[str, list[T]] = {}
    for one, how in given:
        groups.setdefault(program(how), []).append(one)
    return groups


def fly_all(settings: QuadrotorSettings, experiment: Experiment, who: Roster) -> dict[str, Flight]:
    """Every controller of a roster. Those that share a program take turns, the others fly side by side."""

    def in_turn(names: Sequence[str]) -> dict[str, Flight]:
        return {name: fly(settings, experiment, name, who[name]) for name in names}

    groups = _by_program(who.items()).values()
    longest_first = sorted(groups, key=lambda names: -sum(who[name] is not None for name in names))
    with ThreadPoolExecutor(2) as pool:  # two at once: one compiles while the other flies
        found = {name: flight for some in pool.map(in_turn, longest_first) for name, flight in some.items()}
    return {name: found[name] for name in who}


def experiments(settings: QuadrotorSettings) -> dict[str, Any]:
    """The steps of work, by name."""
    return {step: partial(_fly_legs, legs) for step, legs in plan(settings).items()}


def plan(settings: QuadrotorSettings) -> dict[str, list[Leg]]:
    """All legs, by step: what shares a program is one step, cut where that would be too long."""
    legs = [*_everybody(settings), *_temperatures(settings), *_disputed(settings), *_beside(settings)]
    groups = _by_program((leg, leg.how) for leg in legs)
    steps: dict[str, list[Leg]] = {}
    # the longest first: two workers then end at about the same time
    for name in sorted(groups, key=lambda one: -sum(leg.decisions for leg in groups[one] if leg.how is not None)):
        parts = _cut(groups[name])
        for k, part in enumerate(parts):
            steps[f"{name}, {k + 1} of {len(parts)}" if len(parts) > 1 else name] = part
    return steps


def gather(settings: QuadrotorSettings, results: Mapping[str, Sequence[Flight]]) -> Evidence:
    """The evidence, whatever steps the flights were made in."""
    found = {
        leg.key: flight
        for step, legs in plan(settings).items()
        for leg, flight in zip(legs, results[step], strict=True)
    }

    def flights(series: Any, experiment: Experiment, names: Iterable[str]) -> Flights:
        return {name: found[FlightKey(series, experiment, name)] for name in names}

    everybody = roster(settings)
    stale, centre = (Pairs(*(flights(world, e, everybody) for e in get_args(Experiment))) for world in WORLDS)
    by_eps = ({eps: found[FlightKey(h, "pd", eps=eps)] for eps in settings.temperatures} for h in get_args(Horizon))
    text = Pairs(*(flights("accelerations", e, DISPUTED) for e in get_args(Experiment)))
    others = (
        flights("script's weight", "lqr", DISPUTED), flights("weak push", "lqr", PUSHED), flights("beside", "pd", TWICE)
    )  # fmt: skip
    return Evidence(stale, centre, text, *others, *by_eps)


JUDGED = (*ALONE, "one-step gate", "equilibrium, sample")
FEWER_RESAMPLES = 100  # for the interval of a delta, where seeds are drawn anew many times


def redraw(settings: QuadrotorSettings, evidence: Evidence, number: int) -> tuple[QuadrotorSettings, Evidence]:
    """The flights that are judged, with seeds drawn anew, the same for all controllers of a world."""

    def drawn(flights: Flights) -> Flights:
        return {name: _drawn(flight, number) for name, flight in flights.items() if name in JUDGED}

    stale, centre, text = (Pairs(*map(drawn, pairs)) for pairs in evidence[:3])
    fewer = settings.model_copy(update={"resamples": min(settings.resamples, FEWER_RESAMPLES)})
    return fewer, evidence._replace(stale_point=stale, centre=centre, accelerations=text, beside=drawn(evidence.beside))


def _drawn(flight: Flight, number: int) -> Flight:
    seeds = len(flight.cost)
    rows = np.random.default_rng((number, seeds)).integers(seeds, size=seeds)
    return Flight._make([*(field[rows] for field in flight[:-1]), flight.states])


RECORDED = 100  # problems of each pair of primitives, of the study's own flights
FLOWN = FlightKey("stale-point", "pd", "equilibrium, sample"), FlightKey("stale-point", "lqr", "equilibrium, sample")


def recorded_steps(settings: QuadrotorSettings) -> list[str]:
    """The steps in which the optimum flies as the text has it."""
    return [step for step, legs in plan(settings).items() if any(leg.key in FLOWN for leg in legs)]


def recorded(settings: QuadrotorSettings, results: Mapping[str, Sequence[Flight]]) -> dict[str, Problem]:
    """The gating problems of the first episodes, evenly over them."""
    found = {}
    for step in recorded_steps(settings):
        for leg, flight in zip(plan(settings)[step], results[step], strict=True):
            if leg.key in FLOWN and leg.how is not None:
                found[f"quadrotor, {leg.key.experiment.upper()}"] = _pose(leg, flight)
    return found


def _pose(leg: Leg, flight: Flight) -> Problem:
    episodes, samples, _ = flight.states.shape
    rows = np.linspace(0, episodes * (samples - 1) - 1, RECORDED).astype(int)
    episode, k = rows // (samples - 1), rows % (samples - 1)
    states, before = flight.states[episode, k], flight.states[episode, np.maximum(k - 1, 0)]
    pitch = np.where(k > 0, before[:, 4], 0.0)
    with jax.enable_x64(True):
        agent = composer(leg.settings, leg.key.experiment, leg.how or leg.settings.composition)
        posed = jax.vmap(lambda x, p, k: agent.problem(QuadrotorView(x, p), k))(*map(jnp.asarray, (states, pitch, k)))
    return Problem(*(np.asarray(field) for field in posed))


def _fly_legs(legs: Sequence[Leg]) -> list[Flight]:
    return [fly(leg.settings, leg.key.experiment, leg.key.controller, leg.how) for leg in legs]


def _everybody(settings: QuadrotorSettings) -> Iterator[Leg]:
    for world in WORLDS:
        there = settings.model_copy(update={"disturbance": world})
        there = _fewer(there) if world == "centre" else there
        for experiment in get_args(Experiment):
            for name, how in roster(settings).items():
                yield Leg(FlightKey(world, experiment, name), there, how)


def _temperatures(settings: QuadrotorSettings) -> Iterator[Leg]:
    """The mean action of the equilibrium at each temperature, for the PD pair."""
    for horizon in get_args(Horizon):
        change = {"selection": "mean", "horizon": horizon, "margin": settings.wide_margin}
        for eps in settings.temperatures:
            how = settings.composition.model_copy(update=change | {"eps": eps})
            yield Leg(FlightKey(horizon, "pd", eps=eps), _fewer(settings), how)


def _disputed(settings: QuadrotorSettings) -> Iterator[Leg]:
    fewer, who = _fewer(settings), roster(settings)
    # the table gives the impulse no unit; as an acceleration it would change a speed by 2 cm/s and push nothing, so
    # that it stays a force here, and is an acceleration in flights that judge nothing
    change = {"force_sd": settings.force_sd * MASS, "disturbance": "centre"}
    # what is judged under them has as many seeds as under the scripts' forces
    text, text_fewer = (one.model_copy(update=change) for one in (settings, fewer))
    first, _, *others = settings.lqr_stabilise.state
    stabilise = settings.lqr_stabilise.model_copy(update={"state": (first, SCRIPT_VALUE, *others)})
    script = fewer.model_copy(update={"lqr_stabilise": stabilise})
    for name in DISPUTED:
        judged = name in (*ALONE, "equilibrium, sample")
        for experiment in get_args(Experiment):
            yield Leg(FlightKey("accelerations", experiment, name), text if judged else text_fewer, who[name])
        yield Leg(FlightKey("script's weight", "lqr", name), script, who[name])
    weak = text_fewer.model_copy(update={"impulse": settings.impulse * MASS})
    yield from (Leg(FlightKey("weak push", "lqr", name), weak, who[name]) for name in PUSHED)


def _beside(settings: QuadrotorSettings) -> Iterator[Leg]:
    x, *rest = settings.start
    there = settings.model_copy(update={"disturbance": WORLDS[0], "start": (x + ROUNDING, *rest)})
    yield from (Leg(FlightKey("beside", "pd", name), there, roster(settings)[name]) for name in TWICE)


def _fewer(settings: QuadrotorSettings) -> QuadrotorSettings:
    return settings.model_copy(update={"seeds": min(settings.seeds, settings.control_seeds)})


def _cut(legs: list[Leg]) -> list[list[Leg]]:
    """In order, as many to a part as the longest step allows."""
    parts: list[list[Leg]] = [[]]
    for leg in legs:
        if parts[-1] and sum(one.decisions for one in parts[-1]) + leg.decisions > LONGEST:
            parts.append([])
        parts[-1].append(leg)
    return parts
