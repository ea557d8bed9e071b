"""Broken tables, wild messages and impossible plans: each must get an answer or one sentence, never a traceback.

python -m benchmarks.attack [--tables 1000] [--messages 5000] [--plans 500] [--soak MINUTES] [--seed 0]

Messages go through the sockets of the real studio. The soak keeps four rooms open, connects and leaves a thousand times
meanwhile, and prints the memory that the studio holds. tests/ use the same generators in small.
"""

import argparse
import json
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import psutil
from rich.console import Console
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from policychord.choices.data import TASKS, parse_choices
from policychord.runs.plan import points_of, read_plan

from .studio import studio, visit

SECONDS_FOR_AN_ANSWER = 120
RECONNECTS = 1000
LONG = "9" * 400
DEEP = {"deep": "[" * 20_000, "long": '{"set": ' + "9" * 5000 + "}"}  # sent in place of these words
ODD = (*DEEP, '{"do": "harm"}', "", '{"set": {"eps": NaN}}')
ACTS = {"flight": ("moment", "push", "forget"), "choices": ("file", "cohort")}
Random = random.Random


class Attacked(NamedTuple):
    """What became of the attempts: how many were refused, and those that ended in anything but a sentence."""

    tried: int
    refused: int
    broken: list[str]


# ------------------------------------------------------------------------------- what is sent


def text(rng: Random, longest: int) -> str:
    """Any characters but surrogates, which no socket carries."""
    codes = (
        rng.choice((rng.randrange(32, 127), rng.randrange(0xD800), rng.randrange(0xE000, 0x110000)))
        for _ in range(rng.randrange(longest))
    )
    return "".join(map(chr, codes))


def value(rng: Random, depth: int = 0) -> Any:
    """Anything that JSON can hold."""
    kind = rng.randrange(5 if depth > 2 else 7)
    if kind == 5:
        return [value(rng, depth + 1) for _ in range(rng.randrange(4))]
    if kind == 6:
        return {text(rng, 8): value(rng, depth + 1) for _ in range(rng.randrange(4))}
    return (
        None,
        rng.random() < 0.5,
        rng.randrange(-(2**70), 2**70),
        rng.choice((0.5, -1e300, float("inf"), rng.gauss(0, 9))),
        text(rng, 8),
    )[kind]


def message(rng: Random, names: list[str]) -> str:
    """Text, JSON, settings with values of any kind."""
    kind = rng.randrange(4)
    if kind == 0:
        return text(rng, 60)
    if kind == 1:
        return json.dumps(value(rng))
    if kind == 2:
        return json.dumps({"set": {rng.choice(names): value(rng) for _ in range(rng.randrange(1, 4))}})
    sent = rng.choice(ODD)
    return DEEP.get(sent, sent)


def wild(rng: Random, names: list[str], acts: tuple[str, ...]) -> str:
    """A message that is nearly right, or not at all."""
    number = rng.choice(("0", "1", "-1", "3", "0.5", "1e-9", "-0.0", "1e15", "1e308", "1e309", "-7e400", "NaN", LONG))
    given = rng.choice((number, number, number, f'"{number}"', "null", "true", "[]", "{}", f"[{number}, 1]",
                        f"[{number}, {number}]", json.dumps(text(rng, 12)), json.dumps(value(rng))))  # fmt: skip
    kind = rng.randrange(4)
    if kind == 0:
        return message(rng, names)
    if kind == 1 and acts:
        return f'{{"act": {{"{rng.choice(acts)}": {given}}}}}'
    return f'{{"set": {{"{rng.choice(names)}": {given}}}}}'


CELLS = ("", "nan", "inf", "-1", "0", "3", "1e400", "1e13", "0x10", "1_000", "=1+1", "@x", "$\\frac{x$", "<b>",
         "\x1b[31m",
         "\x00", '"', '""', "1;2", "\u0661", LONG, "Ann", "None", "true", " 1 ", "1.0000001")  # fmt: skip


