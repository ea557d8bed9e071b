"""Planted groups: are weights, temperature and gains recovered from tracks with noise and gaps?

And are groups that gate told from groups that do not?

    python benchmarks/tracks_recovery.py --first 100 --count 20 --out found.json
    python benchmarks/tracks_recovery.py --show found.json
    python benchmarks/tracks_recovery.py --many 100000
"""

import argparse
import itertools
import json
import resource
import time
from pathlib import Path

import jax
import numpy as np
from scipy.stats import beta

jax.config.update("jax_enable_x64", True)
from policychord.inference import fit  # noqa: E402
from policychord.inference.parameters import free_names, unconstrained  # noqa: E402
from policychord.runs.compiled import keep_programs  # noqa: E402
from policychord.tracks.decisions import cells_of, decide, thin, to_observations  # noqa: E402
from policychord.tracks.forces import USUAL, Layout  # noqa: E402
from policychord.tracks.gating import family_of, fit_agent  # noqa: E402
from policychord.tracks.motion import Smoothing, move  # noqa: E402
from policychord.tracks.rivals import MIXTURE  # noqa: E402
from policychord.tracks.simulate import as_tracks, blank_decisions, simulate_group  # noqa: E402
from policychord.tracks.verdict import judge  # noqa: E402
from policychord.worlds.flock.neighbours import Zones  # noqa: E402

keep_programs()

LAYOUT = Layout(Zones(1.0, 3.0, 12.0, 320.0), None, 1.0, 0.15, 0.25, (), None, 24.0)
TRUTH = {"eps": 0.5, "prior": [0.3, 0.15, 0.35, 0.2], "gain": [2.0, 3.0, 3.0, 3.0], "sd": 0.6, "sideways": 1.0,
         "tilt": 0.0, "tail": 6.0}  # fmt: skip
CALLS = {"gating": "re-weighting", "constant": "constant weights"}
KINDS = [*CALLS]
FREE = ("eps", "prior", "gain", "sd")
HELD = {name: np.asarray(value) for name, value in TRUTH.items() if name not in FREE}
ANIMALS, TRIALS, STEPS, FRAMES = 15, 4, 26, 8
NOISE, GAPS = 0.003, 0.02  # lengths; share of positions
CELLS = cells_of(1.3 * np.random.default_rng(0).standard_t(4, size=(20_000, 2)))


def tracks_of(kind: str, seed: int, noise: float, gaps: float):
    """Some groups from random starts, filmed."""
    rng = np.random.default_rng(seed)
    trials, made = [], None
    for number in range(TRIALS):
        angle = rng.uniform(0, 2 * np.pi, ANIMALS)
        start = rng.uniform(-2.5, 2.5, (ANIMALS, 2)), np.stack([np.cos(angle), np.sin(angle)], axis=-1)
        group = simulate_group(blank_decisions(LAYOUT, CELLS, USUAL), TRUTH, start, STEPS, 1000 * seed + number,
                         gate="composed" if kind == "gating" else "constant")  # fmt: skip
        made = as_tracks(group, LAYOUT, FRAMES, noise=noise, gaps=gaps, seed=1000 * seed + number)
        trials.append(made.trials[0]._replace(name=str(number)))
    return made._replace(trials=tuple(trials))


def replicates(
    kinds: list[str], first: int, count: int, noise: float, gaps: float, out: Path | None, seconds: float
) -> None:
    """What the tool says of each replicate.

    What is in `out` is not done again; after so many seconds of CPU no other one is begun.
    """
    rows = json.loads(out.read_text()) if out and out.exists() else []
    done = {(row["seed"], row["kind"]) for row in rows}
    for seed, kind in itertools.product(range(first, first + count), kinds):
        if (seed, kind) in done:
            continue
        if time.process_time() > seconds:
            return
        begin = time.process_time()
        motion = move(tracks_of(kind, seed, noise, gaps), Smoothing(window=5 * LAYOUT.every / FRAMES))
        given = decide(motion, layout=LAYOUT, cells=CELLS)
        verdict, agent = judge(motion, given), fit_agent(given, free=FREE, fixed=HELD, starts=2)
        judged, parameters = verdict.judged, agent.parameters
        rows.append({
            "kind": kind, "seed": seed, "decisions": given.size, "gaps": motion.gaps, "acts": judged.acts,
            "gain": judged.gain.mean, "error": judged.gain.error, "moved": judged.moved, "call": judged.call,
            "z": agent.z.tolist(), "names": free_names(parameters),
            "truth": unconstrained(parameters, {k: TRUTH[k] for k in agent.theta}).tolist(),
            "weights": [*verdict.found[MIXTURE].theta["odds"]],
            "cpu_seconds": time.process_time() - begin,
        })  # fmt: skip
        print(kind, seed, rows[-1]["call"], judged.acts, f"{judged.gain.mean:+.4f} ± {judged.gain.error:.4f}",
              f"sd {judged.moved:.3f}", f"{rows[-1]['cpu_seconds']:.0f} s", flush=True)  # fmt: skip
        if out:
            out.write_text(json.dumps(rows))


