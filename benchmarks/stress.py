"""Solve 100,000 random and adversarial problems; any answer without its certificate is a failure.

python -m benchmarks.stress --problems 100000 --out build/stress.json
python -m benchmarks.stress --problems 5000 --route jax --no-retry
"""

import argparse
import json
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from policychord import ConvergenceError, Problem, certify, problem, solve
from policychord.core._method import RETRY_AFTER
from policychord.core.equilibrium import Route

from .adversarial import PRIMITIVES, PROBLEMS_PER_BATCH, Batch, draw

TOL = 1e-10
OFF_SIMPLEX = 1e-12


class Judged(NamedTuple):
    """What became of the problems of one batch; gaps and passes are NaN where `solve` gave up."""

    solver_gap: np.ndarray
    certified_gap: np.ndarray
    passes: np.ndarray
    failed: np.ndarray
    retried: np.ndarray  # whether the first attempt did not reach the tolerance


def judge(batch: Batch, route: Route, retry: bool) -> Judged:
    """Solve a batch and check the answers, not trusting the solver's own certificate."""
    problems = problem(**batch.arrays._asdict())
    try:
        judged = attempt(problems, batch.start, route)
    except ConvergenceError:
        ones = [one_by_one(problems, batch.start, k, route) for k in range(len(problems.eps))]
        judged = Judged(*(np.concatenate(parts) for parts in zip(*ones, strict=True)))
    return judged if retry else judged._replace(failed=judged.failed | judged.retried)


def one_by_one(problems: Problem, start: np.ndarray | None, index: int, route: Route) -> Judged:
    """The outcome of a single problem of a batch in which at least one did not converge."""
    single = Problem(*(field[index : index + 1] for field in problems))
    try:
        return attempt(single, None if start is None else start[index : index + 1], route)
    except ConvergenceError:
        nothing = np.full(1, np.nan)
        return Judged(nothing, nothing, nothing, np.ones(1, bool), np.ones(1, bool))


def attempt(problems: Problem, start: np.ndarray | None, route: Route) -> Judged:
    """Solve and check; raises where the solver does."""
    found = solve(problems, tol=TOL, start=start, route=route)
    finite = np.isfinite(found.weights).all(-1) & np.isfinite(found.log_weights).all(-1)
    on_simplex = (np.abs(found.weights.sum(-1) - 1.0) <= OFF_SIMPLEX) & (found.weights >= 0.0).all(-1)
    usable = finite & on_simplex
    certified = np.full(usable.shape, np.nan)
    if usable.any():
        certified[usable] = certify(Problem(*(f[usable] for f in problems)), found.weights[usable]).gap
    # written so that NaN counts as a failure; a negative bound on a distance would be a wrong one
    proven = (found.certificate.gap >= 0.0) & (found.certificate.gap <= TOL) & (certified >= 0.0) & (certified <= TOL)
    passes = found.passes.astype(float)
    return Judged(found.certificate.gap, certified, passes, ~(usable & proven), passes > RETRY_AFTER)


def summary(judged: list[Judged]) -> dict:
    """Count, failures, passes and the worst certificate of one family."""
    joined = Judged(*(np.concatenate(parts) for parts in zip(*judged, strict=True)))
    known = joined.passes[np.isfinite(joined.passes)]
    gaps = np.concatenate([joined.solver_gap, joined.certified_gap])
    return {
        "count": int(joined.failed.size),
        "failures": int(joined.failed.sum()),
        "retries": int(joined.retried.sum()),
        "passes_mean": float(known.mean()) if known.size else None,
        "passes_p99": float(np.percentile(known, 99)) if known.size else None,
        "passes_max": int(known.max()) if known.size else None,
        "worst_gap": float(np.nanmax(gaps)) if np.isfinite(gaps).any() else None,
    }


def run(problems: int, seed: int, route: Route, retry: bool, folder: Path, console: Console) -> dict[str, dict]:
    """Draw, solve and judge; one row for each kind of primitives, cost, prior and start, and one for all."""
    judged: dict[str, list[Judged]] = defaultdict(list)
    failures = TextColumn("{task.fields[failed]} failed")
    columns = (TextColumn("stress"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), failures)
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("stress", total=problems, failed=0)
        done = failed = index = 0
        while done < problems:
            batch = draw(seed, index, min(PROBLEMS_PER_BATCH, problems - done))
            found = judge(batch, route, retry)
            for kind in ("all", *batch.kinds):
                judged[kind].append(found)
            for k in np.flatnonzero(found.failed):
                keep(folder, seed, index, int(k), batch)
            done, failed, index = done + found.failed.size, failed + int(found.failed.sum()), index + 1
            progress.update(task, completed=done, failed=failed)
    first = [*PRIMITIVES, *sorted(k for k in judged if ":" in k), "all"]
    return {kind: summary(judged[kind]) for kind in first if kind in judged}


def keep(folder: Path, seed: int, index: int, position: int, batch: Batch) -> None:
    """Save a problem that failed, so that it can be solved again on its own."""
    folder.mkdir(parents=True, exist_ok=True)
    given = {k: v[position] for k, v in {**batch.arrays._asdict(), "start": batch.start}.items() if v is not None}
    np.savez(folder / f"failure-{seed}-{index}-{position}.npz", kinds=np.array(batch.kinds), **given)


def show(rows: dict[str, dict], seconds: float, console: Console) -> None:
    """Kinds of primitives first; every problem is counted again under its cost, its prior and its start."""
    table = Table(title=f"certificate <= {TOL:.0e}, from the solver and from `certify`; {seconds:.0f} s")
    table.add_column("family", no_wrap=True)
    for name in ("count", "failures", "retries", "passes", "p99", "max", "worst gap"):
        table.add_column(name, justify="right")
    for kind, row in rows.items():
        cells = [f"{row['count']:,}", str(row["failures"]), str(row["retries"])]
        for key, style in (("passes_mean", ".1f"), ("passes_p99", ".0f"), ("passes_max", "d"), ("worst_gap", ".1e")):
            cells.append("-" if row[key] is None else format(row[key], style))
        table.add_row(kind, *cells, style="red" if row["failures"] else None)
        if kind == list(PRIMITIVES)[-1]:
            table.add_section()
    console.print(table)


def main() -> int:
    """Read the command line, run, and return the exit code: 1 after any failure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=100_000, help="how many problems to solve")
    parser.add_argument("--seed", type=int, default=0, help="which problems to draw")
    parser.add_argument("--route", choices=["auto", "compiled", "jax"], default="auto", help="which solver")
    parser.add_argument("--no-retry", action="store_true", help="count what needed the second attempt as a failure")
    parser.add_argument("--out", type=Path, default=Path("build/stress.json"), help="where to write the table")
    given = parser.parse_args()
    console = Console()
    given.out.parent.mkdir(parents=True, exist_ok=True)
    folder = given.out.parent / "stress-failures"
    for old in folder.glob("failure-*.npz"):  # or a failure that has been repaired would seem to live on
        old.unlink()
    begun = time.perf_counter()
    rows = run(given.problems, given.seed, given.route, not given.no_retry, folder, console)
    seconds = time.perf_counter() - begun
    given.out.write_text(
        json.dumps({"seed": given.seed, "route": given.route, "seconds": round(seconds, 1), "families": rows}, indent=2)
    )
    show(rows, seconds, console)
    failures = rows["all"]["failures"]
    if failures:
        console.print(f"{failures} failures, kept in {folder}", style="red")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
