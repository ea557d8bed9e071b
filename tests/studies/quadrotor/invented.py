"""Invented flights: evidence whose claims have known answers, without an hour of flying."""

import numpy as np

from policychord.studies.quadrotor.plan import ACCELERATIONS, DISPUTED, HORIZONS, SCRIPT_WEIGHT, SWEEP, place
from policychord.studies.quadrotor.settings import QuadrotorSettings
from policychord.studies.quadrotor.simulate import Flight, roster

SMALL = QuadrotorSettings(seeds=40, resamples=200)


def invented(level, seed=0, swaps=False, error=0.1, settings=SMALL):
    """A flight with costs around `level`; after the impulse it is off by 0.6 m, and by `error` from a second on."""
    rng = np.random.default_rng(seed)
    episodes, steps = settings.seeds, settings.steps
    impulse = rng.integers(30, 150, episodes)
    distance = np.full((episodes, steps + 1), 0.1)
    for i, k in enumerate(impulse):
        distance[i, k : k + 50] = 0.6
        distance[i, k + 50 : k + 100] = error
    weight = np.full((episodes, steps), 0.55)
    if swaps:
        weight[:] = np.arange(steps) % 2
    states = np.zeros((16, steps + 1, 6))
    states[..., 0], states[..., 2] = 0.5 * np.sin(np.linspace(0, 6, steps + 1)), 1.2
    cost = level * np.exp(0.2 * rng.normal(size=episodes))
    return Flight(cost, distance, weight, impulse, states)


LEVELS = {"baseline": 100.0, "stabilise": 170.0, "track": 300.0, "one-step gate": 80.0, "equilibrium, sample": 140.0}


def evidence(**levels):
    """Everything that claims, figures and words read. `levels` are median costs by name, or by 'place: name'."""
    chosen = LEVELS | levels

    def level(where, name):
        return chosen.get(f"{where}: {name}", chosen.get(name, 90.0))

    found = {}
    for where in [place(e, world) for world in ("stale-point", "centre") for e in ("pd", "lqr")]:
        found[where] = {
            name: invented(level(where, name), i, swaps=name == "one-step gate", error=0.1 if i else 0.3)
            for i, name in enumerate(roster(SMALL))
        }
    for where in (ACCELERATIONS, SCRIPT_WEIGHT):
        found[where] = {name: invented(level(where, name), i) for i, name in enumerate(DISPUTED)}
    found[SWEEP] = {
        f"{horizon}, {eps:g}": invented(90.0 - 10 * i, i)
        for horizon in HORIZONS
        for i, eps in enumerate(SMALL.temperatures)
    }
    # as steps leave it: in pieces
    names = {where: list(flights) for where, flights in found.items()}
    return {
        "some": {where: {name: found[where][name] for name in names[where][:3]} for where in found},
        "others": {where: {name: found[where][name] for name in names[where][3:]} for where in found},
    }
