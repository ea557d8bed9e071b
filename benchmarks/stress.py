"""Solve random and hostile problems: answers without a certificate are failures, certificates below the truth are lies.

python -m benchmarks.stress                                      # about five minutes on one core
python -m benchmarks.stress --ordinary 1000000 --adversarial 100000 --judged 5000 --large 50
python -m benchmarks.stress --only "near ties" --adversarial 2000 --judged 500 --route jax
python -m benchmarks.stress --ordinary 100000 --adversarial 0 --judged 0 --large 0 --record outcomes.npz
python -m benchmarks.stress --ordinary 100000 --adversarial 0 --judged 0 --large 0 --against outcomes.npz

`adversarial.py` has the ordinary families, which every version has to solve; `hostile.py` those on which it may say
that rounding is the limit, but never prove what is not true; `truth.py` judges.
"""

import argparse
import json
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from policychord import Outcome, certify, problem, solve
from policychord.core._method import RETRY_AFTER
from policychord.core.equilibrium import Route

from . import hostile
from .adversarial import PRIMITIVES, PROBLEMS_PER_BATCH, draw
from .truth import Verdict, judge, objective_of

TOL = 1e-10
OFF_SIMPLEX = 1e-12
LARGEST_JUDGED = 10_000  # entries of an ordinary problem that is judged
QUANTILES = (0.0, 0.05, 0.5, 0.95, 1.0)
GIVEN = -1  # the outcome of weights that were not searched for
REFUSED = -2  # the outcome of a problem that `problem` or `solve` does not accept


class Answer(NamedTuple):
    """Weights, what is claimed of them, and how the search ended, for each problem of a batch."""

    weights: np.ndarray
    gap: np.ndarray
    distance: np.ndarray
    outcome: np.ndarray
    passes: np.ndarray


class Tally(NamedTuple):
    """What became of some problems of a family."""

    outcome: np.ndarray
    failed: np.ndarray
    passes: np.ndarray
    worst: np.ndarray  # the larger of the gaps that `solve` and `certify` give
    verdicts: list[Verdict]


# -------------------------------------------------------------------------------- answers


def answer(problems: Any, start: np.ndarray | None, route: Route) -> Answer:
    """What `solve` finds, also where it misses the tolerance."""
    best = solve(problems, TOL, start, route=route, throw=False)
    gap, distance = (np.asarray(bound) for bound in best.certificate)
    return Answer(np.asarray(best.weights), gap, distance, np.asarray(best.outcome), np.asarray(best.passes, float))


def examine(problems: Any, found: Answer, retry: bool) -> Tally:
    """Check the answers, not trusting the solver's own certificate. Rounding may be the limit; nothing else may."""
    finite = np.isfinite(found.weights).all(-1)
    on_simplex = (np.abs(found.weights.sum(-1) - 1.0) <= OFF_SIMPLEX) & (found.weights >= 0.0).all(-1)
    usable = finite & on_simplex
    certified = np.full(usable.shape, np.nan)
    if usable.any():
        certified[usable] = np.asarray(certify(chosen(problems, usable), found.weights[usable]).gap)
    worst = np.fmax(found.gap, certified)
    # written so that NaN counts as a failure; a negative bound on a distance would be a wrong one
    proven = (found.gap >= 0.0) & (found.gap <= TOL) & (certified >= 0.0) & (certified <= TOL)
    limited = (found.outcome == Outcome.ROUNDING_LIMIT) & (found.gap > 0.0)
    failed = ~(usable & (limited | (proven & (found.outcome == Outcome.CONVERGED))))
    return Tally(found.outcome, failed if retry else failed | (found.passes > RETRY_AFTER), found.passes, worst, [])


def chosen(problems: Any, which: Any) -> Any:
    """Some problems of a batch."""
    return jax.tree.map(lambda leaf: leaf[which], problems)


# ---------------------------------------------------------------------------- the families


class Run(NamedTuple):
    """What the command line asked for."""

    seed: int
    route: Route
    retry: bool
    folder: Path


def ordinary(run: Run, index: int, most: int, judged: int) -> tuple[tuple[str, ...], Tally]:
    """A batch of `adversarial`, all of it solved, some of it judged."""
    batch = draw(run.seed, index, most)
    problems = problem(**batch.arrays._asdict())
    found = answer(problems, batch.start, run.route)
    tally = examine(problems, found, run.retry)
    few = judged if batch.arrays.pi[0].size <= LARGEST_JUDGED else 0
    verdicts = judged_some(problems, found, few)
    given = {k: v for k, v in {**batch.arrays._asdict(), "start": batch.start}.items() if v is not None}
    for k in np.flatnonzero(tally.failed):
        keep(run, f"failure-ordinary-{index}-{k}", batch.kinds, given, int(k))
    for k, verdict in verdicts.items():
        if not verdict.honest:
            keep(run, f"dishonest-ordinary-{index}-{k}", batch.kinds, given, k, found)
    return ("ordinary", *batch.kinds), tally._replace(verdicts=list(verdicts.values()))


