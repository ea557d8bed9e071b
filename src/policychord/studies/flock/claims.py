"""Claims F1 to F11: each reads the experiments and applies a rule fixed beforehand."""

import numpy as np

from ..claim import Entry, Finding, Verdict, reproduced_if
from ..study import Evidence
from . import metrics
from .scenarios import TEMPERATURES
from .settings import FlockStudySettings
from .simulate import Experiment

ORDERED = 0.95  # polarization from which a flock counts as aligned


def polarizes(settings: FlockStudySettings, evidence: Evidence) -> Finding:
    flock, control = evidence["polarization"], evidence["polarization, fixed weights"]
    final = flock.metrics.polarization[:, -1]
    measured = {
        "seeds": len(final),
        "median polarization at the end": float(np.median(final)),
        "least": float(final.min()),
        f"above {ORDERED} from step (median)": float(np.median(ordered_from(flock))),
        "control, w = 1/3: polarization": float(np.median(control.metrics.polarization[:, -1])),
        "control, w = 1/3: from step": float(np.median(ordered_from(control))),
    }
    return Finding(measured, reproduced_if(np.median(final) > ORDERED and len(final) >= 8))


def ordered_from(experiment: Experiment) -> np.ndarray:
    """The step from which each episode's polarization stays above ORDERED (its length if it does not)."""
    above = experiment.metrics.polarization > ORDERED
    return above.shape[1] - np.cumprod(above[:, ::-1], axis=1).sum(axis=1)


def balances(settings: FlockStudySettings, evidence: Evidence) -> Finding:
    flock, longer = evidence["polarization"], evidence["leaders 0%"]
    early, late = flock.imbalance[:, :20].mean(), flock.imbalance[:, -100:].mean()
    weights = flock.shown.weights[0, -100:].mean(axis=(0, 1))
    measured = {
        "mean max|w - 1/3|, first 20 steps": float(early),
        "last 100 steps": float(late),
        "seed to seed (sd of the latter)": float(flock.imbalance[:, -100:].mean(axis=1).std()),
        f"the same at step {longer.settings.steps}": float(longer.imbalance[:, -100:].mean()),
        "weights of the last 100 steps": [round(float(w), 3) for w in weights],
    }
    return Finding(measured, reproduced_if(late <= early / 2))


def mills(settings: FlockStudySettings, evidence: Evidence) -> Finding:
    def last(name: str) -> np.ndarray:
        return evidence[name].metrics.milling[:, -50:].mean(axis=1)

    with_term, without = last("milling"), last("milling, no collision term")
    scattered = last("milling, random start")
    measured = {
        "median m, last 50 steps": float(np.median(with_term)),
        "polarization": float(np.median(evidence["milling"].metrics.polarization[:, -50:])),
        "seeds with m > .8": f"{(with_term > 0.8).sum()} of {len(with_term)}",
        "without the term: m": float(np.median(without)),
        "from a random start: seeds with m > .8": f"{(scattered > 0.8).sum()} of {len(scattered)}",
    }
    return Finding(measured, reproduced_if(np.median(with_term) > 0.8 and np.median(without) < 0.2))


