"""Five walks through the program, from what a user has to what a user gets, by commands and public names alone.

python -m benchmarks.walks                 # files, functions and lines that each walk enters
python -m benchmarks.walks --freeze        # write what each walk gives to tests/golden
python -m benchmarks.walks --claims RUN    # compare RUN/claims.json with tests/golden/claims.json; --freeze replaces it

tests/test_golden.py runs the walks and compares what they give with what was frozen.
"""

import argparse
import csv
import io
import json
import math
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
GOLDEN = ROOT / "tests" / "golden"
SOURCES = (str(ROOT / "src"),)
TOLERANCE = 1e-9  # relative; a flock is chaotic, so that only its first steps hold this
SEARCHED = (
    1e-6  # where estimates are searched for: runs end 1e-5 standard errors from the mode, on each machine elsewhere
)
ROUGH = 1e-3  # where searches of folds end a twentieth of a standard error from the mode
UNSTABLE = {
    "seconds",
    "cpu_seconds",
    "megabytes",
    "out",
    "files",
    "version",
}  # of run and machine


def command(*words: str) -> Any:
    """What a command prints with --json."""
    from policychord.cli import main

    printed, before = io.StringIO(), sys.argv
    sys.argv = ["policychord", *words, "--json"]
    try:
        with redirect_stdout(printed):
            main()
    except SystemExit as end:
        if end.code:
            raise RuntimeError(f"policychord {' '.join(words)} ended with {end.code}") from None
    finally:
        sys.argv = before
    return json.loads(printed.getvalue())


def solve_a_problem(folder: Path) -> Any:
    """A gating problem, its optimum and its certificate."""
    import policychord as pc

    rng = np.random.default_rng(20261118)
    pi = rng.dirichlet(np.ones(30), size=(4, 5)).swapaxes(-1, -2)
    posed = pc.problem(pi=pi, action_cost=rng.exponential(size=(4, 30)), eps=np.array([0.02, 0.1, 0.5, 2.0]))
    optimum = pc.solve(posed)
    return {"weights": optimum.weights.tolist(), "energy": pc.energy(posed, optimum.weights).tolist()}


def roll_out_an_agent(folder: Path) -> Any:
    """A composed agent in a closed loop, and the labelled dataset of what happened."""
    import jax.numpy as jnp

    import policychord as pc

    pc.enable_x64()
    worlds = getattr(pc, "worlds", None) or pc.envs
    world = worlds.Pendulum()

    def push(state: Any, step: Any) -> Any:
        return 2.0 * jnp.sign(state.velocity)

    def hold(state: Any, step: Any) -> Any:
        return -20.0 * worlds.upright(state.angle) - 4.0 * state.velocity

    def price(state: Any, step: Any) -> Any:
        return worlds.upright(state.angle) ** 2 + 0.1 * state.velocity**2

    agent = pc.Composer(
        {"push": pc.Gaussian(push, sd=0.3, outside="tail"), "hold": pc.Gaussian(hold, sd=0.3, outside="tail")},
        model=pc.Cost(predict=lambda state, torque, step: world.move(state, torque[0]), state_cost=price),
        actions=pc.Grid(-2.0, 2.0, 41, saturates=True),
        eps=0.05,
    )
    dataset = pc.to_dataset(pc.rollout(agent, world, steps=40, episodes=2, seed=1))
    return {name: np.asarray(dataset[name]).tolist() for name in ("weights", "action", "reward", "angle")}


def explain_choices(folder: Path) -> Any:
    """A table of choices: models fitted to each person and compared over the group."""
    return stable(command("choices", "fit", str(GOLDEN / "choices.csv"), "--out", str(folder)))


def explain_tracks(folder: Path) -> Any:
    """A file of tracks: which forces, and do the weights follow the situation?"""
    record = stable(command("tracks", "fit", str(GOLDEN / "tracks.csv"), "--rate", "10", "--out", str(folder)))
    kept = ("verdict", "call", "models", "gain_over_constant", "decisions")  # estimates are many, and hang on rounding
    return {"results": {name: record["results"][name] for name in kept}, "settings": record["settings"]}


def judge_claims(folder: Path) -> Any:
    """A study of the paper: its steps, its claims with their evidence, and the page."""
    record = command("reproduce", "quadrotor", "--out", str(folder), "--jobs", "1")
    return claims_of(record["results"])


class Walk(NamedTuple):
    """A walk by name; `tolerance` is relative."""

    name: str
    run: Callable[[Path], Any]
    tolerance: float = TOLERANCE


WALKS = (
    Walk("solve", solve_a_problem),
    Walk("rollout", roll_out_an_agent),
    Walk("choices", explain_choices, SEARCHED),
    Walk("tracks", explain_tracks, ROUGH),
    Walk("claims", judge_claims),
)


def stable(record: Any) -> Any:
    """A record without what differs from run to run."""
    if isinstance(record, dict):
        return {name: stable(part) for name, part in record.items() if name not in UNSTABLE}
    return [stable(part) for part in record] if isinstance(record, list) else record


