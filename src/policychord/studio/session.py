"""`Session`: one simulation for one socket, in a thread of its own, so that the server always has time to answer."""

import json
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from typing import Any

from .rooms.base import Room
from .uploads import Uploads
from .wire import pack

FRAMES_PER_SECOND = 30
LATELY = 2.0  # seconds over which frames are counted
WAITING = 256  # messages that may wait to be read; of more, the oldest are dropped


class Session:
    """Told what the page says, asked what there is to send. Of frames that were not sent in time the latest is kept."""

    def __init__(self, room: Room, wake: Callable[[], None], uploads: Uploads):
        self._room, self._wake, self._uploads = room, wake, uploads
        self._said: deque[str] = deque(maxlen=WAITING)
        self._words: deque[str] = deque(maxlen=WAITING)
        self._frames: dict[str, bytes] = {}
        self._changed = threading.Condition()
        self._closed = threading.Event()
        self._resting = False
        self.thread = threading.Thread(target=self._run, name=f"studio-{room.name}", daemon=True)

    def start(self) -> None:
        self.thread.start()

    def tell(self, message: str) -> None:
        """Hand over what the page said."""
        with self._changed:
            self._said.append(message)
            self._changed.notify()

    def take(self) -> list[str | bytes]:
        """What is to be sent now: words in order, then the latest frame of each part."""
        with self._changed:
            ready: list[str | bytes] = [*self._words, *self._frames.values()]
            self._words.clear()
            self._frames.clear()
            return ready

    def close(self) -> None:
        """The page has gone: the thread ends after the frame it is at."""
        with self._changed:
            self._closed.set()
            self._changed.notify()

    # ------------------------------------------------------------------ in the thread

    def _run(self) -> None:
        try:
            self._simulate()
        except Exception:  # the page should not wait for ever for a thread that has died
            traceback.print_exc()
            self._say(
                {"kind": "error", "message": "The studio made a mistake; the terminal says where. Reload the page."}
            )

    def _simulate(self) -> None:
        room, state = self._room, self._room.begin()
        self._say({"kind": "hello", "controls": room.controls(), **room.told(state)})
        ends: deque[float] = deque()
        due, idle = 0.0, True  # the page speaks first: it may have settings of its own
        while True:
            said = self._listen(idle)
            if self._closed.is_set():
                return
            if said:
                ends.clear()
            for message in said:
                state = self._obey(state, message)
            if self._resting or room.settled(state):
                idle = True
                continue
            try:
                state, frame = room.frame(state)
            except ValueError as error:  # this problem cannot be computed, the next one may
                self._say({"kind": "error", "message": str(error)})
                idle = True
                continue
            ends.append(time.monotonic())
            while ends[-1] - ends[0] > LATELY:
                ends.popleft()
            rate = (len(ends) - 1) / (ends[-1] - ends[0]) if len(ends) > 1 else 0.0
            self._show(frame.part, pack(frame._replace(header={**frame.header, "fps": round(rate, 1)})))
            # a late frame may be caught up with, but not more than one
            due, idle = max(due + 1 / FRAMES_PER_SECOND, ends[-1] - 1 / FRAMES_PER_SECOND), False
            self._closed.wait(due - ends[-1])

    def _listen(self, idle: bool) -> list[str]:
        with self._changed:
            while idle and not self._said and not self._closed.is_set():
                self._changed.wait()
            said = list(self._said)
            self._said.clear()
            return said

    def _obey(self, state: Any, message: str) -> Any:
        """The state after what the page said; what is wrong with it is sent back and changes nothing."""
        try:
            given = json.loads(message)
            if not (isinstance(given, dict) and given and set(given) <= {"set", "act", "do"}):
                raise ValueError('a message is {"set": {name: value}}, {"act": {name: value}} or {"do": what}.')
            for word in ("set", "act"):
                if not isinstance(given.get(word, {}), dict):
                    raise ValueError(f"{word} = {str(given[word])[:60]}: pass names with values.")
            if given.get("do", "restart") not in ("restart", "rest", "wake"):
                raise ValueError(f"do = {str(given['do'])[:60]}: use restart, rest or wake.")
            if "set" in given:
                state = self._room.change(state, given["set"])
            if "act" in given:
                state = self._room.act(state, self._with_file(given["act"]))
            if given.get("do") == "restart":
                state = self._room.restart(state)
            elif "do" in given:
                self._resting = given["do"] == "rest"  # nobody looks at a tab that is hidden
        except (ValueError, RecursionError) as error:
            words = str(error) if not isinstance(error, json.JSONDecodeError) else f"this message is not JSON: {error}."
            self._say({"kind": "error", "message": words[:500]})
        self._say({"kind": "settings", **self._room.told(state)})
        return state

    def _with_file(self, act: dict[str, Any]) -> dict[str, Any]:
        """A room gets the file itself, whose number is all that the page knows."""
        return {**act, "file": self._uploads.take(act["file"])} if "file" in act else act

    def _say(self, words: dict[str, Any]) -> None:
        with self._changed:
            self._words.append(json.dumps(words))
        self._wake()

    def _show(self, part: str, data: bytes) -> None:
        with self._changed:
            self._frames[part] = data
        self._wake()
