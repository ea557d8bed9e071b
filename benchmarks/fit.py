"""Fitting, measured: `python -m benchmarks.fit PART`, one part or several.

flock    recovery on the flock: bias, coverage of the profile interval of eps, decisions needed, verdicts  (10 minutes)
bandit   the same for players of a bandit
cohort   people drawn from a known group, recovered by empirical Bayes
people   Gershman (2018), both experiments, held out; needs --data DIR
folds    the same people, held out in several ways
planted  cohorts of two and three models: frequencies against fitting first
size     value against value and gradient, 10^4 decisions, memory of 10^5
arviz    a fit's tree in ArviZ: `loo` and `summary`

With --store DIR finished pieces are kept, and the same command goes on from there. With --record FILE what is measured
is written there with the day: docs/explanation/behaviour.json is such a file, from which the site's tables are made.
"""

import argparse
import json
import resource
import time
from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

from policychord.choices.data import TASKS, Reading, read_choices  # noqa: E402
from policychord.choices.learners import believe  # noqa: E402
from policychord.choices.models import classic  # noqa: E402
from policychord.choices.simulate import GROUPS, draw_people, simulate_choices  # noqa: E402
from policychord.inference import comparison, fit, groups, likelihoods, optimise, search, to_datatree  # noqa: E402
from policychord.inference.decisions import family_of, likelihood_of_setup, observations, setup_of  # noqa: E402
from policychord.inference.families import bandit, flock  # noqa: E402
from policychord.inference.parameters import at_bound, bounded, free_names, natural, real, size, unconstrained  # noqa: E402
from policychord.inference.recovery import Recovery, coverage, information, recover  # noqa: E402
from policychord.inference.selection import select_models  # noqa: E402
from policychord.inference.uncertainty import (  # noqa: E402
    Uncertainty,
    Verdict,
    curvature,
    inverse_of,
    profile,
    verdicts,
)
from policychord.worlds.bandit import Belief  # noqa: E402

FLOCK = {"eps": 0.5, "prior": [0.2, 0.5, 0.3], "collision": 2.0, "precision": 100.0, "sd": float(np.sqrt(0.1))}


def kept(options: argparse.Namespace, name: str, compute: Callable[[], dict[str, Any]]) -> dict[str, np.ndarray]:
    """What a piece of work gave: from the store if it is there, else computed and stored."""
    path = options.store / f"{name}.npz" if options.store else None
    if path is not None and path.exists():
        with np.load(path, allow_pickle=False) as found:
            return dict(found)
    if path is not None and time.process_time() > options.seconds:
        raise SystemExit(f"stopped after {options.seconds:.0f} s of processor time: the same command goes on")
    made = {key: np.asarray(value) for key, value in compute().items()}
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = path.with_name(f"{name}.part.npz")
        np.savez(whole, **made)
        whole.replace(path)  # complete, or not there
    return made