def claims_of(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Of each claim its verdict and what was measured."""
    return {record["id"]: {"verdict": record["verdict"], "measured": record["measured"]} for record in records}


def differences(golden: Any, present: Any, tolerance: float, where: str = "") -> Iterator[str]:
    """Every place in which two records differ, in a line each."""
    if isinstance(golden, dict) and isinstance(present, dict):
        for name in golden.keys() | present.keys():
            if name not in golden or name not in present:
                yield f"{where}.{name}: only {'there' if name in golden else 'here'}"
            else:
                yield from differences(golden[name], present[name], tolerance, f"{where}.{name}")
    elif isinstance(golden, list) and isinstance(present, list) and len(golden) == len(present):
        for place, (was, now) in enumerate(zip(golden, present, strict=True)):
            yield from differences(was, now, tolerance, f"{where}[{place}]")
    elif isinstance(golden, float) and isinstance(present, int | float):
        if not (math.isclose(golden, present, rel_tol=tolerance, abs_tol=tolerance) or golden != golden != present):
            yield f"{where}: {golden!r} became {present!r}"
    elif golden != present:
        yield f"{where}: {golden!r} became {present!r}"


class Entered(NamedTuple):
    """What of the package a walk entered."""

    files: int
    functions: int
    lines: int  # of those files


def entered(run: Callable[[Path], Any]) -> Entered:
    """Run a walk and count what it enters; what runs while modules are loaded does not count."""
    codes: set[Any] = set()

    def note(frame: Any, event: str, argument: Any) -> None:
        if event == "call":
            codes.add(frame.f_code)

    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder) / "first")
        sys.setprofile(note)
        try:
            run(Path(folder) / "out")
        finally:
            sys.setprofile(None)
    python = {code for code in codes if code.co_filename.endswith(".py")}
    ours = {code for code in python if code.co_filename.startswith(SOURCES) and code.co_name[:1] != "<"}
    bodies = {code for code in ours if code.co_flags & 0x0002}  # functions; modules and classes have no fast locals
    files = {code.co_filename for code in bodies}
    lines = sum(len(Path(name).read_text(encoding="utf-8").splitlines()) for name in files)
    return Entered(len(files), len(bodies), lines)


def write(name: str, value: Any) -> None:
    """One golden file."""
    (GOLDEN / f"{name}.json").write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


def write_inputs() -> None:
    """The table of choices and the tracks that two of the walks begin with; made once, then part of the tests."""
    command("choices", "simulate", str(GOLDEN / "choices.csv"), "--subjects", "6", "--seed", "3")
    rng = np.random.default_rng(7)
    rows: list[tuple[Any, ...]] = []
    for trial in range(3):
        position, velocity = rng.normal(scale=2.0, size=(6, 2)), rng.normal(size=(6, 2))
        for frame in range(300):
            centre, heading = position.mean(0), velocity.mean(0)
            away = position[:, None] - position[None]
            near = np.linalg.norm(away, axis=-1, keepdims=True) + 1e-9
            push = (away / near**3 * (near < 1.0)).sum(1)
            pull = 0.8 * (centre - position) + 1.5 * (heading - velocity) + np.clip(push, -4, 4)
            velocity = velocity + 0.1 * (pull - 0.3 * velocity) + 0.15 * rng.normal(size=(6, 2))
            position = position + 0.1 * velocity
            rows += [(trial, frame, k, *(round(float(x), 4) for x in position[k])) for k in range(6)]
    with (GOLDEN / "tracks.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("trial", "frame", "id", "x", "y"))
        writer.writerows(rows)


def main() -> None:
    """Measure, freeze or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--freeze", action="store_true")
    parser.add_argument("--claims", type=Path)
    parser.add_argument("--only", choices=[walk.name for walk in WALKS], action="append")
    options = parser.parse_args()
    if options.claims:
        present = claims_of(json.loads((options.claims / "claims.json").read_text(encoding="utf-8")))
        if options.freeze:
            write("all_claims", present)
            return
        golden = json.loads((GOLDEN / "all_claims.json").read_text(encoding="utf-8"))
        lines = list(differences(golden, present, TOLERANCE))
        print("\n".join(lines))
        moved = [name for name in golden if golden[name]["verdict"] != present.get(name, {}).get("verdict")]
        print(f"{len(golden)} claims, {len(lines)} numbers moved, {len(moved)} verdicts moved {moved or ''}")
        sys.exit(bool(moved))
    table = Table("walk", "files", "functions", "lines of these files")
    for walk in WALKS:
        if options.only and walk.name not in options.only:
            continue
        if options.freeze:
            with tempfile.TemporaryDirectory() as folder:
                write(walk.name, walk.run(Path(folder) / "out"))
        table.add_row(walk.name, *(f"{number:,}" for number in entered(walk.run)))
    Console().print(table)


if __name__ == "__main__":
    main()
