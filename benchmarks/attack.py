"""Broken files, wild messages and impossible plans: each must get an answer or one sentence, never a traceback.

python -m benchmarks.attack [--tables 1000] [--plans 500] [--fits 300] [--tracks 600] [--results 600] [--messages 5000]
                            [--seed 0]
python -m benchmarks.attack --soak MINUTES

Links, bombs, pipes and stray files follow. Messages and uploads go through the sockets of the real studio, whose memory
under hostile uploads must stay within 1 GB of what it holds at rest. The soak instead keeps its pages open, connects
and leaves a thousand times meanwhile, and prints the memory that the studio holds. tests/ use the same attacks in
small; what is sent is in wild.py.
"""

import argparse
import json
import os
import re
import shutil
import signal
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any, NamedTuple
from urllib.parse import parse_qs, quote, urlsplit
from urllib.request import Request, urlopen

import h5py
import numpy as np
import pandas as pd
import psutil
from rich.console import Console
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from policychord import enable_x64
from policychord.choices.data import TASKS, parse_choices, read_choices
from policychord.inference import Model, likelihood, real
from policychord.inference.families import full
from policychord.inference.learning import objectives as learning
from policychord.inference.optimise import Optimum
from policychord.runs import cache, fit, sweep
from policychord.runs import tracks as track_runs
from policychord.runs.plan import SweepPlan, points_of, read_sweep_plan
from policychord.tracks.motion import card_of, describe, move
from policychord.tracks.reading import parse_tracks, read_tracks
from policychord_paper import compare

from . import wild
from .frames import unpack
from .studio import studio, visit
from .wild import ACTS, Random

SECONDS_FOR_AN_ANSWER = 300  # a page that fits tracks answers afterwards
RECONNECTS = 1000
PAGES = ("gate", "policies", "flock", "choices", "flight")
LOOKS = 250  # messages after which the page is asked for a picture
UPLOADS = 50  # and after which a file is handed over
SECONDS_FOR_A_FILE = 30
FLOOD = 5000  # messages at once
MOST_MEMORY = 1000.0  # MB that hostile uploads may take above what the studio holds at rest
LARGE = ("16,000 trials", "a crowd", "many individuals")  # too large for the studio, not for the command


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
    return attack_written(count, seed, wild.plan, lambda path: points_of(read_sweep_plan(path)))


def attack_fits(count: int, seed: int) -> Attacked:
    """Read broken plans of fits, with their data; what is right after all is not simulated, which takes seconds."""
    rng = Random(seed)

    def read(path: Path) -> None:
        (path.parent / "mine.csv").write_bytes(wild.table(rng))
        (path.parent / "data.zarr").mkdir(exist_ok=True)
        plan = fit.read_fit_plan(path)
        design, _ = fit.pose_fit(plan)
        if plan.simulate is not None:
            full(design.family, plan.simulate.theta)
        elif plan.data is not None:
            fit._observed(plan, design, path.parent)

    return attack_written(count, seed, wild.fit_plan, read)


def attack_tracks(count: int, seed: int) -> Attacked:
    """Read broken files of tracks, and make the card of those that can be read; then with broken settings."""
    good = wild.good_tracks()

    def card(given: tuple[str, bytes]) -> None:
        name, content = given
        tracks = parse_tracks(content, name, rate=None if name.endswith(("h5", "nc")) else 10.0)
        describe(card_of(tracks, move(tracks)))

    def use(path: Path) -> None:
        plan = track_runs.read_track_plan(path, {})
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
    given = likelihood(Model("a", (real("a"),), lambda theta, unit: -(theta["a"] ** 2)), {"x": np.zeros(3)})
    learning.write_optimum(folder / "learned.npz", given, optimum)
    cache.save_result(folder / "step.npz", "step", cache.Result({"a": np.arange(3), "b": (1, "x")}, 1.0))
    fitted = fit.FitPlan.model_validate({"family": "bandit", "free": ["eps"], "simulate": {"decisions": 50}})
    runs = {"z": [0.0], "starts": [[0.0]], "tried": [[0.0]], "heights": [0.0]}
    optimum = runs | {"log_posterior": 0.0, "evaluations": 3}
    (folder / "fit.json").write_text(json.dumps({"plan": fitted.model_dump(), "optimum": optimum}))
    quantity = {"value": 0.5, "total": 2, "low": 0.1, "high": 0.9, "unit": "m"}
    claim = {"study": "flock", "id": "F1", "statement": "x", "paper": "x", "reported": "x", "rule": "x",
             "measured": {"a": quantity, "b": [1.0]}, "holds": {"x": True}, "verdict": "reproduced"}  # fmt: skip
    (folder / "claims.json").write_text(json.dumps([claim]))
    record = json.dumps({"claims": [claim], "environment": {"x": 1}})
    (folder / "report.html").write_text(f'<script type="application/json" id="record">{record}</script>')
    plan = SweepPlan.model_validate(
        {"study": "flock", "episodes": 1, "settings": {"steps": 5}, "grid": {"eps": [0.1, 1.0]}}
    )
    batch = sweep.batches_of(plan)[0]
    sweep._keep(
        folder,
        batch,
        sweep.Computed(pd.DataFrame({"point": [0, 1], "episode": [0, 0], "eps": [0.1, 1.0]}), {}),
        "made by this",
    )
    return {
        "learned.npz": lambda path: learning.read_optimum(path, given), "step.npz": cache.load_result,
        "fit.json": lambda path: fit._earlier(fitted, path, 1), "claims.json": lambda path: compare.compare(path, path),
        "report.html": lambda path: compare.compare(path, path),
        f"batches/{batch.id}.parquet": lambda path: sweep.results(plan, path.parents[1]),
    }  # fmt: skip


