"""Uploads are parsed in a process of their own, with limits of memory and time.

What a library does with a hostile file then happens where it harms nobody: a process that takes too much is ended, and
the page gets a sentence. Both ways go bytes with a schema (runs/cache.py), never pickles.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from ..runs.cache import MissingError, Result, as_bytes, from_bytes
from .uploads import Upload

MEMORY = 600_000_000  # bytes that a parser may take beyond what it has when it starts
SECONDS = 30.0  # that it may take
MOST_PLACES = 400_000  # frames times individuals, of all trials: as many as a table of 5 MB has
MOST_ROWS = 100_000  # of a table of choices
MOST_TRIALS = 999  # of a file of tracks

Reader = Callable[[bytes, str, dict[str, Any]], Any]
_ONE_AT_A_TIME = threading.Lock()  # several tabs together take no more memory than one


def parse(reader: str, upload: Upload, options: dict[str, Any]) -> Any:
    """What the reader (of `READERS`) finds in an upload; a ValueError says what is wrong with it."""
    content = np.frombuffer(upload.content, np.uint8)
    asked = {"reader": reader, "name": upload.name, "content": content, "options": options}
    command = [sys.executable, "-P", "-m", __name__]  # -P: a module in the current folder is none of ours
    paths = filter(None, [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")])
    own = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    try:
        with _ONE_AT_A_TIME:
            done = subprocess.run(command, input=as_bytes(Result(asked, 0.0), "an upload"), stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, env=own, timeout=SECONDS, check=True)  # fmt: skip
        answer = from_bytes(done.stdout).value
    except subprocess.TimeoutExpired:
        raise ValueError(f"{upload.name} was not read within {SECONDS:g} seconds: use a smaller file.") from None
    except (subprocess.CalledProcessError, MissingError, OSError):
        raise ValueError(
            f"{upload.name} could not be read: it takes too much memory, or it ends the program that reads it. Use a "
            "smaller file, or save it once more."
        ) from None
    if answer["fault"]:
        raise ValueError(answer["fault"])
    return answer["value"]


# ------------------------------------------------------------------ in the process


def _tracks() -> Reader:
    from ..tracks.reading import parse_tracks

    def read(content: bytes, name: str, options: dict[str, Any]) -> Any:
        tracks = parse_tracks(content, name, **options)
        places = sum(trial.position.shape[0] * trial.position.shape[1] for trial in tracks.trials)
        if places > MOST_PLACES or len(tracks.trials) > MOST_TRIALS:
            raise ValueError(
                f"{name} has {len(tracks.trials):,} trials with {places:,} places: the studio takes up to "
                f"{MOST_TRIALS} and {MOST_PLACES:,};  policychord tracks fit  takes more."
            )
        return tracks

    return read


def _choices() -> Reader:
    from ..choices.data import Reading, parse_choices

    def read(content: bytes, name: str, options: dict[str, Any]) -> Any:
        # whether values drift is found where memory is not limited: it takes JAX
        still = {} if options["task"] is not None else {"drift": 0.0, "decay": 1.0}
        choices = parse_choices(content, name, options["task"], how=Reading(options["columns"], task=still))
        if len(choices.choice) > MOST_ROWS:
            raise ValueError(f"{name} has {len(choices.choice):,} trials: the studio takes up to {MOST_ROWS:,}; more "
                             "can be done with  policychord choices fit")  # fmt: skip
        return choices

    return read


def _policies() -> Reader:
    from ..runs.policy_table import read_policies

    return read_policies


# Each imports what it needs, and nothing more, before memory is limited.
READERS: dict[str, Callable[[], Reader]] = {"tracks": _tracks, "choices": _choices, "policies": _policies}


def _limit_memory() -> None:
    """Take no more than is there now and `MEMORY` beyond, where the system can see to it."""
    try:
        import resource
    except ImportError:  # Windows
        return
    try:
        held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except OSError:  # no Linux: what was mapped is not known
        held = 4 * MEMORY
    with suppress(AttributeError, ValueError, OSError):  # some systems do not know the limit, or refuse it
        resource.setrlimit(resource.RLIMIT_AS, (held + MEMORY, held + MEMORY))


def _answer_request() -> None:
    """Read a request, answer it, and end."""
    asked = from_bytes(sys.stdin.buffer.read()).value
    reader = READERS[asked["reader"]]()
    fault, value = "", None
    _limit_memory()
    try:
        value = reader(asked["content"].tobytes(), asked["name"], asked["options"])
    except MemoryError:
        fault = f"{asked['name']} takes more memory than the studio gives to a file: use a smaller one."
    except ValueError as error:
        fault = str(error) or "This file cannot be read."
    except Exception as error:  # whatever a library raises about a broken file
        fault = f"{asked['name']} cannot be used ({type(error).__name__}: {str(error)[:200]}): check its numbers."
    sys.stdout.buffer.write(as_bytes(Result({"fault": fault, "value": value}, 0.0), "an answer"))


if __name__ == "__main__":
    _answer_request()
