"""Ctrl-C that is heard while compiled code runs: Python alone waits until that returns, or loses it in a callback."""

import _thread
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from .output import aside, tell_programs

INTERRUPTED = 130  # the exit code that shells expect
GRACE = 3.0  # seconds in which a command may end in its own way
AGAIN = 0.05  # seconds until a Ctrl-C is repeated that came where it would be lost


class _State:
    """The message about the work that was interrupted, and whether it was."""

    end = "interrupted; no file was left half-written."
    interrupted = False
    patient = ""  # the message at the first Ctrl-C to a command that ends by itself


@contextmanager
def interruptible() -> Iterator[None]:
    """Within, Ctrl-C raises KeyboardInterrupt as ever; if the command has not ended soon after, the process does."""
    _State.end, _State.interrupted, _State.patient = "interrupted; no file was left half-written.", False, ""
    if os.name == "nt" or threading.current_thread() is not threading.main_thread():
        yield
        return
    ear, mouth = os.pipe()
    os.set_blocking(mouth, False)
    before = signal.set_wakeup_fd(mouth, warn_on_full_buffer=False)  # written to at once, whatever the main thread does
    usual = signal.getsignal(signal.SIGINT)
    if usual is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    threading.Thread(target=_listen, args=(ear,), daemon=True).start()
    try:
        yield
    finally:
        # while the final message is printed, another Ctrl-C changes nothing
        signal.signal(signal.SIGINT, signal.SIG_IGN if _State.interrupted else usual)
        signal.set_wakeup_fd(before)
        os.close(mouth)


def resumable() -> None:
    """From here on, an interruption may say that nothing is lost."""
    _State.end = "interrupted; what was finished is kept: the same command goes on from there."


def ends_by_itself(words: str) -> None:
    """From here on the first Ctrl-C only raises KeyboardInterrupt: the command says `words` and takes its time."""
    _State.patient = words


def leave() -> None:
    """Say so and end at once: an orderly exit would pull the rug from under compilations still running."""
    try:
        aside.show_cursor()  # a progress bar may have hidden it
        print(f"\npolicychord: {_State.end}", file=sys.stderr, flush=True)
        tell_programs(_State.end, INTERRUPTED)
        sys.stdout.flush()
    finally:  # also where the output was closed
        os._exit(INTERRUPTED)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise, unless a callback of the garbage collector runs, which would swallow it: then ask again in a moment."""
    callbacks = [getattr(callback, "__code__", None) for callback in gc.callbacks]
    while frame is not None:
        if frame.f_code in callbacks:
            threading.Timer(AGAIN, _thread.interrupt_main).start()
            return
        frame = frame.f_back
    if _State.interrupted:  # pressed again: nothing is waited for
        leave()
    _State.interrupted = True
    raise KeyboardInterrupt


def _listen(ear: int) -> None:
    first = True
    while heard := os.read(ear, 1):
        if heard[0] == signal.SIGINT:
            if _State.patient and first:
                print(f"\npolicychord: {_State.patient}", file=sys.stderr, flush=True)
                first = False
                continue
            time.sleep(GRACE)
            leave()
    os.close(ear)
