"""Ctrl-C that is heard while compiled code runs: Python alone waits until that returns, or loses it in a callback."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from .output import aside

INTERRUPTED = 130  # the exit code that shells expect
GRACE = 3.0  # seconds in which a command may end in its own way


@contextmanager
def interruptible() -> Iterator[None]:
    """Within, Ctrl-C raises KeyboardInterrupt as ever; if the command has not ended soon after, the process does."""
    if os.name == "nt" or threading.current_thread() is not threading.main_thread():
        yield
        return
    ear, mouth = os.pipe()
    os.set_blocking(mouth, False)
    before = signal.set_wakeup_fd(mouth, warn_on_full_buffer=False)  # written to at once, whatever the main thread does
    threading.Thread(target=_listen, args=(ear,), daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(mouth)


def leave() -> None:
    """Say so and end at once: an orderly exit would pull the rug from under compilations still running."""
    sys.stdout.flush()
    aside.show_cursor()  # a progress bar may have hidden it
    print("\npolicychord: interrupted; files written so far are complete.", file=sys.stderr, flush=True)
    os._exit(INTERRUPTED)


def _listen(ear: int) -> None:
    while heard := os.read(ear, 1):
        if heard[0] == signal.SIGINT:
            time.sleep(GRACE)
            leave()
    os.close(ear)