def reaches_goal(share: str):
    """The rule of F4, F6 and F7 for a share of leaders."""

    def measure(settings: FlockStudySettings, evidence: Evidence) -> Finding:
        flock, control = evidence[f"leaders {share}"], evidence["leaders 0%"]
        nearest, nobody = nearest_of(flock), nearest_of(control)
        there = (nearest < metrics.ARRIVED).mean()
        ratio = np.median(nobody) / np.median(nearest)
        arrived = metrics.arrivals(flock.metrics.goal_distance)
        until = [slice(0, max(int(step), 1)) for step in arrived]
        aligned = np.median([p[s].mean() for p, s in zip(flock.metrics.polarization, until, strict=True)])
        together = np.mean(
            [
                g[: -(-s.stop // flock.metrics.every)].mean()
                for g, s in zip(flock.metrics.largest_group, until, strict=True)
            ]
        )
        measured = {
            "median nearest distance": float(np.median(nearest)),
            "mean": float(nearest.mean()),
            f"seeds that come nearer than {metrics.ARRIVED:g}": f"{there:.0%}",
            "no leaders: nearest": float(np.median(nobody)),
            "no leaders / leaders": float(ratio),
            "polarization before arrival": float(aligned),
            "largest group before arrival": f"{together:.0%}",
            "distance at the end": float(np.median(flock.metrics.goal_distance[:, -1])),
        }
        return Finding(measured, parts_of(there >= 0.8, ratio >= 5, aligned > 0.9))

    return measure


def parts_of(*holds: bool) -> Verdict:
    """Reproduced if all parts of a rule hold, partly if some do."""
    return "reproduced" if all(holds) else "partly" if any(holds) else "not reproduced"


def nearest_of(experiment: Experiment) -> np.ndarray:
    return experiment.metrics.goal_distance.min(axis=1)


def leaders_vary_more(settings: FlockStudySettings, evidence: Evidence) -> Finding:
    flock = evidence["leaders 10%"]
    leaders, others = flock.leader_sd.mean(axis=1), flock.follower_sd.mean(axis=1)
    measured = {
        "temporal sd, leaders": float(leaders.mean()),
        "temporal sd, followers": float(others.mean()),
        "before arrival, leaders": float(flock.leader_sd_before.mean()),
        "before arrival, followers": float(flock.follower_sd_before.mean()),
        "seeds": f"{(leaders > others).sum()} of {len(leaders)}",
    }
    return Finding(measured, reproduced_if(bool(np.all(leaders > others))))


def temperature(settings: FlockStudySettings, evidence: Evidence) -> Finding:
    runs = {eps: evidence[f"temperature {eps:g}"] for eps in TEMPERATURES}
    cold, middle, hot = TEMPERATURES
    nearest = {eps: float(np.mean(nearest_of(run))) for eps, run in runs.items()}
    there = {eps: float(np.mean(nearest_of(run) < metrics.ARRIVED)) for eps, run in runs.items()}
    aligned = {eps: float(run.metrics.polarization[:, 100:].mean()) for eps, run in runs.items()}
    uneven = {eps: float(run.imbalance.mean()) for eps, run in runs.items()}
    worse = {eps: _standard_errors(nearest_of(runs[eps]) - nearest_of(runs[middle])) for eps in (cold, hot)}
    holds = {
        "polarization stays high": min(aligned.values()) > 0.9,
        "weights flatten": uneven[cold] > uneven[middle] > uneven[hot],
        "navigation suffers": there[hot] <= there[middle] / 2,
        "sweet spot between": min(worse[cold], worse[hot]) > 2.0,
    }

    def by_eps(values: dict[float, float], digits: str) -> str:
        return ", ".join(f"{value:{digits}} at {eps:g}" for eps, value in values.items())

    measured = {
        "seeds": len(nearest_of(runs[middle])),
        "mean nearest distance": by_eps(nearest, ".1f"),
        f"farther than at {middle:g}, in standard errors": by_eps(worse, ".1f"),
        "arrive": by_eps(there, ".0%"),
        "polarization after step 100": by_eps(aligned, ".2f"),
        "mean max|w - 1/3|": by_eps(uneven, ".3f"),
        "holds": ", ".join(part for part, held in holds.items() if held) or "nothing",
        "fails": ", ".join(part for part, held in holds.items() if not held) or "nothing",
    }
    return Finding(measured, parts_of(*holds.values()))


def _standard_errors(difference: np.ndarray) -> float:
    """The mean of differences between paired seeds, in units of what chance makes of it."""
    return float(difference.mean() / (difference.std(ddof=1) / np.sqrt(len(difference)) + 1e-12))


def guides(followers: str):
    """The rule of F9 to F11 for followers of a model of the literature."""

    def measure(settings: FlockStudySettings, evidence: Evidence) -> Finding:
        measured: dict[str, float | str] = {}
        halved: dict[str, bool] = {}
        for form in ("released", "original"):
            led, control = evidence[f"{followers}, {form}"], evidence[f"{followers}, {form}, no leaders"]
            nearest, nobody = np.median(nearest_of(led)), np.median(nearest_of(control))
            halved[form] = bool(nearest <= nobody / 2)
            measured |= {
                f"{form}: median nearest distance": float(nearest),
                f"{form}: without leaders": float(nobody),
                f"{form}: arrive": f"{(nearest_of(led) < metrics.ARRIVED).mean():.0%}",
                f"{form}: leaders' temporal sd": float(led.leader_sd.mean()),
            }
        return Finding(measured, reproduced_if(halved["released"]))

    return measure


GOAL = "nearest distance < 3 in >= 80% of seeds, >= 5 times nearer than without leaders, pre-arrival polarization > .9"
HALVED = "median nearest distance at least halved against the same followers without leaders (released constants)"

LEDGER = (
    Entry("F1", "a leaderless flock polarizes", "Fig 3b, S2a",
          "median polarization at step 440 > .95 over >= 8 seeds", polarizes),
    Entry("F2", "weights tend to balance", "Fig 3b, S1",
          "mean max|w - 1/3| falls by at least half from the first 20 to the last 100 steps", balances),
    Entry("F3", "milling with the collision term", "Fig 3c, S2b",
          "median m over the last 50 steps > .8, and < .2 without the term", mills),
    Entry("F4", "10% leaders bring the flock to the goal, cohesive and polarized", "Fig 3d, S2c", GOAL,
          reaches_goal("10%")),
    Entry("F5", "leaders' weights vary more over time", "Fig 3d",
          "leader sd > follower sd in every seed", leaders_vary_more),
    Entry("F6", "100% informed boids reach the goal", "Fig S3a", GOAL, reaches_goal("100%")),
    Entry("F7", "20% informed boids bring the flock to the goal", "Fig S3b", GOAL, reaches_goal("20%")),
    Entry("F8", "eps 0.1, 1, 10: polarization stays high, weights flatten, navigation suffers, sweet spot", "Fig S3c",
          "each part on its own: mean polarization after step 100 > .9; mean max|w - 1/3| falls with eps; at eps 10 at "
          "most half as many seeds arrive as at 1; at eps 0.1 and 10 farther from the goal than at 1 by more than two "
          "standard errors of the paired seeds", temperature),
    Entry("F9", "6 informed boids guide Couzin followers", "Fig S4a", HALVED, guides("couzin")),
    Entry("F10", "6 informed boids guide Cucker-Smale followers", "Fig S4b", HALVED, guides("cucker-smale")),
    Entry("F11", "6 informed boids guide Vicsek followers", "Fig S4c", HALVED, guides("vicsek")),
)  # fmt: skip
