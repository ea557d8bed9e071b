"""Groups with known rules: how often does the verdict of `tracks fit` say that weights change?

    python -m benchmarks.tracks_nulls --groups 20 --out nulls.json
    python -m benchmarks.tracks_nulls --show nulls.json

Groups that are in `--out` are not made again. Set OPENBLAS_NUM_THREADS=1: the matrices are small.
"""

import argparse
import json
import time
from pathlib import Path

import jax
import numpy as np
from scipy.stats import beta

jax.config.update("jax_enable_x64", True)
from policychord.runs.compiled import keep_programs  # noqa: E402
from policychord.tracks.decisions import decide  # noqa: E402
from policychord.tracks.kinds import KINDS, simulate_kind  # noqa: E402
from policychord.tracks.motion import move  # noqa: E402
from policychord.tracks.verdict import judge  # noqa: E402

HELD_OUT = ("grazers", "followers", "slower-in-crowds", "alarm")  # not used while the verdict was built
FIRST = 3000  # seeds below were used while the verdict was built


def judge_group(kind: str, seed: int, surrogates: int) -> dict:
    """The verdict on one group, as a row."""
    begin = time.process_time()
    motion = move(simulate_kind(kind, seed=seed))
    judged = judge(motion, decide(motion), surrogates=surrogates, seed=seed).judged
    return {
        "kind": kind, "seed": seed, "call": judged.call, "acts": judged.acts, "gate": judged.gate,
        "gain": judged.gain.mean, "error": judged.gain.error, "company": judged.company.mean,
        "before_surrogates": judged.gain.call == "better",
        "features": [name for name, chi in judged.features if chi > 9.0],
        "power": float(np.median(list(judged.power.values()))), "cpu_seconds": time.process_time() - begin,
    }  # fmt: skip


def run(kinds: list[str], groups: int, surrogates: int, out: Path, seconds: float) -> None:
    """All kinds in turn, until so many CPU seconds are used."""
    rows = json.loads(out.read_text()) if out.exists() else []
    done = {(row["kind"], row["seed"]) for row in rows}
    for seed in range(FIRST, FIRST + groups):
        for kind in kinds:
            if (kind, seed) in done:
                continue
            if time.process_time() > seconds:
                return
            rows.append(judge_group(kind, seed, surrogates))
            out.write_text(json.dumps(rows))
            row = rows[-1]
            print(kind, seed, row["call"], row["gate"], f"{row['gain']:+.4f} ± {row['error']:.4f}",
                  f"{row['cpu_seconds']:.1f} s", flush=True)  # fmt: skip


def interval(hits: int, count: int) -> str:
    """Of Clopper and Pearson, 95%."""
    low = beta.ppf(0.025, hits, count - hits + 1) if hits else 0.0
    high = beta.ppf(0.975, hits + 1, count - hits) if hits < count else 1.0
    return f"{100 * low:.0f} to {100 * high:.0f}%"


def show(file: Path) -> None:
    """The table."""
    rows = json.loads(file.read_text())
    print("| kind | change | groups | re-weighting | without surrogates | cannot tell | gain | gate |")
    print("|---|---|---|---|---|---|---|---|")
    for kind in [*KINDS]:
        some = [row for row in rows if row["kind"] == kind]
        if not some:
            continue
        gains = np.array([row["gain"] for row in some])
        hits = sum(row["call"] == "re-weighting" for row in some)
        gates = [row["gate"] for row in some]
        error = gains.std(ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else np.nan
        print(f"| {kind} | {'yes' if KINDS[kind].changes else 'no'} | {len(some)} | {hits} | "
              f"{sum(row['before_surrogates'] for row in some)} | "
              f"{sum(row['call'] == 'cannot tell' for row in some)} | "
              f"{gains.mean():+.4f} ± {error:.4f} | {max(set(gates), key=gates.count)} |")  # fmt: skip
    for changes in (False, True):
        for held in (False, True):
            some = [row for row in rows
                    if KINDS[row["kind"]].changes == changes and (row["kind"] in HELD_OUT) == held]  # fmt: skip
            if some:
                hits = sum(row["call"] == "re-weighting" for row in some)
                print(f"\n{'held-out kinds' if held else 'kinds'}, weights {'change' if changes else 'constant'}: "
                      f"{hits} of {len(some)} called re-weighting ({interval(hits, len(some))}), "
                      f"{sum(row['cpu_seconds'] for row in some):.0f} CPU s")  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", nargs="+", choices=[*KINDS], default=[*KINDS])
    parser.add_argument("--groups", type=int, default=20)
    parser.add_argument("--surrogates", type=int, default=19)
    parser.add_argument("--out", type=Path, default=Path("out") / "tracks_nulls.json")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--show", type=Path)
    given = parser.parse_args()
    if given.show:
        show(given.show)
    else:
        keep_programs()
        given.out.parent.mkdir(parents=True, exist_ok=True)
        run(given.kinds, given.groups, given.surrogates, given.out, given.seconds)