def table(rng: Random) -> bytes:
    """A table of choices with a few things wrong: cells, columns, rows, bytes."""
    names = ["subject", "block", "trial", "choice", "reward", "RT", "source"]
    rows = [[str(s), str(b), str(t), str(1 + rng.randrange(2)), f"{rng.gauss(0, 9):.2f}", "400", "mine"]
            for s in (1, 2) for b in (1, 2) for t in range(1, 7)]  # fmt: skip
    rows.insert(0, names)
    for _ in range(rng.randrange(4)):
        at = rng.randrange(len(rows))
        kind = rng.randrange(7)
        if kind <= 2 and rows[at]:
            rows[at][rng.randrange(len(rows[at]))] = rng.choice((*CELLS, text(rng, 9)))
        elif kind == 3:
            rows[at] = rows[at][: rng.randrange(len(rows[at]) + 1)]
        elif kind == 4:
            rows[at] = rows[at] + [rng.choice(CELLS)] * rng.randrange(1, 40)
        elif kind == 5:
            rows.insert(at, list(rng.choice(rows)))
        elif len(rows) > 1:
            del rows[at]
    end, between = rng.choice(("\n", "\n", "\r\n", "\r")), rng.choice(",,,,,,,;\t|")
    content = end.join(between.join(row) for row in rows).encode()
    kind = rng.randrange(12)
    if kind == 0:
        return content[: rng.randrange(len(content) + 1)]
    if kind == 1:
        at = rng.randrange(len(content) + 1)
        return content[:at] + rng.randbytes(rng.randrange(1, 30)) + content[at:]
    if kind == 2:
        return content.decode().encode(rng.choice(("utf-16", "utf-32", "utf-7")))
    return content


NUMBERS = ("0", "1", "-1", "2", "0.5", "1e-9", "1e9", "1000000000", LONG, "nan", "inf", "true", '""', '"x"', "[]", "{}",
           "[1, 2]", '["a", 1]', "1979-05-27", "{ low = 0, high = 1 }", "{ low = 1, high = 0, points = 3 }",
           "{ low = 0.1, high = 1.0, points = 1000000000 }", '{ low = 0, high = 1, points = 3, scale = "log" }',
           "{ low = nan, high = inf, points = 2 }", "{ low = 0.1, high = 1.0, points = 3, scale = 1 }")  # fmt: skip


def plan(rng: Random) -> str:
    """A plan of a sweep, with a few things wrong."""
    lines = {
        "study": '"flock"', "episodes": "3", "seed": "1", "batch": "10", "metrics": '["milling"]', "trajectories": "0",
    }  # fmt: skip
    tables = {"settings": {"scenario": '"milling"', "steps": "5"}, "grid": {"eps": "[0.1, 1.0]", "boids": "[4, 5]"}}
    if rng.random() < 0.3:
        del tables["grid"]
        tables["random"] = {"points": "4", "over.eps": "{ low = 0.1, high = 1.0 }", "design": '"sobol"'}
    for _ in range(rng.randrange(1, 4)):
        where = rng.choice([lines, *tables.values()])
        name = rng.choice([*where, json.dumps(text(rng, 6)), "grid", "settings", "a.b.c"])
        where[name] = rng.choice((*NUMBERS, json.dumps(text(rng, 8)), json.dumps(value(rng, 2))))
        if rng.random() < 0.2:
            where.pop(rng.choice(list(where)))
    written = [f"{name} = {given}" for name, given in lines.items()]
    for name, content in tables.items():
        written += [f"[{name}]", *(f"{key} = {given}" for key, given in content.items())]
    if rng.random() < 0.05:
        written.append("x = " + "[" * 5000)
    if rng.random() < 0.1:
        written = written[: rng.randrange(len(written))]
    return "\n".join(written)


# ------------------------------------------------------------------------------- who answers


def attack(count: int, seed: int, make: Callable[[Random], Any], answer: Callable[[Any], None]) -> Attacked:
    """Call `answer` with what `make` draws: it may return, or raise a ValueError or OSError of a line or a few."""
    refused, broken = 0, []
    for number in range(count):
        given = make(Random(f"{seed} {number}"))
        try:
            answer(given)
        except (ValueError, OSError) as error:
            refused += 1
            if not str(error) or len(str(error)) > 3000 or "\x1b" in str(error):
                broken.append(f"{number}: no sentence: {str(error)[:200]!r}")
        except Exception as error:  # what would be a traceback
            broken.append(f"{number}: {type(error).__name__}: {str(error)[:200]}")
    return Attacked(count, refused, broken)


def attack_tables(count: int, seed: int) -> Attacked:
    """Read broken tables of choices."""
    return attack(count, seed, table, lambda content: parse_choices(content, "mine.csv", TASKS["2"]))


