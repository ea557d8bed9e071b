"""Nulls and alternatives of the flock study: flights of which it is known what the rules must say."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from policychord.worlds.flock import FlockFlight, FlockState, measure

from ..study import World
from .experiments import Evidence, FlockStudySettings, Forms

SEEDS = 8  # of a flight that is made and not flown
BESIDE = 0.5  # m, how near to the goal a straight flight passes
FORMS = ("couzin", "cucker_smale", "vicsek")
Change = Callable[[Any], dict[str, Any]]  # from the flights in one order of moving to those that take their places


def _in_both_orders(change: Change, settings: FlockStudySettings, evidence: Evidence) -> tuple[Any, Any]:
    """The evidence with the same change of the flights in which boids move at once and of those in turn."""
    in_turn = evidence.in_turn._replace(**change(evidence.in_turn))
    return settings, evidence._replace(**change(evidence), in_turn=in_turn)


def _among_followers(
    pick: Callable[[Evidence, tuple[FlockFlight, FlockFlight]], FlockFlight],
    settings: FlockStudySettings,
    evidence: Evidence,
) -> tuple[Any, Any]:
    """The evidence with another flight in the place of each that is led among followers of the literature."""
    changed: dict[str, Any] = {}
    for model in FORMS:
        forms = getattr(evidence, model)
        changed[model] = Forms(*((pick(evidence, pair), pair[1]) for pair in forms))
    return settings, evidence._replace(**changed)


def _made(flight: FlockFlight, position: np.ndarray, velocity: np.ndarray) -> FlockFlight:
    """A flight with these states, (episode, time, boid, 2), and weights of 1/3, measured as all others."""
    weights = np.full((*position.shape[:3], 3), 1 / 3)
    gap = np.zeros(position.shape[:3])
    state: Any = FlockState._make((position, velocity))
    trace = flight.shown._replace(state=state, weights=weights, gap=gap)
    return FlockFlight(flight.settings, measure(flight.settings, trace), flight.shown)


def _straight(flight: FlockFlight) -> FlockFlight:
    """A rigid flock that flies to the goal in a straight line."""
    settings = flight.settings
    square = np.random.default_rng((settings.seed, 1)).uniform(-2.5, 2.5, (SEEDS, 1, settings.boids, 2))
    aim = np.asarray(settings.goal) + np.array([BESIDE, 0.0]) - square.mean(axis=2, keepdims=True)
    along = np.linspace(0.0, 1.0, settings.steps)[:, None, None]
    velocity = np.broadcast_to(
        aim / np.linalg.norm(aim, axis=-1, keepdims=True), (SEEDS, settings.steps, settings.boids, 2)
    )
    return _made(flight, square + along * aim, velocity)


def _wheel(flight: FlockFlight) -> FlockFlight:
    """A rigid ring that turns."""
    settings = flight.settings
    angle = np.arange(settings.boids) * 2 * np.pi / settings.boids + 0.01 * np.arange(settings.steps)[:, None]
    turning = np.stack([np.cos(angle), np.sin(angle)], axis=-1), np.stack([-np.sin(angle), np.cos(angle)], axis=-1)
    position, velocity = (np.broadcast_to(a, (SEEDS, *a.shape)) for a in turning)
    return _made(flight, 5.0 * position, velocity)


def _edited(flight: FlockFlight, **series: Any) -> FlockFlight:
    return flight._replace(measured=flight.measured._replace(**series))


def _shuffled(flight: FlockFlight) -> FlockFlight:
    """The weights' series in another order of time."""
    measured = flight.measured
    order = np.random.default_rng(flight.settings.seed).permutation(measured.imbalance.shape[1])
    names = ("imbalance", "balanced", "leader_imbalance", "follower_imbalance")
    return _edited(flight, **{name: getattr(measured, name)[:, order] for name in names})


def _all_shuffled(flown: Any) -> dict[str, Any]:
    leaderless, leaders = flown.leaderless, flown.leaders
    return {
        "leaderless": leaderless._replace(gated=_shuffled(leaderless.gated)),
        "leaders": leaders._replace(tenth=_shuffled(leaders.tenth)),
    }