def together(*found: Attacked) -> Attacked:
    """Several attacks as one."""
    return Attacked(sum(one.tried for one in found), sum(one.refused for one in found),
                    [line for one in found for line in one.broken])  # fmt: skip


# ------------------------------------------------------------------------------- links, bombs, pipes, strays


class HangError(Exception):
    """Nothing came for `SECONDS_FOR_A_FILE`."""


def _refuse(what: str, read: Callable[[], Any]) -> Attacked:
    """Call what must raise a sentence, soon and without much memory."""

    def give_up(*_: Any) -> None:
        raise HangError(f"no answer within {SECONDS_FOR_A_FILE} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(SECONDS_FOR_A_FILE)
    try:
        found = attack(1, 0, lambda rng: None, lambda _: read())
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    broken = found.broken or ([] if found.refused else ["it was accepted"])
    return Attacked(1, found.refused, [f"{what}: {line}" for line in broken])


def attack_files(seed: int) -> Attacked:
    """Files that lead elsewhere, that unpack to gigabytes, that never end, or that are none of a sweep's."""
    with TemporaryDirectory() as place:
        folder = Path(place)
        found = [_refuse(what, partial(_read_tracks, folder, file))
                 for what, file in {**_links(folder), **wild.bombs()}.items() if what not in LARGE]  # fmt: skip
        for what, text in wild.keys().items():
            (folder / "plan.toml").write_text(text)
            found += [
                _refuse(what, partial(read, folder / "plan.toml")) for read in (read_sweep_plan, fit.read_fit_plan)
            ]
        found += [_refuse(what, read) for what, read in _odd_files(folder).items()]
        return together(*found, _stray(folder / "sweep"))


def _links(folder: Path) -> dict[str, wild.File]:
    """Files that refer to a secret, which is there."""
    (folder / "secret").write_bytes(wild.SECRET.tobytes())
    with h5py.File(folder / "secret.h5", "w") as file:
        file["x"] = wild.SECRET.reshape(wild.FRAMES, wild.GROUP, 2)
    return wild.links(str(folder / "secret"))


def _read_tracks(folder: Path, file: wild.File) -> None:
    (folder / file[0]).write_bytes(file[1])
    read_tracks(folder / file[0], rate=None if file[0].endswith(("h5", "nc")) else 10.0)


def _odd_files(folder: Path) -> dict[str, Callable[[], Any]]:
    """Pipes, folders, packed results and sparse tables, and who reads them."""
    names = {"pipe": folder / "pipe", "folder": folder / "a folder"}
    os.mkfifo(names["pipe"])
    names["folder"].mkdir()
    readers: dict[str, Callable[[Path], Any]] = {
        "plan": read_sweep_plan, "plan of a fit": fit.read_fit_plan, "result": cache.load_result, "tracks": read_tracks,
        "choices": read_choices, "claims": compare.read_run,
    }  # fmt: skip
    text = json.dumps({"format": cache.FORMAT, "seconds": 1.0, "value": {"array": 0}}).encode()
    np.savez_compressed(
        folder / "bomb.npz", **{cache.STRUCTURE: np.frombuffer(text, np.uint8), "0": np.zeros(2 * 10**7)}
    )
    with open(folder / "large.csv", "wb") as file:
        file.truncate(10**9)
    return {
        **{f"a {odd} as {what}": partial(read, path) for odd, path in names.items() for what, read in readers.items()},
        "a packed result": partial(cache.load_result, folder / "bomb.npz"),
        "choices of 1 GB": partial(read_choices, folder / "large.csv"),
        "tracks of 1 GB": partial(read_tracks, folder / "large.csv"),
    }


def _stray(folder: Path) -> Attacked:
    """Copies, pipes and folders among the batches of a sweep: none counts, each is named."""
    plan = SweepPlan.model_validate({"study": "flock", "episodes": 16, "batch": 4, "settings": {"steps": 5},
                                "grid": {"eps": [0.1]}})  # fmt: skip
    for batch in sweep.batches_of(plan)[1:]:
        table = pd.DataFrame({"point": 0, "episode": np.arange(4) + batch.spans[0].first, "eps": 0.1})
        sweep._keep(folder, batch, sweep.Computed(table, {}), "made by this")
    first, second = (folder / "batches" / f"{batch.id}.parquet" for batch in sweep.batches_of(plan)[:2])
    os.mkfifo(first)
    shutil.copy(second, second.with_name("a copy.parquet"))
    shutil.copy(second, second.with_name("0123456789abcdef.parquet"))
    (folder / "batches" / "x.parquet").mkdir()
    status, (table, notes) = sweep.sweep_status(plan, folder), sweep.results(plan, folder)
    right = (status.done_episodes, len(status.stray), len(table)) == (12, 3, 12) and any("a copy" in n for n in notes)
    return Attacked(1, 1, [] if right else [f"stray files: {status}, {len(table)} episodes, {notes}"])


# ------------------------------------------------------------------------------- the studio


def _cookie(address: str) -> dict[str, str]:
    url = urlsplit(address)
    return {"Cookie": f"policychord-{url.port}={parse_qs(url.query)['token'][0]}"}


def open_page(address: str, page: str) -> Any:
    """A socket to a page, as the browser opens it."""
    url = urlsplit(address)
    return connect(f"ws://{url.netloc}/ws/{page}", origin=f"http://{url.netloc}", additional_headers=_cookie(address),
                   open_timeout=60, max_size=None, ping_interval=None)  # fmt: skip


def hand_over(address: str, name: str, content: bytes) -> str:
    """The message with which a page takes a file, after the file has been uploaded."""
    where = f"http://{urlsplit(address).netloc}/upload?name={quote(name)}"
    with urlopen(Request(where, content, _cookie(address)), timeout=60) as answer:
        return json.dumps({"act": {"file": json.load(answer)["number"]}})


def next_text(line: Any) -> dict[str, Any]:
    """The next text, whatever frames come in between."""
    while isinstance(got := line.recv(timeout=SECONDS_FOR_AN_ANSWER), bytes):
        pass
    return json.loads(got)


def send_wild(address: str, line: Any, page: str, count: int, rng: Random) -> Attacked:
    """Send messages and files to a page that has just been opened, and sometimes look at what it draws.

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
            broken.append(f"{page}: {answer['message'][:200]} after {sent[:120]}")

    say('{"do": "rest"}')  # what is drawn in between takes long, and it is asked for now and then only
    for number in range(count):
        sent = wild.wild(rng, names, ACTS.get(page, ()))
        if number % UPLOADS == 0 and "file" in ACTS.get(page, ()):
            file = wild.tracks(rng) if page == "flock" else ("mine.csv", wild.table(rng))
            if page == "flock" and number + UPLOADS >= count:  # one that can be played, at the end
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


def attack_page(address: str, page: str, count: int, seed: int) -> Attacked:
    """Send wild messages to a page of a studio, and see that it still works afterwards."""
    try:
        with open_page(address, page) as line:
            found = send_wild(address, line, page, count, Random(f"{seed} {page}"))
        with open_page(address, page) as line:
            next_text(line)
    except Exception as error:  # a dead socket
        return Attacked(0, 0, [f"{page}: {type(error).__name__}: {error}"])
    return found


class Peak(NamedTuple):
    """Memory (MB) of the studio with the processes that it starts: at rest, and the most since then."""

    rest: float
    most: float


@contextmanager
def watched(process: Any) -> Iterator[Callable[[], Peak]]:
    """Look at the memory of a process many times a second."""
    of, stop = psutil.Process(process.pid), threading.Event()

    def held() -> float:
        total = 0.0
        for one in (of, *of.children(recursive=True)):
            with suppress(psutil.Error):  # it has ended meanwhile
                total += one.memory_info().rss / 1e6
        return total

    rest = most = held()

    def look() -> None:
        nonlocal most
        while not stop.wait(0.02):
            with suppress(psutil.Error):
                most = max(most, held())

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield lambda: Peak(rest, most)
    finally:
        stop.set()
        thread.join()


def attack_uploads(address: str, seed: int) -> Attacked:
    """Hand links and bombs to the pages that take files, cut uploads off, and send more than anybody reads."""
    with TemporaryDirectory() as place:
        files = {**_links(Path(place)), **wild.bombs()}
        pages = {"flock": "tracks", "choices": "data"}
        found = [_upload(address, page, pages[page], what, file) for page in pages for what, file in files.items()]
    for _ in range(20):
        _cut_off(address)
    return together(*found, _flood(address))


def _upload(address: str, page: str, part: str, what: str, file: wild.File) -> Attacked:
    """One file, which must be refused with a sentence that has none of the secret."""
    what = f"{what} to {page}"
    try:
        with open_page(address, page) as line:
            line.send(json.dumps({"set": {"rate": 10.0}} if page == "flock" else {"do": "rest"}))
            line.send(hand_over(address, *file))
            while True:
                got = line.recv(timeout=SECONDS_FOR_AN_ANSWER)
                if isinstance(got, bytes) and (frame := unpack(got)).part == part and frame.header.get("fault"):
                    break
                if isinstance(got, bytes) and frame.header.get("stage") in ("fitting", "playing"):
                    return Attacked(1, 0, [f"{what}: it was accepted"])
                if isinstance(got, str) and json.loads(got)["kind"] == "settings" and page == "choices":
                    line.send('{"do": "wake"}')
    except Exception as error:
        return Attacked(1, 0, [f"{what}: {type(error).__name__}: {error}"])
    told = frame.header["fault"]
    leaked = any(f"{number:.5f}"[:7] in told for number in wild.SECRET)
    return Attacked(1, 1, [f"{what}: {told[:200]}"] if leaked or len(told) > 3000 or "Error" in told else [])


def _cut_off(address: str) -> None:
    """A request that ends in the middle of its body."""
    url = urlsplit(address)
    named = {"Host": url.netloc, **_cookie(address), "Content-Length": "5000"}
    lines = ["POST /upload?name=x.csv HTTP/1.1", *(f"{name}: {value}" for name, value in named.items()), "", "subject"]
    with socket.create_connection((url.hostname, url.port)) as line:
        line.sendall("\r\n".join(lines).encode())


def _flood(address: str) -> Attacked:
    """5,000 messages at once: as many answers, or an error that says how many were dropped."""
    answered = dropped = 0
    with open_page(address, "gate") as line:
        next_text(line)
        sender = threading.Thread(target=lambda: [line.send("nonsense") for _ in range(FLOOD)])
        sender.start()
        with suppress(TimeoutError):
            while answered + dropped < FLOOD:
                while isinstance(got := line.recv(timeout=10), bytes):
                    pass
                told = json.loads(got)
                answered += told["kind"] == "settings"
                if match := re.match(r"(\d+) messages or answers were dropped", told.get("message", "")):
                    dropped += int(match[1])
        sender.join()
    enough = answered + dropped >= FLOOD
    return Attacked(FLOOD, FLOOD, [] if enough else [f"{answered} answers, {dropped} dropped of {FLOOD} messages"])


def soak(address: str, process: Any, minutes: float, console: Console) -> list[str]:
    """Keep all pages open, come and go, and print the memory of the studio; the answer is what was lost."""
    stop = threading.Event()
    taken: Counter[str] = Counter()
    lost: list[str] = []

    def watch(what: str) -> None:
        """Take what the page sends, as a browser does, and come back if the line is lost."""
        while not stop.is_set():
            try:
                with open_page(address, "flock" if what == "tracks" else what) as line:
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

    watching = [threading.Thread(target=watch, args=(what,)) for what in (*PAGES, "tracks")]
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
    if not told.soak:
        run("links, bombs, pipes and strays", attack_files)
    if told.messages or told.soak:
        with TemporaryFile("w+") as log, studio(log) as (address, process):
            if told.soak:
                broken += len(soak(address, process, told.soak, console))
            for page in () if told.soak else PAGES:
                run(f"messages to {page}", attack_page, address, page, told.messages // len(PAGES))
            if not told.soak:
                with watched(process) as peak:
                    run("hostile uploads and floods", attack_uploads, address)
                    above = peak().most - peak().rest
                console.print(f"memory of the studio under hostile uploads: {peak().rest:.0f} MB at rest, at most "
                              f"{above:.0f} MB above it (limit {MOST_MEMORY:.0f})")  # fmt: skip
                broken += above > MOST_MEMORY
                log.seek(0)
                traces = log.read().count("Traceback")
                console.print(f"{traces} tracebacks in the terminal of the studio")
                broken += traces
            alive = process.poll() is None
            console.print("the studio is alive" if alive else "[red]the studio has ended")
            broken += not alive
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
