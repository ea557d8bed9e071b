"""The study's flights: who flies where, in which steps of work, and the evidence that they leave.

Every controller meets the same disturbances, a thousand seeds in one call each.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, TypeVar, get_args

import jax
import jax.numpy as jnp
import numpy as np

from policychord import Problem
from policychord.worlds.quadrotor import (
    ALONE,
    FIXED,
    MASS,
    CompositionSettings,
    Disturbance,
    Experiment,
    Flight,
    Flights,
    Horizon,
    QuadrotorSettings,
    QuadrotorView,
    composer,
    fly_controller,
    program,
    roster,
)

from .ablation import Clamped, fly_clamped

T = TypeVar("T")
QUICK_SEEDS = 60
WORLDS: tuple[Disturbance, ...] = ("stale-point", "centre")  # the paper's first
# Decisions in one step. The one-step gate costs three times as much as the optimum: it has a floor under every action.
LONGEST, DEAR = 1_000_000, 3
# Text and scripts of the paper disagree on two numbers, which are flown the other way too: the text reads disturbances
# as accelerations, the script has another second weight of the stabilising LQR.
SCRIPT_VALUE = 0.05
DISPUTED = (*ALONE, "one-step gate", "equilibrium, sample", FIXED)
PUSHED = ("baseline", "equilibrium, sample")
# PID and the PD primitives fly chaotically: a start that differs in the last digit leads to another flight. How far
# that moves statements about all flights is measured by flying them twice.
ROUNDING = 1e-15  # m
OTHER_SEED = 1_000_003
# the steps that fly with a clamped weight: by reading, whether it is the text's world, and the gate
CLAMPED: Mapping[str, Mapping[str, tuple[bool, str]]] = {
    "clamped, one-step": {"one-step gate": (False, "one-step gate")},
    "clamped, equilibrium": {
        "equilibrium, sample": (False, "equilibrium, sample"),
        "accelerations: equilibrium, sample": (True, "equilibrium, sample"),
    },
}
TWICE = ("baseline", "one-step gate")


def study_settings(*, quick: bool = True, seed: int = 0) -> QuadrotorSettings:
    """What `--quick`, `--full` and `--seed` mean here."""
    return QuadrotorSettings(seed=seed, seeds=QUICK_SEEDS) if quick else QuadrotorSettings(seed=seed)


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
    clamped: Mapping[str, Clamped]  # LQR pair, stabilising weight clamped after the impulse; by reading
    other_weather: Mapping[str, Pairs]  # the baselines alone under other random numbers, by world; a null


class _FlightKey(NamedTuple):
    """Which flight of the study."""

    series: Literal[
        Disturbance, "accelerations", "script's weight", "weak push", "beside", Horizon, "other", "other accelerations"
    ]  # a Literal in another is flattened
    experiment: Experiment
    controller: str = ""  # by its name in the roster
    eps: float = 0.0  # of the flights by temperature, whose series is the horizon


class _Leg(NamedTuple):
    """One controller in all episodes of one world."""

    key: _FlightKey
    settings: QuadrotorSettings
    how: CompositionSettings | None

    @property
    def decisions(self) -> int:
        dear = self.how is not None and self.how.gate == "one-step"
        return self.settings.seeds * self.settings.steps * (DEAR if dear else 1)


def experiments(settings: QuadrotorSettings) -> dict[str, Any]:
    """The steps of work, by name."""
    flights = {step: partial(_fly_legs, legs) for step, legs in _plan(settings).items()}
    clamped = {step: partial(_fly_clamped, settings, readings) for step, readings in CLAMPED.items()}
    return flights | clamped


def _fly_clamped(settings: QuadrotorSettings, readings: Mapping[str, tuple[bool, str]]) -> dict[str, Clamped]:
    fewer = _fewer(settings)
    return {
        reading: fly_clamped(fewer.model_copy(update=_as_in_text(settings)) if text else fewer, gate)
        for reading, (text, gate) in readings.items()
    }


def _as_in_text(settings: QuadrotorSettings) -> dict[str, Any]:
    """The text adds disturbances to the accelerations, at the centre of mass.

    Its table gives the impulse no unit; as an acceleration it would change a speed by 2 cm/s and push nothing, so that
    it stays a force here, and is an acceleration in flights that judge nothing.
    """
    return {"force_sd": settings.force_sd * MASS, "disturbance": "centre"}


def by_program(items: Iterable[tuple[T, CompositionSettings | None]]) -> dict[str, list[T]]:
    """All settings but how its controller is composed, in groups that share a compiled program."""
    groups: dict[str, list[T]] = {}
    for item, how in items:
        groups.setdefault(program(how), []).append(item)
    return groups


def _plan(settings: QuadrotorSettings) -> dict[str, list[_Leg]]:
    """All legs, by step: what shares a program is one step, cut where that would be too long."""
    legs = [*_everybody(settings), *_temperatures(settings), *_disputed(settings), *_beside(settings)]
    legs += _other_weather(settings)
    groups = by_program((leg, leg.how) for leg in legs)
    steps: dict[str, list[_Leg]] = {}
    # the longest first: two workers then end at about the same time
    for name in sorted(groups, key=lambda group: -sum(leg.decisions for leg in groups[group] if leg.how is not None)):
        parts = _cut(groups[name])
        for k, part in enumerate(parts):
            steps[f"{name}, {k + 1} of {len(parts)}" if len(parts) > 1 else name] = part
    return steps


def gather(settings: QuadrotorSettings, results: Mapping[str, Any]) -> Evidence:
    """The evidence, whatever steps the flights were made in."""
    by_key = {
        leg.key: flight
        for step, legs in _plan(settings).items()
        for leg, flight in zip(legs, results[step], strict=True)
    }

    def flights(series: Any, experiment: Experiment, names: Iterable[str]) -> Flights:
        return {name: by_key[_FlightKey(series, experiment, name)] for name in names}

    everybody = roster(settings)
    stale, centre = (Pairs(*(flights(world, e, everybody) for e in get_args(Experiment))) for world in WORLDS)
    by_eps = ({eps: by_key[_FlightKey(h, "pd", eps=eps)] for eps in settings.temperatures} for h in get_args(Horizon))
    text = Pairs(*(flights("accelerations", e, DISPUTED) for e in get_args(Experiment)))
    others = (
        flights("script's weight", "lqr", DISPUTED), flights("weak push", "lqr", PUSHED), flights("beside", "pd", TWICE)
    )  # fmt: skip
    clamped = {reading: found for step in CLAMPED for reading, found in results[step].items()}
    other = {
        world: Pairs(*(flights(series, e, ("baseline",)) for e in get_args(Experiment)))
        for world, series in (("", "other"), ("accelerations", "other accelerations"))
    }
    one_step, ahead = by_eps
    return Evidence(stale, centre, text, *others, one_step, ahead, clamped, other)


JUDGED = (*ALONE, "one-step gate", "equilibrium, sample")
FEWER_RESAMPLES = 100  # for the interval of a delta, where seeds are resampled many times


def redraw(settings: QuadrotorSettings, evidence: Evidence, number: int) -> tuple[QuadrotorSettings, Evidence]:
    """The flights that are judged, with seeds resampled, the same for all controllers of a world."""

    def drawn(flights: Flights) -> Flights:
        return {name: _drawn(flight, number) for name, flight in flights.items() if name in JUDGED}

    stale, centre, text = (Pairs(*map(drawn, pairs)) for pairs in evidence[:3])
    fewer = settings.model_copy(update={"resamples": min(settings.resamples, FEWER_RESAMPLES)})
    clamped = {reading: Clamped(*(_drawn(f, number) for f in flights)) for reading, flights in evidence.clamped.items()}
    return fewer, evidence._replace(
        stale_point=stale, centre=centre, accelerations=text, beside=drawn(evidence.beside), clamped=clamped
    )


def _drawn(flight: Flight, number: int) -> Flight:
    seeds = len(flight.cost)
    rows = np.random.default_rng((number, seeds)).integers(seeds, size=seeds)
    return Flight._make([*(field[rows] for field in flight[:-1]), flight.states])


RECORDED = 100  # problems of each pair of primitives, of the study's own flights
FLOWN = _FlightKey("stale-point", "pd", "equilibrium, sample"), _FlightKey("stale-point", "lqr", "equilibrium, sample")


def recorded_steps(settings: QuadrotorSettings) -> list[str]:
    """The steps in which the optimum flies as the text has it."""
    return [step for step, legs in _plan(settings).items() if any(leg.key in FLOWN for leg in legs)]


def recorded(settings: QuadrotorSettings, results: Mapping[str, Sequence[Flight]]) -> dict[str, Problem]:
    """The gating problems of the first episodes, evenly over them."""
    problems = {}
    for step in recorded_steps(settings):
        for leg, flight in zip(_plan(settings)[step], results[step], strict=True):
            if leg.key in FLOWN and leg.how is not None:
                problems[f"quadrotor, {leg.key.experiment.upper()}"] = _pose(leg, flight)
    return problems


def _pose(leg: _Leg, flight: Flight) -> Problem:
    episodes, samples, _ = flight.states.shape
    rows = np.linspace(0, episodes * (samples - 1) - 1, RECORDED).astype(int)
    episode, k = rows // (samples - 1), rows % (samples - 1)
    states, before = flight.states[episode, k], flight.states[episode, np.maximum(k - 1, 0)]
    pitch = np.where(k > 0, before[:, 4], 0.0)
    with jax.enable_x64(True):
        agent = composer(leg.settings, leg.key.experiment, leg.how or leg.settings.composition)
        posed = jax.vmap(lambda x, p, k: agent.problem(QuadrotorView(x, p), k))(*map(jnp.asarray, (states, pitch, k)))
    return Problem(*(np.asarray(field) for field in posed))


def _fly_legs(legs: Sequence[_Leg]) -> list[Flight]:
    return [fly_controller(leg.settings, leg.key.experiment, leg.key.controller, leg.how) for leg in legs]


def _everybody(settings: QuadrotorSettings) -> Iterator[_Leg]:
    for world in WORLDS:
        there = settings.model_copy(update={"disturbance": world})
        there = _fewer(there) if world == "centre" else there
        for experiment in get_args(Experiment):
            for name, how in roster(settings).items():
                yield _Leg(_FlightKey(world, experiment, name), there, how)


def _temperatures(settings: QuadrotorSettings) -> Iterator[_Leg]:
    """The mean action of the equilibrium at each temperature, for the PD pair."""
    for horizon in get_args(Horizon):
        change = {"selection": "mean", "horizon": horizon, "margin": settings.wide_margin}
        for eps in settings.temperatures:
            how = settings.composition.model_copy(update=change | {"eps": eps})
            yield _Leg(_FlightKey(horizon, "pd", eps=eps), _fewer(settings), how)


def _disputed(settings: QuadrotorSettings) -> Iterator[_Leg]:
    fewer, who = _fewer(settings), roster(settings)
    change = _as_in_text(settings)
    # what is judged under them has as many seeds as under the scripts' forces
    text, text_fewer = (sizes.model_copy(update=change) for sizes in (settings, fewer))
    first, _, *others = settings.lqr_stabilise.state
    stabilise = settings.lqr_stabilise.model_copy(update={"state": (first, SCRIPT_VALUE, *others)})
    script = fewer.model_copy(update={"lqr_stabilise": stabilise})
    for name in DISPUTED:
        judged = name in (*ALONE, "equilibrium, sample")
        for experiment in get_args(Experiment):
            yield _Leg(_FlightKey("accelerations", experiment, name), text if judged else text_fewer, who[name])
        yield _Leg(_FlightKey("script's weight", "lqr", name), script, who[name])
    weak = text_fewer.model_copy(update={"impulse": settings.impulse * MASS})
    yield from (_Leg(_FlightKey("weak push", "lqr", name), weak, who[name]) for name in PUSHED)


def _beside(settings: QuadrotorSettings) -> Iterator[_Leg]:
    x, *rest = settings.start
    there = settings.model_copy(update={"disturbance": WORLDS[0], "start": (x + ROUNDING, *rest)})
    yield from (_Leg(_FlightKey("beside", "pd", name), there, roster(settings)[name]) for name in TWICE)


def _other_weather(settings: QuadrotorSettings) -> Iterator[_Leg]:
    there = settings.model_copy(update={"disturbance": WORLDS[0], "seed": settings.seed + OTHER_SEED})
    for series, world in (("other", there), ("other accelerations", there.model_copy(update=_as_in_text(settings)))):
        for experiment in get_args(Experiment):
            yield _Leg(_FlightKey(series, experiment, "baseline"), world, None)  # type: ignore[arg-type]


def _fewer(settings: QuadrotorSettings) -> QuadrotorSettings:
    return settings.model_copy(update={"seeds": min(settings.seeds, settings.control_seeds)})


def _cut(legs: list[_Leg]) -> list[list[_Leg]]:
    """In order, as many to a part as the longest step allows."""
    parts: list[list[_Leg]] = [[]]
    for leg in legs:
        if parts[-1] and sum(part.decisions for part in parts[-1]) + leg.decisions > LONGEST:
            parts.append([])
        parts[-1].append(leg)
    return parts