def _pretended(flight: FlockFlight) -> FlockFlight:
    """A flock without leaders of which four boids are called so."""
    measured, some = flight.measured, 4
    own = np.abs(np.asarray(flight.shown.weights) - 1 / 3).max(axis=-1)
    return _edited(
        flight, leader_imbalance=own[:, :, :some].mean(-1), follower_imbalance=own[:, :, some:].mean(-1),
        **{
            f"{who}_{name}": getattr(measured, f"follower_{name}")[:, part]
            for name in ("sd", "sd_before")
            for who, part in (("leader", slice(some)), ("follower", slice(some, None)))
        },
    )  # fmt: skip


def _let_go(flown: Any) -> dict[str, Any]:
    """Weights of the gate in the first half of the flight, and of 1/3 in the second."""
    gated, fixed = flown.leaderless
    half = gated.measured.imbalance.shape[1] // 2
    seeds = min(len(gated.measured.imbalance), len(fixed.measured.imbalance))

    def joined(name: str) -> np.ndarray:
        first, second = (getattr(flight.measured, name)[:seeds] for flight in (gated, fixed))
        return np.concatenate([first[:, :half], second[:, half:]], axis=1)

    return {
        "leaderless": flown.leaderless._replace(
            gated=_edited(gated, imbalance=joined("imbalance"), balanced=joined("balanced"))
        )
    }


def _following_order(flown: Any) -> dict[str, Any]:
    """Imbalance that falls as the flock polarizes."""
    gated = flown.leaderless.gated
    return {
        "leaderless": flown.leaderless._replace(
            gated=_edited(gated, imbalance=0.5 * (1.0 - gated.measured.polarization))
        )
    }


def _sweet_spot(flown: Any) -> dict[str, Any]:
    """Straight flights that pass the goal at 9 m, at half a metre and at 14 m, with weights ever more even."""
    straight = _straight(flown.temperatures.middle)
    measured = straight.measured
    seeds = 0.1 * np.arange(SEEDS)[:, None]
    cold, middle, hot = (
        _edited(straight, goal_distance=measured.goal_distance + away + seeds * (away > 0),
                imbalance=np.full_like(measured.imbalance, uneven))
        for away, uneven in ((9.0, 0.2), (0.0, 0.1), (14.0, 0.02))
    )  # fmt: skip
    return {"temperatures": flown.temperatures._replace(cold=cold, middle=middle, hot=hot)}


def _hot_alike(flown: Any) -> dict[str, Any]:
    hot = flown.temperatures.hot
    return {
        "temperatures": flown.temperatures._replace(hot=_edited(hot, leader_imbalance=hot.measured.follower_imbalance))
    }


def _shares(make: Callable[[Any], FlockFlight]) -> Change:
    """The same flight for all shares of leaders."""
    return lambda flown: {
        "leaders": flown.leaders._replace(**dict.fromkeys(("tenth", "fifth", "everyone"), make(flown)))
    }


def _all_straight(flown: Any) -> dict[str, Any]:
    gated = _straight(flown.leaderless.gated)
    shares = _shares(lambda flown: _straight(flown.leaders.tenth))
    return {"leaderless": flown.leaderless._replace(gated=gated)} | shares(flown)


def _scattered(evidence: Evidence) -> Change:
    """The flight in which nobody sees anybody, in the place of all flocks."""
    flight = evidence.known.scattered

    def change(flown: Any) -> dict[str, Any]:
        mills = flown.milling._replace(ring=flight, random_start=flight)
        heats = flown.temperatures._replace(cold=flight, middle=flight, hot=flight)
        return {
            "leaderless": flown.leaderless._replace(gated=flight),
            "milling": mills,
            "temperatures": heats,
        } | _shares(lambda flown: flight)(flown)

    return change


def _ring(evidence: Evidence, flight: FlockFlight) -> Change:
    return lambda flown: {"milling": flown.milling._replace(ring=flight)}


