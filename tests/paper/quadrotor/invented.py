"""Invented flights: evidence whose claims have known answers, without an hour of flying."""

import numpy as np

from policychord.worlds.quadrotor.agents import roster
from policychord.worlds.quadrotor.flights import Flight
from policychord.worlds.quadrotor.settings import QuadrotorSettings
from policychord_paper.quadrotor.ablation import Clamped
from policychord_paper.quadrotor.claims import TEXT
from policychord_paper.quadrotor.experiments import CLAMPED, DISPUTED, PUSHED, TWICE, Evidence, Pairs

SMALL = QuadrotorSettings(seeds=40, resamples=200)


def invented(level, seed=0, swaps=False, error=0.1, settings=SMALL, rises=False):
    """A flight with costs around `level`; after the impulse it is off by 0.6 m, and by `error` from a second on."""
    rng = np.random.default_rng(seed)
    episodes, steps = settings.seeds, settings.steps
    impulse = rng.integers(30, 150, episodes) if steps >= 150 else np.full(episodes, steps - 1)
    distance = np.full((episodes, steps + 1), 0.1)
    for i, k in enumerate(impulse):
        distance[i, k : k + 50] = 0.6
        distance[i, k + 50 : k + 100] = error
    weight = np.full((episodes, steps), 0.55)
    if swaps:
        weight[:] = np.arange(steps) % 2
    if rises:
        for i, k in enumerate(impulse):
            weight[i, k : k + 50] = 0.9
    states = np.zeros((16, steps + 1, 6))
    states[..., 0], states[..., 2] = 0.5 * np.sin(np.linspace(0, 6, steps + 1)), 1.2
    cost = level * np.exp(0.2 * rng.normal(size=episodes))
    return Flight(cost, distance, weight, impulse, states)


LEVELS = {"baseline": 100.0, "stabilise": 170.0, "track": 300.0, "one-step gate": 80.0, "equilibrium, sample": 140.0}


def evidence(settings=SMALL, **levels):
    """Everything that claims, figures and findings read. `levels` are median costs by name, or by 'place: name'."""
    chosen = LEVELS | levels

    def flights(where, names, impulse=False):
        return {
            name: invented(
                chosen.get(f"{where}: {name}", chosen.get(name, 90.0)), i, swaps=impulse and name == "one-step gate",
                error=0.3 if impulse and not i else 0.1, settings=settings,
            )
            for i, name in enumerate(names)
        }  # fmt: skip

    stale, centre = (
        Pairs(*(flights(f"{e}, {world}", roster(settings), True) for e in ("pd", "lqr")))
        for world in ("stale-point", "centre")
    )
    text = Pairs(*(flights(f"{e}, accelerations", DISPUTED, True) for e in ("pd", "lqr")))
    by_eps = {eps: invented(90.0 - 10 * i, i, settings=settings) for i, eps in enumerate(settings.temperatures)}
    beside = {name: stale.pd[name] for name in TWICE}  # as if rounding moved nothing
    weak = flights("lqr, weak push", PUSHED)
    clamped = {
        reading: Clamped(*(invented(90.0, 7, error=error, settings=settings) for error in (0.1, 0.3, 0.2)))
        for step in CLAMPED.values() for reading in step
    }  # fmt: skip
    other = {world: Pairs(*({"baseline": invented(100.0, 8, settings=settings)} for _ in "ab")) for world in ("", TEXT)}
    script = flights("script's weight", DISPUTED)
    return Evidence(stale, centre, text, script, weak, beside, by_eps, by_eps, clamped, other)
