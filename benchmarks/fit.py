"""Fitting, measured: `python benchmarks/fit.py PART`, a part or several of flock, bandit, people, planted, size.

flock    recovery on the flock, coverage of the profile interval of eps        (long)
bandit   the same for a cohort of bandit players
people   Gershman (2018), both experiments, held out; needs --data DIR         (long)
planted  cohorts of two and three models: frequencies against fitting first
size     value against value and gradient, 10^4 decisions, memory of 10^5
"""

import argparse
import resource
import time
from pathlib import Path
from typing import Any

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

from policychord.choices.beliefs import believe  # noqa: E402
from policychord.choices.data import TASKS, Reading, read_choices  # noqa: E402
from policychord.choices.models import classic  # noqa: E402
from policychord.choices.simulate import GROUPS, draw_people, simulate  # noqa: E402
from policychord.envs.bandit import Belief  # noqa: E402
from policychord.fitting import groups, likelihoods, optimise, validate  # noqa: E402
from policychord.fitting.decisions import composed, family_of, observations  # noqa: E402
from policychord.fitting.fits import likelihood_of, setup_of  # noqa: E402
from policychord.fitting.parameters import bounded, real, size, unconstrained  # noqa: E402
from policychord.fitting.recovery import coverage, information, recover  # noqa: E402
from policychord.fitting.uncertainty import curvature, inverse_of, profile  # noqa: E402
from policychord.stats.model_selection import select_models  # noqa: E402
from policychord.studies.families import bandit, flock  # noqa: E402

FLOCK = {"eps": 0.5, "prior": [0.2, 0.5, 0.3], "collision": 2.0, "precision": 100.0, "sd": float(np.sqrt(0.1))}


def show(found: Any) -> None:
    print(f"  {len(found.estimates)} experiments of {found.decisions} decisions, {found.converged.sum()} converged")
    print(
        "  number | truth | bias | sd | median error | Wald coverage | profile coverage | decisions for an error of .1"
    )
    for j, name in enumerate(found.names):
        wald, profiled = coverage(found, name)
        after = "-" if profiled is None else f"{profiled.share:.3f} [{profiled.low:.3f}, {profiled.high:.3f}]"
        opened = 0 if profiled is None else int(np.isinf(found.profiled[name]).any(axis=1).sum())
        after += f" ({opened} open)" if profiled else ""
        print(f"  {name} | {found.truth[j]:.3f} | {found.bias[j]:+.3f} | {found.sd[j]:.3f} | "
              f"{np.median(found.errors[:, j]):.3f} | {wald.share:.3f} | {after} | {found.needed[j]:.0f} | "
              + ", ".join(f"{grade} {share:.2f}" for grade, share in found.grades[name].items()))  # fmt: skip
    for first, second, value in found.pairs:
        print(f"  cannot be told apart well: {first} and {second}, correlation {value:.2f}")


def run_flock(options: argparse.Namespace) -> None:
    design = flock()
    for free in (("eps", "prior"), ("eps", "prior", "collision", "precision")):
        begun = time.process_time()
        print(f"flock, free: {', '.join(free)}", flush=True)
        found = recover(
            design.family, FLOCK, design.simulate, options.repeats, free=free, profiles=("ln eps",), seed=options.seed
        )
        show(found)
        print(f"  CPU {time.process_time() - begun:.0f} s", flush=True)
    seen = design.simulate(FLOCK, 2000, 1)
    for eps in (0.1, 0.5, 2.0):
        known = information(design.family, {**FLOCK, "eps": eps}, seen, free=("eps", "prior", "collision", "precision"))
        print(
            f"flock, information at eps {eps}:", dict(zip(known.names, known.needed.round().astype(int), strict=True))
        )
        print("  alone:", dict(zip(known.names, known.needed_alone.round().astype(int), strict=True)), known.pairs)