def attack_plans(count: int, seed: int) -> Attacked:
    """Read broken plans, and list the points of those that are right after all."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "plan.toml"

        def read(content: str) -> None:
            path.write_text(content, encoding="utf-8")
            points_of(read_plan(path))

        return attack(count, seed, plan, read)


def open_room(address: str, room: str) -> Any:
    """A socket to a room, as the page opens it."""
    url = urlsplit(address)
    cookie = f"policychord-{url.port}={parse_qs(url.query)['token'][0]}"
    return connect(f"ws://{url.netloc}/ws/{room}", origin=f"http://{url.netloc}", additional_headers={"Cookie": cookie},
                   open_timeout=60, max_size=None, ping_interval=None)  # fmt: skip


def next_text(line: Any) -> dict[str, Any]:
    """The next text, whatever frames come in between."""
    while isinstance(got := line.recv(timeout=SECONDS_FOR_AN_ANSWER), bytes):
        pass
    return json.loads(got)


def send_wild(line: Any, room: str, count: int, rng: Random) -> Attacked:
    """Send messages to a room that has just been opened: each gets the settings, after an error if it was wrong."""
    names = list(next_text(line)["settings"])
    line.send('{"do": "rest"}')  # what is drawn in between takes long, and it is not asked here
    next_text(line)
    refused, broken = 0, []
    for number in range(count):
        line.send(sent := wild(rng, names, ACTS.get(room, ())))
        while (answer := next_text(line))["kind"] != "settings":
            refused += 1
            if "The studio could not do this" in answer["message"]:
                broken.append(f"{room} {number}: {answer['message'][:200]} after {sent[:120]}")
    return Attacked(count, refused, broken)


def attack_rooms(address: str, count: int, seed: int) -> Attacked:
    """Send wild messages to every room of a studio, and see that each still works afterwards."""
    found = []
    for room in ("gate", "flock", "choices", "flight"):
        try:
            with open_room(address, room) as line:
                found.append(send_wild(line, room, count // 4, Random(f"{seed} {room}")))
            with open_room(address, room) as line:
                next_text(line)
        except Exception as error:  # a dead socket
            found.append(Attacked(0, 0, [f"{room}: {type(error).__name__}: {error}"]))
    return Attacked(sum(one.tried for one in found), sum(one.refused for one in found),
                    [line for one in found for line in one.broken])  # fmt: skip


def soak(address: str, process: Any, minutes: float, console: Console) -> None:
    """Keep four rooms open, come and go, and print the memory of the studio."""
    stop = threading.Event()
    taken: Counter[str] = Counter()
    lost: list[str] = []

    def watch(room: str) -> None:
        """Take what the room draws, as a page does, and come back if the line is lost."""
        while not stop.is_set():
            try:
                with open_room(address, room) as line:
                    line.send('{"set": {}}')
                    while not stop.is_set():
                        with suppress(TimeoutError):
                            line.recv(timeout=1.0)
                            taken[room] += 1
            except (ConnectionClosed, OSError) as error:
                lost.append(f"{room}: {error}")

    watching = [threading.Thread(target=watch, args=(room,)) for room in ("gate", "flock", "choices", "flight")]
    for thread in watching:
        thread.start()
    begun, done, told = time.monotonic(), 0, -1
    while (spent := time.monotonic() - begun) < 60 * minutes and process.poll() is None:
        if done < RECONNECTS and done < RECONNECTS * spent / (60 * minutes * 0.95):
            visit(address, 4)
            done += 4
        if int(spent / 60) > told:
            told = int(spent / 60)
            held, frames = psutil.Process(process.pid).memory_info().rss / 1e6, sum(taken.values())
            console.print(f"{told:3} min, {done:4} reconnects, {frames:6,} frames, {len(lost)} lost, {held:6.0f} MB")
        time.sleep(0.2)
    stop.set()
    for thread in watching:
        thread.join()
    console.print(f"{done} reconnects; frames: {dict(taken)}; lines lost: {lost}", markup=False)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for name, count in (("tables", 1000), ("messages", 5000), ("plans", 500), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=count)
    parser.add_argument("--soak", type=float, default=0.0, help="minutes")
    told, console = parser.parse_args(), Console(highlight=False, soft_wrap=True)
    found = {"tables": attack_tables(told.tables, told.seed), "plans": attack_plans(told.plans, told.seed)}
    if told.messages or told.soak:
        with studio() as (address, process):
            found["messages"] = attack_rooms(address, told.messages, told.seed)
            if told.soak:
                soak(address, process, told.soak, console)
            console.print("the studio is alive" if process.poll() is None else "[red]the studio has ended")
    for what, one in found.items():
        console.print(f"{one.tried:,} {what}: {one.refused:,} refused with a sentence, {len(one.broken)} broken")
        for line in one.broken[:20]:
            console.print("  " + line, markup=False)
    return 1 if any(one.broken for one in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
