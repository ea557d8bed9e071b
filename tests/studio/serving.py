"""The real server on a free port, and who asks it."""

import socket
import threading
import time
from typing import NamedTuple

import uvicorn
from websockets.sync.client import connect

from policychord.studio.security import ADDRESS, cookie_name
from policychord.studio.server import _configure

TOKEN = "a-token-for-tests"


class Studio(NamedTuple):
    port: int

    @property
    def origin(self) -> str:
        return f"http://{ADDRESS}:{self.port}"

    @property
    def address(self) -> str:
        return f"{self.origin}/?token={TOKEN}"

    @property
    def cookies(self) -> dict[str, str]:
        return {cookie_name(self.port): TOKEN}

    def socket(self, page: str, origin: str | None = "own", cookie: str = TOKEN, **more):
        """A socket to a page, as the browser opens it."""
        given = {"Cookie": f"{cookie_name(self.port)}={cookie}"}
        origin = self.origin if origin == "own" else origin
        where = f"ws://{ADDRESS}:{self.port}/ws/{page}"
        return connect(where, origin=origin, additional_headers=given, max_size=None, open_timeout=60, **more)


def served():
    """Start the server, hand it out, and stop it."""
    with socket.socket() as listener:
        listener.bind((ADDRESS, 0))
        port = listener.getsockname()[1]
        server = uvicorn.Server(_configure(TOKEN, port))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield Studio(port)
        server.should_exit = True
        thread.join()
        wait_until(lambda: not simulations())  # Python must not end while one of them compiles


def simulations() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("studio-")]


def wait_until(holds, seconds: float = 120.0) -> None:
    """Wait for something that must come; how long it takes does not matter."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)