def run_bandit(options: argparse.Namespace) -> None:
    design = bandit()
    truth = {"coef": [1.0, 0.16], "eps": 0.1, "prior": [0.5, 0.2, 0.3]}
    for free in (("eps",), ("eps", "prior"), ("coef", "eps", "prior")):
        print(f"bandit, free: {', '.join(free)}", flush=True)
        show(
            recover(
                design.family,
                truth,
                design.simulate,
                options.repeats,
                free=free,
                profiles=("ln eps",),
                seed=options.seed,
            )
        )


# ------------------------------------------------------------------------------------------------- people


def hybrid(theta: Any, unit: Any) -> Any:
    """Gershman's Hybrid by probit, with a lapse if there is one."""
    belief = unit["observation"]
    total, deviation = jnp.sqrt(belief.variance.sum()), jnp.sqrt(belief.variance)
    utility = theta["coef"][0] * (belief.mean[0] - belief.mean[1]) / total
    utility += theta["coef"][1] * (deviation[0] - deviation[1])
    log_p = jax.scipy.special.log_ndtr(jnp.where(unit["action"] == 0, utility, -utility))
    if "lapse" in theta:
        log_p = jnp.logaddexp(jnp.log1p(-theta["lapse"]) + log_p, jnp.log(theta["lapse"] / 2))
    return log_p


def people(trials: Any) -> Any:
    return observations(
        Belief(trials.mean, trials.variance), trials.choice, k=trials.trial, subject=trials.subject, block=trials.block
    )


def players(seen: Any, variance: tuple[float, ...], free: tuple[str, ...]) -> Any:
    known, chosen, rest = family_of(bandit(variance).family, free, {})
    setup = setup_of(known._replace(features=None), chosen, rest, seen)
    return likelihood_of(composed(known, chosen, rest, setup.by), setup, seen)


def hybrids(seen: Any, lapse: bool) -> Any:
    declared = [real("coef", [1.0, 0.16], labels=("V/TU", "RU"))] + [bounded("lapse", 0, 1, 0.05)] * lapse
    data = {"observation": seen.observation, "action": np.asarray(seen.action), "k": seen.k}
    return likelihoods.likelihood(hybrid, data, declared, groups=seen.subject, at_once=256)


def alone(given: Any, starts: int = 4) -> Any:
    """Everybody by maximum likelihood, from several starts."""
    objective, centre = optimise.of_groups(given), unconstrained(given.parameters, {})
    rng, best, value = np.random.default_rng(0), None, None
    for i in range(starts):
        begin = np.tile(centre, (given.groups, 1)) + (rng.normal(size=(given.groups, len(centre))) if i else 0.0)
        found = optimise.climb_groups(objective, begin)
        if best is None:
            best, value = found.z, found.value
        else:
            best = np.where((found.value > value)[:, None], found.z, best)
            value = np.maximum(found.value, value)
    return best


def run_people(options: argparse.Namespace) -> None:
    if options.data is None:
        raise SystemExit("people: pass --data DIR with data1.csv and data2.csv (policychord bandit data fetch).")
    for number in (options.experiment,) if options.experiment else ("1", "2"):
        task = TASKS[number]
        how = Reading(doubtful="drop")  # as published: slow trials are neither learned from nor scored
        seen = people(believe(read_choices(options.data / f"data{number}.csv", task, how=how)))
        fold = np.unique(seen.block, return_inverse=True)[1].reshape(-1) % options.folds
        print(f"Experiment {number}: {seen.size} trials; {options.folds} folds of blocks in turn", flush=True)
        models = {
            "Hybrid": hybrids(seen, False),
            "Hybrid with a lapse": hybrids(seen, True),
            "composed, own coefficients": players(seen, task.variance, ("coef",)),
            "composed, own coefficients and prior": players(seen, task.variance, ("coef", "prior")),
            "composed, own coefficients and eps": players(seen, task.variance, ("coef", "eps")),
            "composed, all": players(seen, task.variance, ("coef", "eps", "prior")),
        }
        kept = {}
        print("  model | parameters | log-likelihood | BIC | held out, by person | held out, empirical Bayes")
        for name, given in models.items():
            z = alone(given)
            inside = likelihoods.pointwise(given, z)
            counts = np.bincount(given.group)
            bic = size(given.parameters) * np.log(counts).sum() - 2 * inside.sum()
            own = validate.cross_validate(given, fold, fit=alone)
            shrunk = validate.cross_validate(
                given, fold, fit=lambda train: groups.empirical_bayes(train, rounds=6, starts=2).z
            )
            kept[name] = shrunk
            print(f"  {name} | {size(given.parameters)} | {inside.sum():.2f} | {bic:.1f} | {own.mean():.4f} | "
                  f"{shrunk.mean():.4f}", flush=True)  # fmt: skip
            if name.endswith("and eps"):
                objective = optimise.of_groups(given)
                value = objective(z, np.arange(len(z)))[0]
                covariance, _ = inverse_of(curvature(objective, z))
                ends = profile(objective, z, value, covariance, 2)
                print(f"    profile of eps open below in {np.isinf(ends[:, 0]).sum()} of {len(z)} people")
        for name in list(models)[2:]:
            for other in ("Hybrid with a lapse", "composed, own coefficients"):
                if name != other:
                    gain = validate.paired(kept[name], kept[other], seen.subject)
                    print(f"  {name} over {other}: {gain.mean * seen.size:+.0f} ± {gain.error * seen.size:.0f} nats")


