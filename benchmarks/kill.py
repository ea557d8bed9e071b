"""Does a run that was killed end as one that was not? kill -9 of `reproduce all --quick` many times, then the end.

python -m benchmarks.kill [--kills 10] [--seed 0] [--study all] [--workers N] [--out build/kill] [--reference FOLDER]

Every second kill comes at a step border, as soon as a new result is on disk, the others at a random moment inside a
step. Afterwards the same command ends its run, and claims.json must be that of an undisturbed run, bit for bit. The
undisturbed run is made first, unless --reference names the folder of one by the same code.
"""

import argparse
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

from policychord.runs.cache import FOLDER

ROOT = Path(__file__).resolve().parent.parent
LONGEST = 25.0  # s that a run is left alone before it is killed inside a step
PATIENCE = 300.0  # s until a new result must have come, for a kill at a step border


def start(words: list[str], out: Path) -> subprocess.Popen:
    """The command, as a process."""
    code = "from policychord.cli import main; main()"
    command = [sys.executable, "-c", code, *words, "--out", str(out)]
    return subprocess.Popen(command, stdout=-3, stderr=subprocess.PIPE, text=True)


def finish(words: list[str], out: Path) -> bytes:
    """Run the command to its end: what claims.json holds."""
    with start(words, out) as process:
        _, said = process.communicate()
    if process.returncode not in (0, 1):  # 1: not everything was reproduced
        raise SystemExit(f"the command ended with {process.returncode}:\n{said[-2000:]}")
    return (out / "claims.json").read_bytes()


def results(out: Path) -> set[Path]:
    """The results of steps that are on disk."""
    return set((out / FOLDER).rglob("*.npz"))


def kill(words: list[str], out: Path, border: bool, rng: random.Random) -> str:
    """Start the command, kill it, and say when."""
    before, begun = results(out), time.monotonic()
    seconds = PATIENCE if border else rng.uniform(1.0, LONGEST)
    with start(words, out) as process:
        while process.poll() is None and time.monotonic() < begun + seconds:
            if border and results(out) - before:
                break
            time.sleep(0.005)
        ended = process.poll() is not None
        process.kill()
    spent, new = time.monotonic() - begun, len(results(out) - before)
    where = "it had ended" if ended else "at a step border" if border and new else "inside a step"
    return f"{where} after {spent:.1f} s, {new} new results, {len(results(out))} in all"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--study", default="all")
    parser.add_argument("--workers", type=int, help="processes side by side; they change no bit")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "kill")
    parser.add_argument("--reference", type=Path, help="folder of an undisturbed run by the same code")
    told = parser.parse_args()
    words = ["reproduce", told.study, "--quick", *([] if told.workers is None else ["--jobs", str(told.workers)])]
    killed, rng = told.out / "killed", random.Random(told.seed)
    shutil.rmtree(killed, ignore_errors=True)
    for number in range(told.kills):
        print(f"kill {number + 1}: {kill(words, killed, number % 2 == 1, rng)}", flush=True)
    parts = [path for path in killed.rglob("*.part") if path.is_file()]
    found = finish(words, killed)
    wanted = (
        finish(words, told.out / "whole") if told.reference is None else (told.reference / "claims.json").read_bytes()
    )
    print(f"{len(parts)} unfinished files were left under other names; claims.json is", end=" ")
    print("the same, bit for bit" if found == wanted else "NOT the same")
    return 0 if found == wanted else 1


if __name__ == "__main__":
    sys.exit(main())