# name, how it is made, what it must show, of which claims, and how the evidence changes
WORLDS: tuple[World[FlockStudySettings, Evidence], ...] = (
    World("nobody sees anybody", "4 leaders and 36 others that start 400 m apart, flown", "rejected",
          ("F1", "F3", "F4", "F6", "F7", "F8"),
          lambda settings, evidence: _in_both_orders(_scattered(evidence), settings, evidence)),
    World("nobody sees anybody, among followers", "the same flight in the place of each that is led", "rejected",
          ("F16",), partial(_among_followers, lambda evidence, pair: evidence.known.scattered)),
    World("nobody knows the goal", "the flocks without leaders in the place of those with", "rejected",
          ("F4", "F6", "F7"), partial(_in_both_orders, _shares(lambda flown: flown.leaders.none))),
    World("nobody knows the goal, among followers", "the flocks without leaders in the place of those with", "rejected",
          ("F9", "F10", "F11"), partial(_among_followers, lambda evidence, pair: pair[1])),
    World("leaders in name", "the flock without leaders, four of which are called so", "rejected", ("F5", "F13"),
          partial(_in_both_orders, _shares(lambda flown: _pretended(flown.leaders.none)))),
    World("time shuffled", "weights in another order of time", "rejected", ("F2", "F13", "F14"),
          partial(_in_both_orders, _all_shuffled)),
    World("no term", "the ring without the collision term in the place of that with it", "rejected", ("F3",),
          partial(_in_both_orders, lambda flown: {"milling": flown.milling._replace(
              ring=flown.milling.no_term, random_start=flown.milling.random_no_term)})),
    World("a term without strength", "the ring with a collision term of strength 0, flown", "rejected", ("F12",),
          lambda settings, evidence: _in_both_orders(_ring(evidence, evidence.known.no_strength), settings, evidence)),
    World("one temperature", "eps = 1 in the place of all three", "rejected", ("F8",),
          partial(_in_both_orders, lambda flown: {"temperatures": flown.temperatures._replace(
              cold=flown.temperatures.middle, hot=flown.temperatures.middle)})),
    World("a cold flock", "eps = 0.1 in the place of 10", "rejected", ("F15",),
          partial(_in_both_orders, lambda flown: {"temperatures": flown.temperatures._replace(
              hot=flown.temperatures.cold)})),
    World("a straight flight", "a rigid flock that flies to the goal, made", "accepted", ("F1", "F4", "F6", "F7"),
          partial(_in_both_orders, _all_straight)),
    World("a straight flight, among followers", "the same in the place of each that is led", "accepted",
          ("F9", "F10", "F11", "F16"), partial(_among_followers, lambda evidence, pair: _straight(pair[0]))),
    World("a wheel", "a rigid ring that turns; without the term a straight flight; made", "accepted", ("F3",),
          partial(_in_both_orders, lambda flown: {"milling": flown.milling._replace(
              ring=_wheel(flown.milling.ring), random_start=_wheel(flown.milling.random_start),
              no_term=_straight(flown.milling.no_term), random_no_term=_straight(flown.milling.random_no_term))})),
    World("weights that are let go", "the gate's weights at first, 1/3 in the second half", "accepted", ("F2",),
          partial(_in_both_orders, _let_go)),
    World("twice as many leaders", "20% leaders in the place of 10%, flown", "accepted", ("F5", "F13"),
          partial(_in_both_orders, lambda flown: {"leaders": flown.leaders._replace(tenth=flown.leaders.fifth)})),
    World("a sweet spot", "straight flights that pass the goal at 9 m, 0.5 m and 14 m, with weights ever more even",
          "accepted", ("F8",), partial(_in_both_orders, _sweet_spot)),
    World("a strong term", "the ring with a collision term twice as strong, flown", "accepted", ("F12",),
          lambda settings, evidence: _in_both_orders(_ring(evidence, evidence.known.strong), settings, evidence)),
    World("balance with order", "an imbalance of half of one less the polarization", "accepted", ("F14",),
          partial(_in_both_orders, _following_order)),
    World("leaders like followers", "at eps 10 leaders have the followers' imbalance", "accepted", ("F15",),
          partial(_in_both_orders, _hot_alike)),
)  # fmt: skip