def adversarial(run: Run, case: hostile.Case, name: str, judged: int) -> Tally:
    """A batch of `hostile`; what is not accepted is refused and proves nothing, wrongly or not."""
    tallies = []
    for problems, weights in accepted(case):
        if problems is None:
            tallies.append(_without_answer(REFUSED))
            continue
        try:
            if weights is None:
                found = answer(problems, None, run.route)
            else:
                gap, distance = (np.asarray(bound) for bound in certify(problems, weights))
                found = Answer(weights, gap, distance, np.full(gap.shape, GIVEN), np.full(gap.shape, np.nan))
        except ValueError:
            tallies.append(_without_answer(REFUSED, len(problems.eps)))
            continue
        verdicts = judged_some(problems, found, judged)
        failed = ~(found.gap >= 0.0)  # NaN too is not a bound
        lies = [k for k, verdict in verdicts.items() if not verdict.honest]
        for kind, which in (("failure", np.flatnonzero(failed).tolist()), ("dishonest", lies)):
            for k in which:
                objective = objective_of(problems, k)._asdict()
                kept = {key: np.asarray(value)[None] for key, value in objective.items() if value is not None}
                keep(run, f"{kind}-{name}-{k}", (case.family,), kept, 0, chosen(found, slice(k, k + 1)))
        tallies.append(Tally(found.outcome, failed, found.passes, found.gap, list(verdicts.values())))
    return joined(tallies)


def accepted(case: hostile.Case) -> list[tuple[Any, np.ndarray | None]]:
    """The batch as a problem; where `problem` refuses it, one by one, with None for what is refused."""
    try:
        return [(problem(**case.given), case.weights)]
    except ValueError:
        pass
    found: list[tuple[Any, np.ndarray | None]] = []
    for k in range(len(case.given["eps"])):
        given = {name: _row(value, k) for name, value in case.given.items()}
        try:
            found.append((problem(**given), None if case.weights is None else case.weights[k : k + 1]))
        except ValueError:
            found.append((None, None))
    return found


def _row(value: Any, k: int) -> Any:
    if isinstance(value, np.ndarray):
        return value[k : k + 1]
    return value if isinstance(value, str) else type(value)(*(_row(np.asarray(part), k) for part in value))


def _without_answer(outcome: int, count: int = 1) -> Tally:
    nothing = np.full(count, np.nan)
    return Tally(np.full(count, outcome), np.zeros(count, bool), nothing, nothing, [])


def judged_some(problems: Any, found: Answer, count: int) -> dict[int, Verdict]:
    """Verdicts on `count` of the answers, evenly spaced; also on those for which rounding was the limit."""
    usable = np.flatnonzero(np.isfinite(found.weights).all(-1) & (found.weights >= 0.0).all(-1))
    picks = usable[np.unique(np.linspace(0, usable.size - 1, min(count, usable.size)).astype(int))] if count else []
    return {
        int(k): judge(objective_of(problems, int(k)), found.weights[k], found.gap[k], found.distance[k]) for k in picks
    }


def joined(tallies: list[Tally]) -> Tally:
    """Several tallies as one."""
    arrays = [np.concatenate(parts) for parts in list(zip(*tallies, strict=True))[:4]]
    return Tally(*arrays, [verdict for tally in tallies for verdict in tally.verdicts])


def keep(run: Run, name: str, kinds: tuple[str, ...], given: dict, k: int, found: Answer | None = None) -> None:
    """Save a problem that failed, so that it can be solved again on its own."""
    run.folder.mkdir(parents=True, exist_ok=True)
    rows = {key: value[k] for key, value in given.items()}
    if found is not None:
        position = min(k, len(found.gap) - 1)
        rows |= {key: getattr(found, key)[position] for key in ("weights", "gap", "distance")}
    np.savez(run.folder / f"{name.replace(' ', '-')}-seed-{run.seed}.npz", kinds=np.array(kinds), **rows)


# --------------------------------------------------------------------------------- the run


def share(budget: int, batches: int, index: int) -> int:
    """What batch number `index` has of a budget that is spread evenly over all batches."""
    return budget * (index + 1) // batches - budget * index // batches