# ------------------------------------------------------------------------------------------------ planted


def run_planted(options: argparse.Namespace) -> None:
    """Cohorts that mix people of known models: who finds the frequencies better?"""
    task = TASKS["2"]
    for names in (("Thompson", "Value"), ("Thompson", "UCB", "Value")):
        if options.models not in (None, len(names)):
            continue
        print("planted:", ", ".join(names), flush=True)
        rows = []
        for cohort in range(options.cohorts):
            rng = np.random.default_rng([cohort, len(names)])
            counts = rng.multinomial(30, rng.dirichlet(np.full(len(names), 2.0)))
            parts = []
            for k, (name, count) in enumerate(zip(names, counts, strict=True)):
                if count:
                    coef = draw_people(GROUPS["2"][name], int(count), (cohort, k))
                    parts.append(simulate(task, classic(name), coef, blocks=6, trials=10, seed=(cohort, k, 1)))
            trials = [believe(part) for part in parts]
            offset = np.cumsum([0] + [int(part.subject.max()) for part in trials])
            seen = [people(t._replace(subject=t.subject + o)) for t, o in zip(trials, offset, strict=False)]
            seen = jax.tree_util.tree_map(lambda *leaves: np.concatenate(leaves), *seen)
            rows.append(_frequencies(names, counts / counts.sum(), seen))
        for how, error, inside in (("together", 0, 1), ("fit first, BIC", 2, 3)):
            values = np.array([[row[error], row[inside]] for row in rows])
            print(f"  {how}: mean |error| of frequencies {values[:, 0].mean():.4f}, "
                  f"truth within 2 posterior sd {values[:, 1].mean():.2f}", flush=True)  # fmt: skip
        gain = np.array([row[2] - row[0] for row in rows])
        print(f"  gain {gain.mean():.4f} ± {gain.std(ddof=1) / np.sqrt(len(gain)):.4f} over {len(rows)} cohorts")


def _frequencies(names: tuple[str, ...], truth: np.ndarray, seen: Any) -> tuple[float, float, float, float]:
    models = [likelihoods.likelihood(partial_of(name), _data(seen), _declared(name), groups=seen.subject, at_once=256)
              for name in names]  # fmt: skip
    found = groups.model_frequencies(models, starts=2)
    counts = np.bincount(models[0].group)
    evidence = []
    for given in models:
        _, value = _alone_with_value(given)
        evidence.append(value - 0.5 * size(given.parameters) * np.log(counts))
    first = select_models(np.stack(evidence, axis=1))
    sd = np.sqrt(first.expected * (1 - first.expected) / (first.alpha.sum() + 1))
    return (
        float(np.abs(found.expected - truth).mean()), float(np.mean(np.abs(found.expected - truth) <= 2 * found.error)),
        float(np.abs(first.expected - truth).mean()), float(np.mean(np.abs(first.expected - truth) <= 2 * sd)),
    )  # fmt: skip


