"""Broken files, wild messages and impossible plans: each must get an answer or one sentence, never a traceback.

python -m benchmarks.attack [--tables 1000] [--plans 500] [--fits 300] [--tracks 600] [--results 600] [--messages 5000]
                            [--seed 0]
python -m benchmarks.attack --soak MINUTES

Messages and uploads go through the sockets of the real studio. The soak instead keeps its rooms open, connects and
leaves a thousand times meanwhile, and prints the memory that the studio holds. tests/ use the same attacks in small;
what is sent is in wild.py.
"""

import argparse
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.parse import parse_qs, quote, urlsplit
from urllib.request import Request, urlopen

import numpy as np
import pandas as pd
import psutil
from rich.console import Console
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from policychord import enable_x64
from policychord.choices.data import TASKS, parse_choices
from policychord.fitting import likelihood, real
from policychord.fitting.optimise import Optimum
from policychord.learning import files as learning
from policychord.runs import cache, compare, fit, sweep
from policychord.runs import tracks as track_runs
from policychord.runs.plan import Plan, points_of, read_plan
from policychord.studies.families import full
from policychord.tracks.motion import card_of, describe, move
from policychord.tracks.reading import parse_tracks

from . import wild
from .studio import studio, visit
from .wild import ACTS, Random

SECONDS_FOR_AN_ANSWER = 300  # a room that fits tracks answers afterwards
RECONNECTS = 1000
ROOMS = ("gate", "flock", "choices", "flight")
LOOKS = 250  # messages after which the room is asked for a picture
UPLOADS = 25  # and after which a file is handed over


class Attacked(NamedTuple):
    """What became of the attempts: how many were refused, and those that ended in anything but a sentence."""

    tried: int
    refused: int
    broken: list[str]


def attack(count: int, seed: int, make: Callable[[Random], Any], answer: Callable[[Any], None]) -> Attacked:
    """Call `answer` with what `make` draws: it may return, or raise an error that commands report as a sentence."""
    refused, broken = 0, []
    for number in range(count):
        given = make(Random(f"{seed} {number}"))
        try:
            answer(given)
        except cache.MissingError:  # the step is done again
            refused += 1
        except (ValueError, OSError) as error:
            refused += 1
            said = str(error)
            if not said or len(said) > 3000 or "\x1b" in said or "validation error" in said:
                broken.append(f"{number}: no sentence: {str(error)[:200]!r}")
        except Exception as error:  # what would be a traceback
            broken.append(f"{number}: {type(error).__name__}: {str(error)[:200]}")
    return Attacked(count, refused, broken)


def attack_tables(count: int, seed: int) -> Attacked:
    """Read broken tables of choices."""
    return attack(count, seed, wild.table, lambda content: parse_choices(content, "mine.csv", TASKS["2"]))