def run_all(run: Run, sizes: argparse.Namespace, families: list[str], console: Console) -> dict[str, list[Tally]]:
    """Draw, solve and judge everything, with a bar for each part."""
    tallies: dict[str, list[Tally]] = defaultdict(list)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, TextColumn("{task.fields[bad]} bad"), console=console) as progress:
        per_family = sizes.judged // (len(families) + (1 if sizes.ordinary else 0) or 1)
        if sizes.ordinary:
            task = progress.add_task("ordinary", total=sizes.ordinary, bad=0)
            done = bad = index = 0
            expected = max(1, sizes.ordinary // 24)  # batches: large problems come fewer at a time
            while done < sizes.ordinary:
                judged = share(per_family, expected, index % expected) if index < expected else 0
                kinds, tally = ordinary(run, index, min(PROBLEMS_PER_BATCH, sizes.ordinary - done), judged)
                for kind in kinds:
                    tallies[kind].append(tally)
                done, bad, index = done + tally.failed.size, bad + _bad(tally), index + 1
                progress.update(task, completed=done, bad=bad)
        for family in families if sizes.adversarial else ():
            count = -(-sizes.adversarial // len(families))
            task = progress.add_task(family, total=count, bad=0)
            done = bad = index = 0
            size = 4 if family.endswith("sums") else hostile.BATCH
            while done < count:
                case = hostile.draw(family, run.seed, index)
                tally = adversarial(run, case, f"{family}-{index}", share(per_family, -(-count // size), index))
                tallies[family].append(tally)
                done, bad, index = done + tally.failed.size, bad + _bad(tally), index + 1
                progress.update(task, completed=min(done, count), bad=bad)
        if sizes.large:
            task = progress.add_task("large", total=sizes.large, bad=0)
            bad = 0
            for index in range(sizes.large):
                case = hostile.large(run.seed, index)
                tally = adversarial(run, case, f"large-{index}", 1)
                tallies[case.family].append(tally)
                bad += _bad(tally)
                progress.update(task, completed=index + 1, bad=bad)
    return tallies


def _bad(tally: Tally) -> int:
    return int(tally.failed.sum()) + sum(not verdict.honest for verdict in tally.verdicts)


def summary(tallies: list[Tally]) -> dict[str, Any]:
    """Counts, outcomes, passes, and how far bounds are above the truth, of one family."""
    tally = joined(tallies)
    known = tally.passes[np.isfinite(tally.passes)]
    gaps = tally.worst[np.isfinite(tally.worst)]
    verdicts = tally.verdicts
    over = [v.gap / v.excess for v in verdicts if np.inf > v.gap and np.inf > v.excess > max(0.0, 2.0 * v.slack)]
    quantiles = dict(zip(map(str, QUANTILES), np.quantile(over, QUANTILES).tolist(), strict=True)) if over else None
    return {
        "count": int(tally.outcome.size),
        "failures": int(tally.failed.sum()),
        "converged": int((tally.outcome == Outcome.CONVERGED).sum()),
        "rounding_limit": int((tally.outcome == Outcome.ROUNDING_LIMIT).sum()),
        "refused": int((tally.outcome == REFUSED).sum()),
        "others": int((~np.isin(tally.outcome, [Outcome.CONVERGED, Outcome.ROUNDING_LIMIT, REFUSED, GIVEN])).sum()),
        "judged": len(verdicts),
        "dishonest": sum(not v.honest for v in verdicts),
        "dishonest_as_stored": sum(not v.stored for v in verdicts),
        "dishonest_rescaled": sum(not v.rescaled for v in verdicts),
        "judge_not_sharp": sum(bool(v.slack > 1e-6 * v.gap) for v in verdicts if np.isfinite(v.excess)),
        "bound_over_truth": quantiles,
        "largest_shortfall": max((v.excess - v.gap for v in verdicts if not v.honest), default=None),
        "retries": int((known > RETRY_AFTER).sum()),
        "passes_mean": float(known.mean()) if known.size else None,
        "passes_p99": float(np.percentile(known, 99)) if known.size else None,
        "passes_max": int(known.max()) if known.size else None,
        "worst_gap": float(gaps.max()) if gaps.size else None,
    }  # fmt: skip


def show(rows: dict[str, dict], seconds: float, console: Console) -> None:
    """Hostile families first; every ordinary problem is counted again under its primitives, cost, prior and start."""
    table = Table(title=f"tol {TOL:.0e}; judged in many digits; {seconds:.0f} s")
    table.add_column("family", no_wrap=True)
    names = (
        "count",
        "failed",
        "limit",
        "other",
        "refused",
        "passes",
        "judged",
        "dishonest",
        "bound/truth 5%",
        "50%",
        "95%",
    )
    for name in names:
        table.add_column(name, justify="right")
    for kind, row in rows.items():
        keys = ("count", "failures", "rounding_limit", "others", "refused")
        cells = [f"{row[key]:,}" for key in keys]
        cells.append("-" if row["passes_mean"] is None else f"{row['passes_mean']:.1f}")
        cells += [f"{row[key]:,}" for key in ("judged", "dishonest", "dishonest_rescaled")]
        over = row["bound_over_truth"]
        cells += ["-" if over is None else f"{over[q]:.3g}" for q in ("0.05", "0.5", "0.95")]
        table.add_row(kind, *cells, style="red" if row["failures"] or row["dishonest"] else None)
    console.print(table)


def compare(outcomes: np.ndarray, file: Path, run: Run) -> dict[str, int]:
    """How many ordinary problems converged in another version, whose outcomes are in `file`, and do not here."""
    with np.load(file) as recorded:
        if int(recorded["seed"]) != run.seed:
            raise SystemExit(f"{file} was recorded with --seed {int(recorded['seed'])}: use the same.")
        before = recorded["outcome"]
    count = min(len(before), len(outcomes))
    before, now = before[:count], outcomes[:count]
    lost = (before == Outcome.CONVERGED) & (now != Outcome.CONVERGED)
    return {
        "compared": count,
        "converged_there": int((before == Outcome.CONVERGED).sum()),
        "lost": int(lost.sum()),
        "lost_to_rounding_limit": int((lost & (now == Outcome.ROUNDING_LIMIT)).sum()),
        "gained": int(((before != Outcome.CONVERGED) & (now == Outcome.CONVERGED)).sum()),
        "first_lost": int(np.flatnonzero(lost)[0]) if lost.any() else -1,
    }


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ordinary", type=int, default=50_000, help="problems that every version has to solve")
    parser.add_argument("--adversarial", type=int, default=10_000, help="hostile problems, spread over their families")
    parser.add_argument("--judged", type=int, default=2000, help="answers that are judged in many digits")
    parser.add_argument("--large", type=int, default=6, help="problems with up to 100,000 actions, all of them judged")
    parser.add_argument("--only", choices=list(hostile.FAMILIES), action="append", help="only this hostile family")
    parser.add_argument("--seed", type=int, default=0, help="which problems to draw")
    parser.add_argument("--route", choices=["auto", "compiled", "jax"], default="auto", help="which solver")
    parser.add_argument("--no-retry", action="store_true", help="count what needed the second attempt as a failure")
    parser.add_argument("--out", type=Path, default=Path("build/stress.json"), help="where to write the table")
    parser.add_argument("--record", type=Path, help="write the outcomes of the ordinary problems to this npz file")
    parser.add_argument("--against", type=Path, help="compare them with those of another version")
    return parser.parse_args()


def main() -> int:
    """Read the command line, run, and return the exit code: 1 after any failure and any dishonest certificate."""
    given, console = arguments(), Console(width=150)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    run = Run(given.seed, given.route, not given.no_retry, given.out.parent / "stress-failures")
    for old in run.folder.glob("*.npz"):  # or a failure that has been repaired would seem to live on
        old.unlink()
    begun = time.perf_counter()
    tallies = run_all(run, given, given.only or list(hostile.FAMILIES), console)
    seconds = time.perf_counter() - begun
    order = [*hostile.FAMILIES, *sorted(k for k in tallies if k.startswith("large")), *PRIMITIVES]
    order += [*sorted(k for k in tallies if ":" in k and not k.startswith("large")), "ordinary"]
    rows = {kind: summary(tallies[kind]) for kind in order if kind in tallies}
    own = [
        tallies[kind] for kind in tallies if kind in hostile.FAMILIES or kind == "ordinary" or kind.startswith("large")
    ]
    rows["all"] = summary([tally for part in own for tally in part])
    written = {"seed": given.seed, "route": given.route, "seconds": round(seconds, 1), "families": rows}
    show(rows, seconds, console)
    if given.ordinary:
        outcomes = joined(tallies["ordinary"]).outcome.astype(np.int8)
        if given.record:
            np.savez_compressed(given.record, outcome=outcomes, seed=given.seed, route=np.array(given.route))
        if given.against:
            written["against"] = compare(outcomes, given.against, run)
            console.print(written["against"])
    given.out.write_text(json.dumps(written, indent=2))
    failures, dishonest = rows["all"]["failures"], rows["all"]["dishonest"]
    if failures or dishonest:
        console.print(f"{failures} failures, {dishonest} dishonest certificates, kept in {run.folder}", style="red")
    return 1 if failures or dishonest else 0


if __name__ == "__main__":
    sys.exit(main())