def record(options: argparse.Namespace, part: str, name: str, **values: Any) -> None:
    """Keep a row of the site's record, with the day."""
    if options.record is None:
        return
    rows = json.loads(options.record.read_text(encoding="utf-8")) if options.record.exists() else {}
    digits = {key: float(f"{value:.6g}") if isinstance(value, float) else value for key, value in values.items()}
    rows.setdefault(part, {})[name] = {"date": date.today().isoformat(), **digits}
    options.record.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def recovered(design: Any, truth: dict[str, Any], free: tuple[str, ...], options: argparse.Namespace) -> Recovery:
    """A recovery in pieces, each with a seed of its own; finished ones are read from the store."""
    pieces = []
    for piece in range(-(-options.repeats // options.each)):
        count, seed = min(options.each, options.repeats - piece * options.each), 1000 * options.seed + piece
        # profiles of many numbers are long: there the truth is tested instead, which gives the same coverage
        how: dict[str, Any] = {"profiles": ("ln eps",)} if len(free) < 3 else {"tests": ("ln eps",)}
        how["decisions"] = options.decisions
        compute = partial(recover, design.family, truth, design.simulate, count, free=free, seed=seed, **how)
        name = f"{design.family.name}-{'-'.join(free)}-{options.decisions}-{options.each}-{seed}"
        pieces.append(_read(kept(options, name, lambda compute=compute: _plain(compute()))))
    first = pieces[0]
    return first._replace(
        estimates=np.concatenate([one.estimates for one in pieces]),
        errors=np.concatenate([one.errors for one in pieces]),
        correlations=np.mean([one.correlations for one in pieces], axis=0),  # of the pieces' medians
        profiled={name: np.concatenate([one.profiled[name] for one in pieces]) for name in first.profiled},
        deviance={name: np.concatenate([one.deviance[name] for one in pieces]) for name in first.deviance},
        converged=np.concatenate([one.converged for one in pieces]),
        verdicts=tuple(verdict for one in pieces for verdict in one.verdicts),
    )


def _plain(found: Recovery) -> dict[str, Any]:
    return {
        "names": found.names, "truth": found.truth, "decisions": found.decisions, "estimates": found.estimates,
        "errors": found.errors, "correlations": found.correlations,
        **{f"profiled {name}": ends for name, ends in found.profiled.items()},
        **{f"deviance {name}": values for name, values in found.deviance.items()},
        "converged": found.converged, "grade": [[one.grade for one in row] for row in found.verdicts],
        "reason": [["; ".join(one.reasons) for one in row] for row in found.verdicts],
    }  # fmt: skip


def _read(kept: dict[str, np.ndarray]) -> Recovery:
    names = tuple(map(str, kept["names"]))
    told = tuple(
        tuple(Verdict(name, grade, tuple(reason.split("; "))) for name, grade, reason in zip(names, *row, strict=True))
        for row in zip(kept["grade"].tolist(), kept["reason"].tolist(), strict=True)
    )
    named = {what: {key.removeprefix(what): value for key, value in kept.items() if key.startswith(what)}
             for what in ("profiled ", "deviance ")}  # fmt: skip
    return Recovery(
        names, kept["truth"], int(kept["decisions"]), kept["estimates"], kept["errors"], kept["correlations"],
        named["profiled "], kept["converged"], told, named["deviance "],
    )  # fmt: skip


def show(found: Recovery, expected: tuple[Verdict, ...]) -> None:
    """A line for each number. `expected` are the verdicts that the information at the truth asks for."""
    print(f"  {len(found.estimates)} experiments of {found.decisions} decisions, {found.converged.sum()} converged")
    print("  number | truth | bias | sd | median error | Wald coverage | profile coverage | decisions for .1 | "
          "verdicts, those that the information at the truth asks for first")  # fmt: skip
    for j, name in enumerate(found.names):
        wald, profiled = coverage(found, name)
        after = "-" if profiled is None else f"{profiled.share:.3f} [{profiled.low:.3f}, {profiled.high:.3f}]"
        if name in found.profiled:
            after += f" ({int(np.isinf(found.profiled[name]).any(axis=1).sum())} open)"
        error = found.sd[j] / np.sqrt(len(found.estimates))
        grades = sorted(found.grades[name].items(), key=lambda one: one[0] != expected[j].grade)
        print(f"  {name} | {found.truth[j]:.3f} | {found.bias[j]:+.3f} ± {error:.3f} | {found.sd[j]:.3f} | "
              f"{np.median(found.errors[:, j]):.3f} | {wald.share:.3f} | {after} | {found.needed[j]:.0f} | "
              + ", ".join(f"{grade} {share:.2f}" for grade, share in grades))  # fmt: skip
    for first, second, value in found.pairs:
        told = [any(one.name == first and f"correlation with {second}" in " ".join(one.reasons) for one in row)
                for row in found.verdicts]  # fmt: skip
        print(f"  cannot be told apart well: {first} and {second}, correlation {value:.2f}; "
              f"named in {np.mean(told):.2f} of the experiments")  # fmt: skip


def record_recovery(options: argparse.Namespace, name: str, free: tuple[str, ...], found: Recovery) -> None:
    j = found.names.index("ln eps")
    wald, profiled = coverage(found, "ln eps")
    assert profiled is not None
    record(
        options, "recovery", f"{name}: {', '.join(free)}; {found.decisions}",
        family=name, free=list(free), numbers=len(found.names), decisions=found.decisions, repeats=len(found.estimates),
        bias=float(found.bias[j]), error=float(found.sd[j] / np.sqrt(len(found.estimates))), sd=float(found.sd[j]),
        needed=float(found.needed[j]), share=profiled.share, low=profiled.low, high=profiled.high, wald=wald.share,
        open=float(np.isinf(found.profiled["ln eps"]).any(axis=1).mean()) if "ln eps" in found.profiled else None,
        bound=float(at_bound(found.estimates).any(axis=1).mean()),
    )  # fmt: skip


def expected_of(design: Any, truth: dict[str, Any], free: tuple[str, ...], decisions: int = 1000) -> Any:
    """Verdicts that an ideal experiment gives: errors and correlations of the information at the truth."""
    known = information(design.family, truth, design.simulate(truth, 2000, 1), free=free)
    sd = np.sqrt(np.diag(known.covariance) / decisions)
    ends = np.stack([known.z - 1.96 * sd, known.z + 1.96 * sd], axis=-1)
    sure = Uncertainty(known.matrix * decisions, known.covariance / decisions, known.covariance, ends, known.flat)
    _, chosen, _ = family_of(design.family, free, {})
    return known, verdicts(chosen, known.z, sure)


def cases(options: argparse.Namespace, *all_of_them: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    return all_of_them if options.case is None else all_of_them[options.case : options.case + 1]


def run_flock(options: argparse.Namespace) -> None:
    design = flock()
    for free in cases(options, ("eps", "prior"), ("eps", "prior", "collision", "precision")):
        begun = time.process_time()
        print(f"flock, free: {', '.join(free)}", flush=True)
        found = recovered(design, FLOCK, free, options)
        show(found, expected_of(design, FLOCK, free, options.decisions)[1])
        record_recovery(options, "flock", free, found)
        print(f"  CPU {time.process_time() - begun:.0f} s, of pieces that were not stored", flush=True)
    for eps in (0.1, 0.5, 2.0) if options.case is None else ():
        known, _ = expected_of(design, {**FLOCK, "eps": eps}, ("eps", "prior", "collision", "precision"))
        print(
            f"flock, information at eps {eps}:", dict(zip(known.names, known.needed.round().astype(int), strict=True))
        )
        print("  alone:", dict(zip(known.names, known.needed_alone.round().astype(int), strict=True)), known.pairs)


def run_bandit(options: argparse.Namespace) -> None:
    design = bandit()
    truth = {"coef": [1.0, 0.16], "eps": 0.1, "prior": [0.5, 0.2, 0.3]}
    for free in cases(options, ("eps",), ("eps", "prior"), ("coef", "eps", "prior")):
        print(f"bandit, free: {', '.join(free)}", flush=True)
        found = recovered(design, truth, free, options)
        show(found, expected_of(design, truth, free, options.decisions)[1])
        record_recovery(options, "bandit", free, found)


def run_cohort(options: argparse.Namespace) -> None:
    """People drawn from a known group: its mean and spread by empirical Bayes, everybody's numbers with and without."""
    people, trials, free = 40, 200, ("coef", "prior")
    design = bandit()
    known, chosen, rest = family_of(design.family, free, {"eps": 0.1})
    mean = unconstrained(chosen, {"coef": [1.0, 0.16], "prior": [0.5, 0.2, 0.3]})
    sd = np.array([0.4, 0.08, 0.6, 0.6])
    names = free_names(chosen)

    def one_of(cohort: int) -> dict[str, Any]:
        z = mean + sd * np.random.default_rng([cohort, 7]).normal(size=(people, len(mean)))
        parts = []
        for person in range(people):
            theta = {name: np.asarray(value) for name, value in natural(chosen, z[person]).items()} | {"eps": 0.1}
            parts.append(design.simulate(theta, trials, 1000 * cohort + person)._replace(
                subject=np.full(trials, person)))  # fmt: skip
        seen = jax.tree_util.tree_map(lambda *leaves: np.concatenate(leaves), *parts)
        given = likelihood_of_setup(setup_of(known._replace(features=None), seen, chosen, rest))
        group, single = groups.empirical_bayes(given, starts=2), alone(given, 2)
        return {
            "offset": group.mean - mean, "error": group.error, "spread": np.sqrt(np.diag(group.covariance)),
            "shrunk": np.median(np.abs(group.z - z), axis=0), "own": np.median(np.abs(single - z), axis=0),
        }  # fmt: skip

    rows = [kept(options, f"cohort-{cohort}", partial(one_of, cohort)) for cohort in range(options.cohorts)]
    offset, error, spread, shrunk, own = (np.array([row[key] for row in rows]) for key in
                                          ("offset", "error", "spread", "shrunk", "own"))  # fmt: skip
    print(f"cohort: {options.cohorts} cohorts of {people} people with {trials} trials each, eps known")
    print("  number | group mean | bias | sd over cohorts | mean error told | within 2 errors | group sd: truth, found "
          "| median |error| of a person: shrunk, alone")  # fmt: skip
    for j, name in enumerate(names):
        held = int((np.abs(offset[:, j]) <= 2 * error[:, j]).sum())
        print(f"  {name} | {mean[j]:.3f} | {offset[:, j].mean():+.3f} | {offset[:, j].std(ddof=1):.3f} | "
              f"{error[:, j].mean():.3f} | {held} of {options.cohorts} | {sd[j]:.2f}, {spread[:, j].mean():.2f} | "
              f"{shrunk[:, j].mean():.3f}, {own[:, j].mean():.3f}")  # fmt: skip


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
    return likelihood_of_setup(setup_of(bandit(variance).family._replace(features=None), seen, free))


def hybrids(seen: Any, lapse: bool) -> Any:
    declared = [real("coef", [1.0, 0.16], labels=("V/TU", "RU"))] + [bounded("lapse", 0, 1, 0.05)] * lapse
    data = {"observation": seen.observation, "action": np.asarray(seen.action), "k": seen.k}
    return likelihoods.likelihood(
        likelihoods.Model("hybrid", tuple(declared), hybrid), data, groups=seen.subject, at_once=256
    )


def alone(given: Any, starts: int = 4) -> Any:
    """Everybody by maximum likelihood, from several starts."""
    objective, centre = optimise.objective_of(given), unconstrained(given.parameters, {})
    rng, best, value = np.random.default_rng(0), None, None
    for i in range(starts):
        begin = np.tile(centre, (given.groups, 1)) + (rng.normal(size=(given.groups, len(centre))) if i else 0.0)
        found = search.maximise_groups(objective, begin)
        if best is None:
            best, value = found.z, found.log_posterior
        else:
            best = np.where((found.log_posterior > value)[:, None], found.z, best)
            value = np.maximum(found.log_posterior, value)
    return best


def after_hybrid(given: Any) -> np.ndarray:
    """As published: everybody's coefficients are the Hybrid's, and what else is free is fitted given them."""
    other = likelihoods.likelihood(
        likelihoods.Model("hybrid", (real("coef", [1.0, 0.16], labels=("V/TU", "RU")),), hybrid),
        given.data, groups=given.group, at_once=256,
    )  # fmt: skip
    coef, whole = alone(other), optimise.objective_of(given)
    rest = unconstrained(given.parameters, {})[2:]
    if not rest.size:
        return coef

    def objective(x: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, ...]:
        value, gradient, products = whole(np.hstack([coef[which], x]), which)
        return value, gradient[:, 2:], products[:, 2:, 2:]

    begin = np.tile(rest, (given.groups, 1))
    ends = [search.maximise_groups(objective, begin + shift) for shift in (0.0, 2.0)]
    best = np.where((ends[0].log_posterior >= ends[1].log_posterior)[:, None], ends[0].z, ends[1].z)
    return np.hstack([coef, best])


def open_below(given: Any, z: np.ndarray, depth: float = 4.0) -> int:
    """How many people's likelihood of ln eps, all else as estimated, is still within 1.92 nats far below."""
    lower = z.copy()
    lower[:, 2] -= depth
    objective = optimise.objective_of(given)
    everyone = np.arange(len(z))
    return int((objective(z, everyone)[0] - objective(lower, everyone)[0] < 1.92).sum())


def run_people(options: argparse.Namespace) -> None:
    if options.data is None:
        raise SystemExit("people: pass --data DIR with data1.csv and data2.csv (policychord choices data fetch).")
    for number in (options.experiment,) if options.experiment else ("1", "2"):
        task = TASKS[number]
        how = Reading(doubtful="drop")  # as published: slow trials are neither learned from nor scored
        seen = people(believe(read_choices(options.data / f"data{number}.csv", task, how=how)))
        fold = np.unique(seen.block, return_inverse=True)[1].reshape(-1) % options.folds
        print(f"Experiment {number}: {seen.size} trials; {options.folds} folds of blocks in turn", flush=True)
        models = {
            "Hybrid": partial(hybrids, seen, False),
            "Hybrid with a lapse": partial(hybrids, seen, True),
            "composed, own coefficients": partial(players, seen, task.variance, ("coef",)),
            "composed, own coefficients and prior": partial(players, seen, task.variance, ("coef", "prior")),
            "composed, own coefficients and eps": partial(players, seen, task.variance, ("coef", "eps")),
            "composed, all": partial(players, seen, task.variance, ("coef", "eps", "prior")),
        }
        shrunk = {}
        print("  model | parameters | log-likelihood | BIC | held out, by person | held out, empirical Bayes")
        for name, make in models.items():
            found = {}
            for step in ("inside", "own", "shrunk", *(["ends"] if name.endswith("and eps") else [])):
                compute = partial(_of_people, make, fold, step)
                found |= kept(options, f"people-{number}-{options.folds}-{name}-{step}", compute)
            shrunk[name] = found["shrunk"]
            print(f"  {name} | {found['parameters']} | {found['inside'].sum():.2f} | {found['bic']:.1f} | "
                  f"{found['own'].mean():.4f} | {found['shrunk'].mean():.4f}", flush=True)  # fmt: skip
            if "ends" in found:
                ends = found["ends"]
                print(f"    profile of eps open below in {np.isinf(ends[:, 0]).sum()} of {len(ends)} people")
        _as_published(options, seen, fold, number, task.variance)
        for name in list(models)[2:]:
            for other in ("Hybrid with a lapse", "composed, own coefficients"):
                if name != other:
                    gain = comparison.paired(shrunk[name], shrunk[other], seen.subject)
                    print(f"  {name} over {other}: {gain.mean * seen.size:+.0f} ± {gain.error * seen.size:.0f} nats")


def _as_published(
    options: argparse.Namespace, seen: Any, fold: np.ndarray, number: str, variance: tuple[float, ...]
) -> None:
    """Coefficients of the Hybrid; temperature or prior on top of them."""
    scores = {}
    for free in (("coef",), ("coef", "eps"), ("coef", "prior")):

        def compute(free: tuple[str, ...] = free) -> dict[str, Any]:
            given = players(seen, variance, free)
            z = after_hybrid(given)
            inside, count = likelihoods.pointwise(given, z), size(given.parameters)
            return {
                "inside": inside, "bic": count * np.log(np.bincount(given.group)).sum() - 2 * inside.sum(),
                "held_out": held_out_with(after_hybrid, given, fold),
                "open": open_below(given, z) if "eps" in free else -1, "people": given.groups,
            }  # fmt: skip

        found = kept(options, f"people-{number}-{options.folds}-published-{'-'.join(free)}", compute)
        scores[free] = found["held_out"]
        print(f"  composed, the Hybrid's coefficients{''.join(f' and {one}' for one in free[1:])} | "
              f"{found['inside'].sum():.2f} | {found['bic']:.1f} | held out {found['held_out'].mean():.4f}"
              + (f" | eps open below in {found['open']} of {found['people']}" if found["open"] >= 0 else ""),
              flush=True)  # fmt: skip
    for free in list(scores)[1:]:
        gain = comparison.paired(scores[free], scores[("coef",)], seen.subject)
        print(f"    fitting {free[1]} adds {gain.mean * seen.size:+.0f} ± {gain.error * seen.size:.0f} nats held out")


def held_out_with(fitted: Callable[[Any], np.ndarray], given: Any, fold: np.ndarray) -> np.ndarray:
    """ln p of each unit under what `fitted` gives for the likelihood of the others, (groups, K)."""
    folds = [fitted(likelihoods.restrict(given, fold != k)) for k in range(int(fold.max()) + 1)]
    return comparison.held_out(given, fold, np.stack(folds))


def _of_people(make: Callable[[], Any], fold: np.ndarray, step: str) -> dict[str, Any]:
    """One step with one model: everybody by likelihood, held out, held out by empirical Bayes, profiles of eps."""
    given = make()
    if step == "own":
        return {"own": held_out_with(alone, given, fold)}
    if step == "shrunk":
        return {"shrunk": held_out_with(lambda train: groups.empirical_bayes(train, rounds=6, starts=2).z, given, fold)}
    z = alone(given, 8)  # the likelihood of some people has several hills
    if step == "ends":
        objective = optimise.objective_of(given)
        covariance, _ = inverse_of(curvature(objective, z))
        return {"ends": profile(objective, z, objective(z, np.arange(len(z)))[0], covariance, 2)}
    inside, count = likelihoods.pointwise(given, z), size(given.parameters)
    bic = count * np.log(np.bincount(given.group)).sum() - 2 * inside.sum()
    return {"parameters": count, "inside": inside, "bic": bic}


DIVISIONS: dict[str, Callable[[np.ndarray, np.random.Generator], np.ndarray]] = {  # of (block, rng): a fold a trial
    "odd and even blocks": lambda block, rng: block % 2,
    "every third block": lambda block, rng: block % 3,
    "every fourth block": lambda block, rng: block % 4,
    "every fifth block": lambda block, rng: block % 5,
    "every tenth block": lambda block, rng: block % 10,
    "halves in sequence": lambda block, rng: block * 2 // (block.max() + 1),
    "fifths in sequence": lambda block, rng: block * 5 // (block.max() + 1),
    "halves of the blocks at random": lambda block, rng: (rng.permutation(block.max() + 1) % 2)[block],
    "fifths of the blocks at random": lambda block, rng: (rng.permutation(block.max() + 1) % 5)[block],
    "fifths of the trials at random": lambda block, rng: rng.integers(0, 5, len(block)),
}


def run_folds(options: argparse.Namespace) -> None:
    """How trials are divided: the same models by empirical Bayes, held out in several ways."""
    if options.data is None:
        raise SystemExit("folds: pass --data DIR with data1.csv and data2.csv (policychord choices data fetch).")
    for number in (options.experiment,) if options.experiment else ("1", "2"):
        task = TASKS[number]
        seen = people(believe(read_choices(options.data / f"data{number}.csv", task, how=Reading(doubtful="drop"))))
        block = np.unique(seen.block, return_inverse=True)[1].reshape(-1)
        models = {
            "composed": partial(players, seen, task.variance, ("coef", "prior")),
            "Hybrid with a lapse": partial(hybrids, seen, True),
        }
        print(
            f"Experiment {number}: {seen.size} trials; empirical Bayes, held out, nats per trial: {', '.join(models)}"
        )
        for name, divide in DIVISIONS.items():
            draws = options.draws if name.endswith("at random") else 1
            found = np.array(
                [
                    [
                        kept(options, f"folds-{number}-{name}-{draw}-{model}",
                             partial(_of_people, make, divide(block, np.random.default_rng(draw)), "shrunk"))["shrunk"]
                        for model, make in models.items()
                    ]
                    for draw in range(draws)
                ]
            )  # fmt: skip
            scores = found.mean(axis=2)
            ends = dict(zip(models, np.stack([scores.min(axis=0), scores.max(axis=0)], axis=1).tolist(), strict=True))
            gain = comparison.paired(*found.mean(axis=0), seen.subject)
            record(options, "folds", f"{number}: {name}", experiment=number, division=name, draws=draws, gain=gain.mean,
                   error=gain.error, ends=ends, **dict(zip(models, map(float, scores.mean(axis=0)), strict=True))
                   )  # fmt: skip
            print(f"  {name} | " + " | ".join(f"{one:.4f}" for one in scores.mean(axis=0))
                  + f" | composed adds {gain.mean:+.4f} ± {gain.error:.4f}"
                  + (f" | {draws} draws, from and to: {ends}" if draws > 1 else ""), flush=True)  # fmt: skip


# ------------------------------------------------------------------------------------------------ planted


def run_planted(options: argparse.Namespace) -> None:
    """Cohorts that mix people of known models: who finds the frequencies better?"""
    for names in (("Thompson", "Value"), ("Thompson", "UCB", "Value")):
        if options.models not in (None, len(names)):
            continue
        print(f"planted: {', '.join(names)}; 30 people with {10 * options.blocks} trials each", flush=True)
        rows = [
            kept(
                options,
                f"planted-{len(names)}-{options.blocks}-{cohort}",
                partial(_planted, names, cohort, options.blocks),
            )
            for cohort in range(options.seed, options.seed + options.cohorts)
        ]
        missed, held = {}, {}
        for how in ("together", "first"):
            missed[how] = np.array([np.abs(row[how] - row["truth"]).mean() for row in rows])
            inside = np.array([np.abs(row[how] - row["drawn"]) <= 2 * row[f"{how} sd"] for row in rows]).mean(axis=1)
            held[how] = (float(inside.mean()), *map(float, bootstrap(inside)))
            print(f"  {how}: mean |error| of frequencies {missed[how].mean():.4f}, truth within 2 posterior sd "
                  "{:.3f} ({:.3f} to {:.3f})".format(*held[how]))  # fmt: skip
        gain = missed["first"] - missed["together"]
        low, high = map(float, bootstrap(gain))
        won, lost = int((gain > 0).sum()), int((gain < 0).sum())
        print(f"  gain {gain.mean():.4f} ({low:.4f} to {high:.4f}; ± {gain.std(ddof=1) / np.sqrt(len(gain)):.4f}), "
              f"{won} won, {lost} lost, over {len(rows)} cohorts", flush=True)  # fmt: skip
        record(
            options, "planted", f"{len(names)} models, {10 * options.blocks} trials", models=list(names),
            trials=10 * options.blocks, cohorts=len(rows), together=float(missed["together"].mean()),
            first=float(missed["first"].mean()), gain=float(gain.mean()), low=low, high=high, won=won, lost=lost,
            held=held["together"], held_first=held["first"],
        )  # fmt: skip


def bootstrap(values: np.ndarray, draws: int = 4000) -> np.ndarray:
    """The 95% interval of a mean over cohorts."""
    which = np.random.default_rng(0).integers(0, len(values), size=(draws, len(values)))
    return np.quantile(values[which].mean(axis=1), [0.025, 0.975])


def _planted(names: tuple[str, ...], cohort: int, blocks: int) -> dict[str, Any]:
    """A cohort of 30 people: the shares they were drawn by, their own, and what both ways find."""
    rng = np.random.default_rng([cohort, len(names)])
    drawn = rng.dirichlet(np.full(len(names), 2.0))
    counts = rng.multinomial(30, drawn)
    parts = []
    for k, (name, count) in enumerate(zip(names, counts, strict=True)):
        if count:
            coef = draw_people(GROUPS["2"][name], int(count), (cohort, k))
            parts.append(
                simulate_choices(TASKS["2"], classic(name), coef, blocks=blocks, trials=10, seed=(cohort, k, 1))
            )
    trials = [believe(part) for part in parts]
    offset = np.cumsum([0] + [int(part.subject.max()) for part in trials])
    seen = [people(t._replace(subject=t.subject + o)) for t, o in zip(trials, offset, strict=False)]
    seen = jax.tree_util.tree_map(lambda *leaves: np.concatenate(leaves), *seen)
    return {"drawn": drawn, "truth": counts / counts.sum(), **_frequencies(names, seen)}


def _frequencies(names: tuple[str, ...], seen: Any) -> dict[str, Any]:
    models = [likelihoods.likelihood(likelihoods.Model(name, tuple(_declared(name)), partial_of(name)), _data(seen),
                                     groups=seen.subject, at_once=256)
              for name in names]  # fmt: skip
    found = groups.model_frequencies(models, starts=2)
    counts = np.bincount(models[0].group)
    evidence = []
    for given in models:
        _, value = _alone_with_value(given)
        evidence.append(value - 0.5 * size(given.parameters) * np.log(counts))
    bic = np.stack(evidence, axis=1)
    first = select_models(bic)
    return {
        "together": found.expected, "together sd": found.error, "together evidence": found.log_evidence,
        "rounds": found.rounds, "converged": found.converged,
        "first": first.expected, "first evidence": bic,
        "first sd": np.sqrt(first.expected * (1 - first.expected) / (first.alpha.sum() + 1)),
    }  # fmt: skip


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
    seen = design.simulate(FLOCK, 10_000, 0)
    given = likelihood_of_setup(setup_of(design.family, seen, ("eps", "prior", "collision")))
    z = unconstrained(given.parameters, {one.name: FLOCK[one.name] for one in given.parameters})
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
    begun, clock = time.process_time(), time.perf_counter()
    best = optimise.maximise(given, starts=8)
    print(f"  4 numbers, 10^4 decisions, 8 starts: CPU {time.process_time() - begun:.1f} s (wall "
          f"{time.perf_counter() - clock:.1f}), {best.evaluations} evaluations, converged {best.converged}",
          flush=True)  # fmt: skip
    many = jax.tree_util.tree_map(lambda leaf: np.concatenate([leaf] * 10), seen)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    begun = time.process_time()
    whole = fit(design.family, many, ("eps", "prior", "collision"), starts=2, compare=False, profiles=False)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"  10^5 decisions, a whole fit without rivals and profiles: peak memory of the process {peak:.2f} GiB "
          f"({before:.2f} before), CPU {time.process_time() - begun:.0f} s, "
          f"largest gap {whole.gap.max():.1e}")  # fmt: skip


def run_arviz(options: argparse.Namespace) -> None:
    import arviz as az

    design = bandit()
    seen = design.simulate({"coef": [1.0, 0.16], "eps": 0.1, "prior": [0.5, 0.2, 0.3]}, 2000, 0)
    seen = seen._replace(subject=np.arange(seen.size) // 200)
    for how in (None, "subject"):
        found = fit(design.family, seen, ("coef", "prior"), {"eps": 0.1}, how, starts=2, compare=False, profiles=False)
        tree = to_datatree(found, draws=200)
        read = az.InferenceData.from_datatree(tree) if hasattr(az, "InferenceData") else tree
        print(f"arviz {az.__version__}, groups {how}: log-likelihood {found.log_likelihood:.2f}")
        print(az.summary(read, var_names=["coef", "prior"], kind="stats"))
        loo = az.loo(read)
        print(f"  loo {loo.elpd_loo:.2f} ± {loo.se:.2f}, p {loo.p_loo:.2f}, largest finite Pareto k "
              f"{float(np.max(np.where(np.isfinite(loo.pareto_k), loo.pareto_k, -1))):.2f}")  # fmt: skip


def main() -> None:
    parts = {"flock": run_flock, "bandit": run_bandit, "cohort": run_cohort, "people": run_people,
             "folds": run_folds, "planted": run_planted, "size": run_size, "arviz": run_arviz}  # fmt: skip
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="+", choices=tuple(parts))
    parser.add_argument("--repeats", type=int, default=200, help="experiments of a recovery")
    parser.add_argument("--decisions", type=int, default=1000, help="of an experiment of a recovery")
    parser.add_argument("--cohorts", type=int, default=20, help="planted cohorts")
    parser.add_argument("--blocks", type=int, default=6, help="of ten trials, a person in planted cohorts")
    parser.add_argument("--folds", type=int, default=2, help="of blocks in turn, for people")
    parser.add_argument("--draws", type=int, default=1, help="of folds at random")
    parser.add_argument("--experiment", choices=("1", "2"), default=None, help="of people; both unless given")
    parser.add_argument(
        "--models", type=int, choices=(2, 3), default=None, help="of planted cohorts; both unless given"
    )
    parser.add_argument("--case", type=int, default=None, help="of a recovery: which set of free parameters, from 0")
    parser.add_argument("--seed", type=int, default=0, help="of a recovery; the first planted cohort")
    parser.add_argument("--each", type=int, default=25, help="of a recovery: experiments that are one piece of work")
    parser.add_argument("--seconds", type=float, default=np.inf, help="of processor time, after which no piece begins")
    parser.add_argument("--store", type=Path, default=None, help="folder that keeps finished pieces")
    parser.add_argument("--record", type=Path, default=None, help="JSON file of what was measured, to be added to")
    parser.add_argument("--data", type=Path, default=None, help="folder of the public data")
    options = parser.parse_args()
    for part in options.part:
        parts[part](options)


if __name__ == "__main__":
    main()
