"""What an engine adds to the computing itself, for batches of 1000 episodes, and what a second worker brings.

python -m benchmarks.sweep --out build/bench-sweep.json
"""

import argparse
import json
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from policychord.runs import sweep
from policychord.runs.engine import dask_cluster, processes
from policychord.runs.plan import SweepPlan, batches_of, compute

TARGET = 0.10
PLAN = SweepPlan.model_validate(
    {
        "study": "quadrotor", "episodes": 6000, "batch": 1000,
        "settings": {"experiment": "pd", "selection": "mean", "horizon": "cost-to-go", "margin": 0.04},
        "grid": {"eps": [0.5]},
    }
)  # fmt: skip


def timed(plan: SweepPlan, batch) -> float:
    """Seconds for a batch, as a worker counts them."""
    began = time.perf_counter()
    compute(plan, batch)
    return time.perf_counter() - began


@contextmanager
def engine(name: str, workers: int, folder: Path):
    if name == "local":
        with processes(workers, folder / "log.txt") as pool:
            yield pool
    else:
        with dask_cluster(None, workers) as cluster:
            yield cluster.pool


def measure(name: str, workers: int) -> dict:
    """Wall seconds of a sweep on workers that are warm, and of the computing in it."""
    batches = batches_of(PLAN)
    with tempfile.TemporaryDirectory() as here, engine(name, workers, Path(here)) as pool:
        for warm in [pool.submit(timed, PLAN, batches[0]) for _ in range(2 * workers)]:
            warm.result()
        alone = [pool.submit(timed, PLAN, batch).result() for batch in batches[:2]]
        out = Path(here) / "sweep"
        sweep.open_sweep(PLAN, out)
        began = time.perf_counter()
        sweep.run_batches(PLAN, out, pool, workers, batches, lambda batch: None)
        wall = time.perf_counter() - began
    computing = len(batches) * min(alone)
    return {"engine": name, "workers": workers, "wall": wall, "computing": computing, "overhead": wall / computing - 1}


def main() -> None:
    """Read the command line, measure, write and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("build/bench-sweep.json"), help="where to write the records")
    given = parser.parse_args()
    lines = [measure(name, workers) for name in ("local", "dask") for workers in (1, 2)]
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(lines, indent=2))
    for one, two in (lines[:2], lines[2:]):
        met = "met" if one["overhead"] <= TARGET else "NOT met"
        print(
            f"{one['engine']}: {len(batches_of(PLAN))} batches of {PLAN.batch} episodes, {one['wall']:.1f} s with one "
            f"worker, {100 * one['overhead']:.1f}% more than the computing (target {100 * TARGET:.0f}%: {met}); "
            f"two workers {one['wall'] / two['wall']:.2f} times as fast"
        )


if __name__ == "__main__":
    main()
