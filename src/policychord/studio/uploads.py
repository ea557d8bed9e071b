"""Uploaded files: in memory, few at a time, until their tab takes them. No path is opened."""

import secrets
import threading
from collections import OrderedDict
from typing import NamedTuple

MOST = 4  # files that may wait for their tabs; of more, the oldest are dropped
LONGEST_NAME = 80


class Upload(NamedTuple):
    """A file as it came."""

    name: str
    content: bytes


class Uploads:
    """Files between the request that uploads one and the tab that it belongs to: its number takes it, once."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, Upload] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, name: str, content: bytes) -> str:
        """Keep a file; the answer is the number to take it with."""
        number = secrets.token_urlsafe(12)
        with self._lock:
            self._waiting[number] = Upload(tidy(name), content)
            while len(self._waiting) > MOST:
                self._waiting.popitem(last=False)
        return number

    def take(self, number: object) -> Upload:
        with self._lock:
            upload = self._waiting.pop(number, None) if isinstance(number, str) else None
        if upload is None:
            raise ValueError("this file is no longer here: upload it once more.")
        return upload

    def __len__(self) -> int:
        return len(self._waiting)


def tidy(name: object) -> str:
    """A name to show: no folder, nothing invisible, and nothing that a spreadsheet would compute."""
    last = str(name).replace("\\", "/").rsplit("/", 1)[-1]
    seen = "".join(c if c.isalnum() or c in "._-()+ " else "_" for c in last if c.isprintable())
    return seen.lstrip("._-+ ").rstrip()[:LONGEST_NAME] or "table.csv"