def attack_written(count: int, seed: int, make: Callable[[Random], str], read: Callable[[Path], Any]) -> Attacked:
    """Read broken plans from a file."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "plan.toml"

        def answer(content: str) -> None:
            path.write_text(content, encoding="utf-8")
            read(path)

        return attack(count, seed, make, answer)


def attack_plans(count: int, seed: int) -> Attacked:
    """Read broken plans, and list the points of those that are right after all."""
    return attack_written(count, seed, wild.plan, lambda path: points_of(read_plan(path)))


def attack_fits(count: int, seed: int) -> Attacked:
    """Read broken plans of fits, with their data; what is right after all is not simulated, which takes seconds."""
    rng = Random(seed)

    def read(path: Path) -> None:
        (path.parent / "mine.csv").write_bytes(wild.table(rng))
        (path.parent / "data.zarr").mkdir(exist_ok=True)
        plan = fit.read_fit_plan(path)
        design, _ = fit.pose(plan)
        if plan.simulate is not None:
            full(design.family, plan.simulate.theta)
        elif plan.data is not None:
            fit.observed(plan, design, path.parent)

    return attack_written(count, seed, wild.fit_plan, read)


def attack_tracks(count: int, seed: int) -> Attacked:
    """Read broken files of tracks, and make the card of those that can be read; then with broken settings."""
    good = wild.good_tracks()

    def card(given: tuple[str, bytes]) -> None:
        name, content = given
        tracks = parse_tracks(content, name, rate=None if name.endswith(("h5", "nc")) else 10.0)
        describe(card_of(tracks, move(tracks)))

    def use(path: Path) -> None:
        plan = track_runs.read_plan(path, {})
        tracks = parse_tracks(good, "good.csv", rate=plan.rate, scale=plan.scale, unit=plan.unit, columns=plan.columns)
        describe(card_of(tracks, move(tracks, plan.smoothing)))

    return together(attack(count - count // 3, seed, wild.tracks, card),
                    attack_written(count // 3, seed, wild.tracks_plan, use))  # fmt: skip


def attack_results(count: int, seed: int) -> Attacked:
    """Read back damaged results: of steps, of learning, of fits that go on, of sweeps, and claims."""
    with TemporaryDirectory() as place:
        folder = Path(place)
        readers = _write_results(folder)
        whole = {name: (folder / name).read_bytes() for name in readers}

        def make(rng: Random) -> str:
            name = rng.choice(list(whole))
            content = whole[name]
            if name.endswith(".json") and rng.random() < 0.7:
                content = json.dumps(_altered(rng, json.loads(content))).encode()
            elif rng.random() < 0.95:
                content = wild.damaged(rng, content)
            for other, original in whole.items():
                (folder / other).write_bytes(content if other == name else original)
            return name

        return attack(count, seed, make, lambda name: readers[name](folder / name))


def _altered(rng: Random, given: Any) -> Any:
    """Data with something else somewhere inside."""
    if isinstance(given, dict | list) and given and rng.random() < 0.85:
        at = rng.choice(list(given)) if isinstance(given, dict) else rng.randrange(len(given))
        changed = dict(given) if isinstance(given, dict) else list(given)
        changed[at] = _altered(rng, given[at])  # type: ignore[index]
        return changed
    return wild.value(rng)


def _write_results(folder: Path) -> dict[str, Callable[[Path], Any]]:
    """Results of every kind that a command reads back, and how it does: by the name of the file."""
    z, starts = np.zeros(1), np.zeros((2, 1))
    optimum = Optimum(z, 0.0, 0.0, starts, starts, np.zeros(2), 3, True, True, (np.zeros(3), np.zeros(2)))
    given = likelihood(lambda theta, unit: -(theta["a"] ** 2), {"x": np.zeros(3)}, [real("a")])
    learning.write(folder / "learned.npz", given, optimum)
    cache.save(folder / "step.npz", "step", cache.Result({"a": np.arange(3), "b": (1, "x")}, 1.0))
    fitted = fit.FitPlan.model_validate({"family": "bandit", "free": ["eps"], "simulate": {"decisions": 50}})
    climbs = {"z": [0.0], "starts": [[0.0]], "tried": [[0.0]], "heights": [0.0], "log_posterior": 0.0, "evaluations": 3}
    (folder / "fit.json").write_text(json.dumps({"plan": fitted.model_dump(), "climbs": climbs}))
    quantity = {"value": 0.5, "total": 2, "low": 0.1, "high": 0.9, "unit": "m"}
    claim = {"study": "flock", "id": "F1", "statement": "x", "paper": "x", "reported": "x", "rule": "x",
             "measured": {"a": quantity, "b": [1.0]}, "holds": {"x": True}, "verdict": "reproduced"}  # fmt: skip
    (folder / "claims.json").write_text(json.dumps([claim]))
    record = json.dumps({"claims": [claim], "environment": {"x": 1}})
    (folder / "report.html").write_text(f'<script type="application/json" id="record">{record}</script>')
    plan = Plan.model_validate({"study": "flock", "episodes": 1, "settings": {"steps": 5}, "grid": {"eps": [0.1, 1.0]}})
    batch = sweep.batches_of(plan)[0]
    sweep.keep(folder, batch, sweep.Computed(pd.DataFrame({"point": [0, 1], "episode": [0, 0], "eps": [0.1, 1.0]}), {}))
    return {
        "learned.npz": lambda path: learning.read(path, given), "step.npz": cache.load,
        "fit.json": lambda path: fit.earlier(fitted, path, 1), "claims.json": lambda path: compare.compare(path, path),
        "report.html": lambda path: compare.compare(path, path),
        f"batches/{batch.id}.parquet": lambda path: sweep.results(plan, path.parents[1]),
    }  # fmt: skip


def together(*found: Attacked) -> Attacked:
    """Several attacks as one."""
    return Attacked(sum(one.tried for one in found), sum(one.refused for one in found),
                    [line for one in found for line in one.broken])  # fmt: skip


# ------------------------------------------------------------------------------- the studio


def _cookie(address: str) -> dict[str, str]:
    url = urlsplit(address)
    return {"Cookie": f"policychord-{url.port}={parse_qs(url.query)['token'][0]}"}


def open_room(address: str, room: str) -> Any:
    """A socket to a room, as the page opens it."""
    url = urlsplit(address)
    return connect(f"ws://{url.netloc}/ws/{room}", origin=f"http://{url.netloc}", additional_headers=_cookie(address),
                   open_timeout=60, max_size=None, ping_interval=None)  # fmt: skip


def hand_over(address: str, name: str, content: bytes) -> str:
    """The message with which a room takes a file, after the file has been uploaded."""
    where = f"http://{urlsplit(address).netloc}/upload?name={quote(name)}"
    with urlopen(Request(where, content, _cookie(address)), timeout=60) as answer:
        return json.dumps({"act": {"file": json.load(answer)["number"]}})


def next_text(line: Any) -> dict[str, Any]:
    """The next text, whatever frames come in between."""
    while isinstance(got := line.recv(timeout=SECONDS_FOR_AN_ANSWER), bytes):
        pass
    return json.loads(got)


def send_wild(address: str, line: Any, room: str, count: int, rng: Random) -> Attacked:
    """Send messages and files to a room that has just been opened, and sometimes look at what it draws.

    Each message gets the settings, after an error if it was wrong.
    """
    names = list(next_text(line)["settings"])
    refused, broken = 0, []

    def say(sent: str) -> None:
        nonlocal refused
        line.send(sent)
        while (answer := next_text(line))["kind"] != "settings":
            refused += 1
            judge(answer, sent)

    def judge(answer: dict[str, Any], sent: str) -> None:
        if "The studio could not do this" in answer["message"]:
            broken.append(f"{room}: {answer['message'][:200]} after {sent[:120]}")

    say('{"do": "rest"}')  # what is drawn in between takes long, and it is asked for now and then only
    for number in range(count):
        sent = wild.wild(rng, names, ACTS.get(room, ()))
        if number % UPLOADS == 0 and "file" in ACTS.get(room, ()):
            file = wild.tracks(rng) if room == "flock" else ("mine.csv", wild.table(rng))
            if room == "flock" and number + UPLOADS >= count:  # one that can be played, at the end
                file = "good.csv", wild.good_tracks()
            sent = hand_over(address, *file)
        say(sent)
        if number % LOOKS == LOOKS - 1 or number == count - 1:
            say('{"do": "wake"}')
            line.send('{"do": "restart"}')
            while isinstance(got := line.recv(timeout=SECONDS_FOR_AN_ANSWER), str):
                if (answer := json.loads(got))["kind"] == "error":
                    judge(answer, sent)
                    break
            say('{"do": "rest"}')
    return Attacked(count, refused, broken)


def attack_room(address: str, room: str, count: int, seed: int) -> Attacked:
    """Send wild messages to a room of a studio, and see that it still works afterwards."""
    try:
        with open_room(address, room) as line:
            found = send_wild(address, line, room, count, Random(f"{seed} {room}"))
        with open_room(address, room) as line:
            next_text(line)
    except Exception as error:  # a dead socket
        return Attacked(0, 0, [f"{room}: {type(error).__name__}: {error}"])
    return found


def soak(address: str, process: Any, minutes: float, console: Console) -> list[str]:
    """Keep all rooms open, come and go, and print the memory of the studio; the answer is what was lost."""
    stop = threading.Event()
    taken: Counter[str] = Counter()
    lost: list[str] = []

    def watch(what: str) -> None:
        """Take what the room draws, as a page does, and come back if the line is lost."""
        while not stop.is_set():
            try:
                with open_room(address, "flock" if what == "tracks" else what) as line:
                    line.send('{"set": {}}')
                    if what == "tracks":
                        line.send(hand_over(address, "good.csv", wild.good_tracks()))
                    while not stop.is_set():
                        try:
                            taken[what] += isinstance(line.recv(timeout=10.0), bytes)
                        except TimeoutError:  # a flight is over, fits are done: once more
                            line.send('{"do": "restart"}')
            except (ConnectionClosed, OSError) as error:
                lost.append(f"{what}: {error}")

    watching = [threading.Thread(target=watch, args=(what,)) for what in (*ROOMS, "tracks")]
    for thread in watching:
        thread.start()
    begun, done, told = time.monotonic(), 0, -1
    while (spent := time.monotonic() - begun) < 60 * minutes and process.poll() is None:
        if done < RECONNECTS and done < RECONNECTS * spent / (60 * minutes * 0.95):
            visit(address, 4)
            done += 4
        if int(spent / 60) > told:
            told = int(spent / 60)
            _tell(console, told, done, taken, lost, psutil.Process(process.pid))
        time.sleep(0.2)
    stop.set()
    for thread in watching:
        thread.join()
    _tell(console, told + 1, done, taken, lost, psutil.Process(process.pid))
    console.print(f"{done} reconnects; frames: {dict(taken)}; lines lost: {lost}", markup=False)
    return lost


def _tell(
    console: Console, minute: int, done: int, taken: Counter[str], lost: list[str], of: psutil.Process
) -> None:  # fmt: skip
    held, spent = of.memory_info().rss / 1e6, sum(of.cpu_times()[:2])
    frames = ", ".join(f"{what} {count:,}" for what, count in taken.items())
    console.print(f"{minute:3} min, {done:4} reconnects, {held:6.0f} MB, {of.num_threads()} threads, {spent:.0f} CPU s,"
                  f" {len(lost)} lost; frames: {frames}")  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    counts = {"tables": 1000, "plans": 500, "fits": 300, "tracks": 600, "results": 600, "messages": 5000, "seed": 0}
    for name, count in counts.items():
        parser.add_argument(f"--{name}", type=int, default=count)
    parser.add_argument("--soak", type=float, default=0.0, help="minutes; nothing else is done then")
    told, console = parser.parse_args(), Console(highlight=False, soft_wrap=True)
    enable_x64()
    broken = 0

    def run(what: str, attacking: Callable[..., Attacked], *given: Any) -> None:
        """Attack and say at once what came of it."""
        nonlocal broken
        begun = time.monotonic()
        one = attacking(*given, told.seed)
        broken += len(one.broken)
        seconds = time.monotonic() - begun
        console.print(f"{one.tried:,} {what}: {one.refused:,} refused with a sentence, {len(one.broken)} broken "
                      f"({seconds:.0f} s)")  # fmt: skip
        for line in one.broken[:20]:
            console.print("  " + line, markup=False)

    for what, attacking in (("tables", attack_tables), ("plans", attack_plans), ("fits", attack_fits),
                            ("tracks", attack_tracks), ("results", attack_results)):  # fmt: skip
        if not told.soak and (count := getattr(told, what)):
            run(what, attacking, count)
    if told.messages or told.soak:
        with studio() as (address, process):
            if told.soak:
                broken += len(soak(address, process, told.soak, console))
            for room in () if told.soak else ROOMS:
                run(f"messages to {room}", attack_room, address, room, told.messages // len(ROOMS))
            alive = process.poll() is None
            console.print("the studio is alive" if alive else "[red]the studio has ended")
            broken += not alive
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
