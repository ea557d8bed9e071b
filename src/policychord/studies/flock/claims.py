"""Claims F1 to F11: each reads the experiments and applies its rule."""

from typing import NamedTuple

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
        f"median polarization at step {len(flock.imbalance[0])}": float(np.median(final)),
        "least of the seeds": float(final.min()),
        "seeds": len(final),
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
        "mean max|w - 1/3|, last 100 steps": float(late),
        "the same, first 20 steps": float(early),
        "late / early": float(late / early),
        "seed to seed (sd of the latter)": float(flock.imbalance[:, -100:].mean(axis=1).std()),
        f"the same, up to step {longer.settings.steps}": float(longer.imbalance[:, -100:].mean()),
        "mean separation, alignment, cohesion at the end": ", ".join(f"{w:.2f}" for w in weights),
    }
    return Finding(measured, reproduced_if(late <= early / 2))


def mills(settings: FlockStudySettings, evidence: Evidence) -> Finding:
    def last(name: str) -> np.ndarray:
        return evidence[name].metrics.milling[:, -50:].mean(axis=1)

    with_term, without = last("milling"), last("milling, no collision term")
    scattered = last("milling, random start")
    measured = {
        "median m, last 50 steps": float(np.median(with_term)),
        "without the term: m": float(np.median(without)),
        "seeds with m > .8": f"{(with_term > 0.8).sum()} of {len(with_term)}",
        "polarization": float(np.median(evidence["milling"].metrics.polarization[:, -50:])),
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
            "median nearest distance (m)": float(np.median(nearest)),
            f"seeds nearer than {metrics.ARRIVED:g} m": f"{(nearest < metrics.ARRIVED).sum()} of {len(nearest)}",
            "polarization before arrival": float(aligned),
            "no leaders: median nearest distance (m)": float(np.median(nobody)),
            "no leaders / leaders": float(ratio),
            "mean nearest distance (m)": float(nearest.mean()),
            "largest group before arrival": f"{together:.0%}",
            "median distance at the end (m)": float(np.median(flock.metrics.goal_distance[:, -1])),
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
        "seeds in which leaders vary more": f"{(leaders > others).sum()} of {len(leaders)}",
    }
    return Finding(measured, reproduced_if(bool(np.all(leaders > others))))


class Temperatures(NamedTuple):
    """The claim on temperature in its parts, and the figures behind them, by temperature."""

    holds: dict[str, bool]
    nearest: dict[float, float]
    there: dict[float, float]
    aligned: dict[float, float]
    uneven: dict[float, float]
    worse: dict[float, float]  # than the middle one, in standard errors of the paired seeds


def parts_of_temperature(evidence: Evidence) -> Temperatures:
    """Each part of the claim on its own."""
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
        "navigation suffers": there[middle] > 0 and there[hot] <= there[middle] / 2,
        "sweet spot between": min(worse[cold], worse[hot]) > 2.0,
    }
    return Temperatures(holds, nearest, there, aligned, uneven, worse)


def temperature(settings: FlockStudySettings, evidence: Evidence) -> Finding:
    parts = parts_of_temperature(evidence)
    cold, middle, hot = TEMPERATURES

    def by_eps(values: dict[float, float], digits: str) -> str:
        return ", ".join(f"{value:{digits}} at {eps:g}" for eps, value in values.items())

    measured = {
        "parts whose rule holds": ", ".join(part for part, held in parts.holds.items() if held) or "none",
        "parts whose rule fails": ", ".join(part for part, held in parts.holds.items() if not held) or "none",
        "mean nearest distance (m)": by_eps(parts.nearest, ".1f"),
        f"eps {hot:g} farther than {middle:g}, in standard errors": parts.worse[hot],
        f"eps {cold:g} farther than {middle:g}, in standard errors": parts.worse[cold],
        "arrive": by_eps(parts.there, ".0%"),
        "polarization after step 100": by_eps(parts.aligned, ".2f"),
        "mean max|w - 1/3|": by_eps(parts.uneven, ".3f"),
        "seeds": len(nearest_of(evidence[f"temperature {middle:g}"])),
    }
    return Finding(measured, parts_of(*parts.holds.values()))


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
                f"{form}: median nearest distance (m)": float(nearest),
                f"{form}: without leaders (m)": float(nobody),
                f"{form}: seeds that arrive": f"{(nearest_of(led) < metrics.ARRIVED).sum()} of {len(nearest_of(led))}",
                f"{form}: leaders' temporal sd": float(led.leader_sd.mean()),
            }
        return Finding(measured, reproduced_if(halved["released"]))

    return measure


GOAL = "nearest distance < 3 in >= 80% of seeds, >= 5 times nearer than without leaders, pre-arrival polarization > .9"
HALVED = "median nearest distance at least halved against the same followers without leaders (released constants)"

LEDGER = (
    Entry("F1", "a leaderless flock polarizes", "Fig 3b, S2a",
          "median polarization at step 440 > .95 over >= 8 seeds", polarizes,
          "polarization becomes 1 (Fig. S2a; one flight)"),
    Entry("F2", "the weights of a leaderless flock tend to balance", "Fig 3b, S1",
          "mean max|w - 1/3| falls by at least half from the first 20 to the last 100 steps", balances,
          "weights become approximately equal (Fig. S1; one flight)"),
    Entry("F3", "a flock whose model has the collision term mills", "Fig 3c, S2b",
          "median m over the last 50 steps > .8, and < .2 without the term", mills,
          "milling order parameter near 1 (Fig. S2b; one flight)"),
    Entry("F4", "10% leaders bring the flock to the goal, cohesive and polarized", "Fig 3d, S2c", GOAL,
          reaches_goal("10%"),
          "no number given: distance falls, flock polarized (Fig. S2c; one flight)"),
    Entry("F5", "leaders' weights vary more over time than followers'", "Fig 3d",
          "leader sd > follower sd in every seed", leaders_vary_more,
          "no number given: higher temporal variability (Fig. 3d)"),
    Entry("F6", "100% informed boids reach the goal", "Fig S3a", GOAL, reaches_goal("100%"),
          "no number given: distance decreases, polarized (Fig. S3a; one flight)"),
    Entry("F7", "20% informed boids bring the flock to the goal", "Fig S3b", GOAL, reaches_goal("20%"),
          "no number given: distance decreases, polarized (Fig. S3b; one flight)"),
    Entry("F8", "as eps rises from 0.1 over 1 to 10, polarization stays high, weights flatten and navigation suffers, "
          "with a sweet spot between", "Fig S3c",
          "each part on its own: mean polarization after step 100 > .9; mean max|w - 1/3| falls with eps; some seeds "
          "arrive at eps 1, and at most half as many at 10; at eps 0.1 and 10 farther from the "
          "goal than at 1 by more than two standard errors of the paired seeds", temperature,
          "no number given: polarization high at all, a sweet spot suggested (30 seeds)"),
    Entry("F9", "6 informed boids guide Couzin followers", "Fig S4a", HALVED, guides("couzin"),
          "no number given: distance decreases with time (Fig. S4a; one flight)"),
    Entry("F10", "6 informed boids guide Cucker-Smale followers", "Fig S4b", HALVED, guides("cucker-smale"),
          "no number given: guided towards the goal (Fig. S4b; one flight)"),
    Entry("F11", "6 informed boids guide Vicsek followers", "Fig S4c", HALVED, guides("vicsek"),
          "no number given: guided towards the goal (Fig. S4c; one flight)"),
)  # fmt: skip