def many(count: int) -> None:
    """How long a fit of many decisions takes from one start, and how much memory it holds."""
    rng, animals = np.random.default_rng(0), 40
    angle = rng.uniform(0, 2 * np.pi, animals)
    start = rng.uniform(-4, 4, (animals, 2)), np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    steps = count // animals + 60
    group = simulate_group(blank_decisions(LAYOUT, CELLS, USUAL), TRUTH, start, steps, 0)
    motion = move(as_tracks(group, LAYOUT, 4, noise=NOISE, gaps=GAPS), Smoothing(window=0.2))
    given = thin(decide(motion), count)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{given.size:,} decisions; {memory:.0f} MB before the fit", flush=True)
    begin = time.process_time()
    found = fit(family_of(given), to_observations(given), starts=1, method="map", hold_out="block", compare=False,
                profiles=False)  # fmt: skip
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"fitted {len(found.z)} numbers from one start with errors and certified weights: "
          f"{time.process_time() - begin:.0f} s of CPU, {found.optimum.evaluations} evaluations, {memory:.0f} MB at "
          f"most; converged {found.optimum.converged}, largest gap {found.gap.max():.1e}")  # fmt: skip


def show(files: list[str]) -> None:
    rows = [row for file in files for row in json.loads(Path(file).read_text())]
    for kind in sorted({row["kind"] for row in rows}):
        some = [row for row in rows if row["kind"] == kind]
        calls = {call: sum(row["call"] == call for row in some) for call in sorted({row["call"] for row in some})}
        gains = np.array([row["gain"] for row in some])
        wrong = len(some) - calls.get(CALLS[kind], 0)
        most = beta.ppf(0.95, wrong + 1, len(some) - wrong)
        print(f"\n{kind}: {len(some)} replicates of {np.mean([row['decisions'] for row in some]):.0f} decisions with "
              f"{np.mean([row['gaps'] for row in some]):.0f} gaps; called {calls}: error rate {wrong / len(some):.2f}, "
              f"below {most:.2f} with 95% confidence; {sum(row['acts'] == 'by mean' for row in some)} by mean; "
              f"gain over constant weights {gains.mean():+.4f} (sd {gains.std():.4f})")  # fmt: skip
        z, truth = np.array([row["z"] for row in some]), np.array(some[0]["truth"])
        if kind == "gating":
            print(f"{'free number':36s} {'truth':>7s} {'mean':>7s} {'bias':>7s} {'sd':>6s}")
            for j, name in enumerate(some[0]["names"]):
                print(f"{name:36s} {truth[j]:7.3f} {z[:, j].mean():7.3f} {z[:, j].mean() - truth[j]:+7.3f} "
                      f"{z[:, j].std(ddof=1):6.3f}")  # fmt: skip
        else:
            mean = np.mean([row["weights"] for row in some], axis=0)
            sd = np.std([row["weights"] for row in some], axis=0, ddof=1)
            true = [*TRUTH["prior"][1:], TRUTH["prior"][0]]  # to persist is to follow no social force
            for name, share, a, b in zip((*USUAL[1:], "none"), true, mean, sd, strict=True):
                print(f"constant weight of {name:17s} {share:7.3f} {a:7.3f} {a - share:+7.3f} {b:6.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=KINDS, nargs="+", default=KINDS)
    parser.add_argument("--first", type=int, default=100)
    parser.add_argument("--count", type=int, default=2)
    parser.add_argument("--noise", type=float, default=NOISE)
    parser.add_argument("--gaps", type=float, default=GAPS)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--show", nargs="+")
    parser.add_argument("--many", type=int)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    given = parser.parse_args()
    if given.show:
        show(given.show)
    elif given.many:
        many(given.many)
    else:
        replicates(given.kind, given.first, given.count, given.noise, given.gaps, given.out, given.seconds)
