"""Is anybody left below the optimum? Fits of choices beside the best of many independent starts within the same bounds.

python -m benchmarks.optima TABLE.csv [TABLE.csv ...] --starts 200 --out build/optima.json

A table may be followed by its columns, as in  sets.csv:offered=set,reward=points. Prints for every table and model how
far the worst person is below, in nats, how many are more than .05 below, and how many are at a bound or separated.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

jax.config.update("jax_enable_x64", True)

from policychord.choices import Reading, believe, choice_likelihood, fit, measure_task, model_by_name, read_choices  # noqa: E402
from policychord.choices.tables import parse_columns  # noqa: E402
from policychord.inference import estimate  # noqa: E402

MODELS = ("UCB", "Hybrid", "Value+stickiness+lapse", "delta", "delta:Value+stickiness", "two-rates:Value+stickiness",
          "kalman/noise:UCB")  # fmt: skip
BELOW = 0.05  # nats
AT_ONCE = 20  # starts that are followed together


def examine(trials: Any, model: Any, starts: int, seed: int = 0) -> dict[str, Any]:
    """One model on one table: what its fit misses of the best of many starts."""
    begin = time.process_time()
    fitted = fit(model, trials)
    seconds = time.process_time() - begin
    given = choice_likelihood(model, trials)
    mine = estimate(given, starts=fitted.z[None], near=1e-3)
    rng, best = np.random.default_rng(seed), mine.log_posterior
    rates = np.array([parameter.transform != "real" for parameter in given.parameters])
    for _ in range(0, starts, AT_ONCE):
        normal = rng.normal(size=(AT_ONCE, given.groups, fitted.z.shape[1]))
        points = np.where(rates, 2.5 * normal, normal)  # effects of 10, odds of a factor of 12
        best = np.maximum(best, estimate(given, starts=points).log_posterior)
    short = best - mine.log_posterior
    return {"people": given.groups, "worst": float(short.max()), "below": int((short > BELOW).sum()),
            "at_bound": int(mine.at_bound.any(axis=1).sum()), "separated": int(fitted.separated.sum()),
            "seconds": seconds}  # fmt: skip


def main() -> None:
    """Every table with every model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="+")
    parser.add_argument("--starts", type=int, default=200)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    table = Table(
        "table", "model", "people", "worst below (nats)", f"below by {BELOW:g}", "at a bound", "separated", "CPU s"
    )
    rows = []
    for text in options.tables:
        path, _, columns = text.partition(":")
        choices = read_choices(Path(path), None, how=Reading(parse_columns(columns)))
        choices = choices._replace(task=measure_task(choices))
        trials = believe(choices)
        for name in options.models.split(","):
            row = examine(trials, model_by_name(name, choices.task, "logit"), options.starts)
            rows.append({"table": Path(path).name, "model": name, **row})
            print(rows[-1], flush=True)
            table.add_row(Path(path).name, name, str(row["people"]), f"{row['worst']:.2g}", str(row["below"]),
                          str(row["at_bound"]), str(row["separated"]), f"{row['seconds']:.1f}")  # fmt: skip
    Console().print(table)
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