def _alone_with_value(given: Any) -> tuple[np.ndarray, np.ndarray]:
    z = alone(given, 2)
    return z, np.bincount(given.group, likelihoods.pointwise(given, z))


def _data(seen: Any) -> Any:
    return {"observation": seen.observation, "action": np.asarray(seen.action), "k": seen.k}


FEATURES = {"Thompson": ("V/TU",), "UCB": ("V", "RU"), "Value": ("V",), "Hybrid": ("V/TU", "RU")}


def _declared(name: str) -> list[Any]:
    return [real("coef", [0.3] * len(FEATURES[name]), labels=FEATURES[name])]


def partial_of(name: str) -> Any:
    """ln p of a choice by one of the classic models, by probit."""

    def log_prob(theta: Any, unit: Any) -> Any:
        belief = unit["observation"]
        deviation = jnp.sqrt(belief.variance)
        value = belief.mean[0] - belief.mean[1]
        known = {"V": value, "RU": deviation[0] - deviation[1], "V/TU": value / jnp.sqrt(belief.variance.sum())}
        utility = sum(theta["coef"][i] * known[one] for i, one in enumerate(FEATURES[name]))
        return jax.scipy.special.log_ndtr(jnp.where(unit["action"] == 0, utility, -utility))

    return log_prob


# --------------------------------------------------------------------------------------------------- size


def run_size(options: argparse.Namespace) -> None:
    design = flock()
    known, chosen, rest = family_of(design.family, ("eps", "prior", "collision"), {})
    seen = design.simulate(FLOCK, 10_000, 0)
    setup = setup_of(known, chosen, rest, seen)
    given = likelihood_of(composed(known, chosen, rest, setup.by), setup, seen)
    z = unconstrained(chosen, {one.name: FLOCK[one.name] for one in chosen})
    likelihoods.pointwise(given, z), likelihoods.scores(given, z)
    pairs = []
    for _ in range(5):
        begun = time.process_time()
        likelihoods.pointwise(given, z)
        middle = time.process_time()
        likelihoods.scores(given, z)
        pairs.append((middle - begun, time.process_time() - middle))
    value, both = np.median(pairs, axis=0)
    print(f"size: value {value / seen.size * 1e6:.1f} us a decision, value and gradient {both / seen.size * 1e6:.1f}: "
          f"{both / value:.2f} times (CPU)", flush=True)  # fmt: skip
    begun = time.process_time()
    best = optimise.maximise(given, starts=8)
    print(f"  4 numbers, 10^4 decisions, 8 starts: CPU {time.process_time() - begun:.1f} s, {best.evaluations} "
          f"evaluations, converged {best.converged}", flush=True)  # fmt: skip
    many = jax.tree_util.tree_map(lambda leaf: np.concatenate([leaf] * 10), seen)
    large = likelihood_of(composed(known, chosen, rest, setup.by), setup_of(known, chosen, rest, many), many)
    likelihoods.value_and_gradient(large, z)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"  10^5 decisions, value and gradient: peak memory of the process {peak:.2f} GiB")


def main() -> None:
    parts = {"flock": run_flock, "bandit": run_bandit, "people": run_people, "planted": run_planted, "size": run_size}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="+", choices=tuple(parts))
    parser.add_argument("--repeats", type=int, default=200, help="experiments of a recovery")
    parser.add_argument("--cohorts", type=int, default=20, help="planted cohorts")
    parser.add_argument("--folds", type=int, default=2, help="of blocks in turn, for people")
    parser.add_argument("--experiment", choices=("1", "2"), default=None, help="of people; both unless given")
    parser.add_argument(
        "--models", type=int, choices=(2, 3), default=None, help="of planted cohorts; both unless given"
    )
    parser.add_argument("--seed", type=int, default=0, help="of a recovery: so it can be done in parts")
    parser.add_argument("--data", type=Path, default=None, help="folder of the public data")
    options = parser.parse_args()
    for part in options.part:
        parts[part](options)


if __name__ == "__main__":
    main()
