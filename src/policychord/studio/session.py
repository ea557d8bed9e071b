"""`Session`: one page for one socket, in a thread of its own, so that the server always has time to answer."""

import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from typing import Any

from .memory import release_memory
from .pages.base import FRAMES_PER_SECOND, Page
from .uploads import Uploads
from .wire import as_json, pack, read_message

REST = 2.0  # seconds without a message, after which memory is given back
RATE_WINDOW = 2.0  # seconds over which frames are counted
LONGEST_QUEUE = 256  # messages that may wait; of more, the oldest are dropped
LONGEST_ERROR = 500  # characters


class Session:
    """Messages of the browser go in, texts and frames for it come out.

    Of frames that were not sent in time only the latest of each part is kept. Of messages and answers that wait, the
    latest `LONGEST_QUEUE` are kept, and the browser learns how many were dropped. Whatever a page raises becomes an
    error message, and the session goes on.
    """

    def __init__(self, page: Page, wake: Callable[[], None], uploads: Uploads):
        self._page, self._wake, self._uploads = page, wake, uploads
        self._received: deque[str] = deque(maxlen=LONGEST_QUEUE)
        self._texts: deque[str] = deque(maxlen=LONGEST_QUEUE)
        self._frames: dict[str, bytes] = {}
        self._changed = threading.Condition()
        self._closed = threading.Event()
        self._lost = 0  # messages that were dropped since the browser last learned of them
        self._hidden = False
        self._number: Any = None  # of the last message, as the browser counts them
        self.thread = threading.Thread(target=self._run, name=f"studio-{page.name}", daemon=True)

    def start(self) -> None:
        self.thread.start()

    def receive(self, message: str) -> None:
        """Hand over a message of the browser."""
        with self._changed:
            self._lost += len(self._received) == LONGEST_QUEUE
            self._received.append(message)
            self._changed.notify()

    def take(self) -> list[str | bytes]:
        """What is to be sent now: texts in order, then the latest frame of each part."""
        with self._changed:
            words = (f"{self._lost} messages or answers were dropped: at most {LONGEST_QUEUE} wait. "
                     "Send fewer before reading answers.")  # fmt: skip
            notices = [as_json({"kind": "error", "message": words})] if self._lost else []
            ready: list[str | bytes] = [*notices, *self._texts, *self._frames.values()]
            self._lost = 0
            self._texts.clear()
            self._frames.clear()
            return ready

    def close(self) -> None:
        """The tab is closed: the thread ends after the current frame."""
        with self._changed:
            self._closed.set()
            self._changed.notify()

    # ------------------------------------------------------------------ in the thread

    def _run(self) -> None:
        page, state = self._page, None
        while state is None:  # a page that cannot begin is tried again at the next message
            try:
                state = page.begin()
                self._send_text(as_json({"kind": "hello", "inputs": page.inputs(), **page.describe(state)}))
            except Exception as error:
                state = None
                self._send_error(error)
                self._wait_for_messages(idle=True)
            if self._closed.is_set():
                return
        ends: deque[float] = deque()
        due, idle = 0.0, True  # the browser speaks first: its address may have settings
        while True:
            messages = self._wait_for_messages(idle)
            if self._closed.is_set():
                return
            if messages:
                ends.clear()
            for message in messages:
                state = self._answer(state, message)
            idle = True
            if self._hidden:
                continue
            try:
                if page.settled(state):
                    continue
                state, frame = page.frame(state)
                idle = False
                if frame is None:
                    continue
                ends.append(time.monotonic())
                while ends[-1] - ends[0] > RATE_WINDOW:
                    ends.popleft()
                rate = (len(ends) - 1) / (ends[-1] - ends[0]) if len(ends) > 1 else 0.0
                self._send_frame(frame.part, pack(frame._replace(header={**frame.header, "fps": round(rate, 1)})))
            except Exception as error:  # this problem cannot be computed, the next one may
                self._send_error(error, failed=True)
                idle = True
                continue
            if page.moves:
                # a late frame may be caught up with, but not more than one
                due = max(due + 1 / FRAMES_PER_SECOND, ends[-1] - 1 / FRAMES_PER_SECOND)
                self._closed.wait(due - ends[-1])

    def _wait_for_messages(self, idle: bool) -> list[str]:
        """Messages since the last call; `idle` waits for at least one."""
        with self._changed:
            rests: float | None = REST
            while idle and not self._received and not self._closed.is_set():
                if not self._changed.wait(rests) and rests is not None:
                    release_memory()
                    rests = None
            messages = list(self._received)
            self._received.clear()
            return messages

    def _answer(self, state: Any, message: str) -> Any:
        """The state after a message; an error is sent back and changes nothing."""
        try:
            changed = self._apply(state, message)
            text = self._settings(changed)
        except Exception as error:
            self._send_error(error)
            changed, text = state, self._settings(state)
        self._send_text(text)
        return changed

    def _apply(self, state: Any, text: str) -> Any:
        message = read_message(text)
        self._number = message.get("number")
        if "set" in message:
            state = self._page.change(state, message["set"])
        if "act" in message:
            act = message["act"]  # the browser knows only the number of a file, the page gets the file
            state = self._page.act(state, {**act, "file": self._uploads.take(act["file"])} if "file" in act else act)
        if message.get("do") == "restart":
            state = self._page.restart(state)
        elif "do" in message:
            self._hidden = message["do"] == "rest"  # a hidden tab needs no frames
        return state

    def _settings(self, state: Any) -> str:
        return as_json({"kind": "settings", "number": self._number, **self._page.describe(state)})

    def _send_error(self, error: Exception, failed: bool = False) -> None:
        """What is wrong, in the page's words; an exception that no page means to raise is shown in the terminal."""
        text = str(error)
        if not isinstance(error, ValueError):
            traceback.print_exception(error)
            text = f"The studio could not do this ({type(error).__name__}: {text[:200]}). The terminal shows where."
        readable = text.encode("utf-8", "replace").decode()
        self._send_text(as_json({"kind": "error", "message": readable[:LONGEST_ERROR], "failed": failed}))

    def _send_text(self, text: str) -> None:
        with self._changed:
            self._lost += len(self._texts) == LONGEST_QUEUE
            self._texts.append(text)
        self._wake()

    def _send_frame(self, part: str, data: bytes) -> None:
        with self._changed:
            self._frames[part] = data
        self._wake()
