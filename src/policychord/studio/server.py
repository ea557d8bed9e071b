"""The server: the browser's files, and a socket for each page. It computes nothing and opens no path of a client's."""

import asyncio
import html
import os
import socket
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, Request, Response, WebSocket
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse
from starlette.requests import ClientDisconnect
from uvicorn.protocols.http.h11_impl import H11Protocol

from .memory import share_arenas
from .pages import PAGES
from .security import ADDRESS, LARGEST_MESSAGE, Guard, cookie_name
from .session import Session
from .uploads import Uploads

HEADERS_WITHIN = 10.0  # seconds that a connection may take for the headers of a request
BODY_WITHIN = 60.0  # seconds that an upload may take
TOO_SLOW = f"The upload took longer than {BODY_WITHIN:g} seconds: try once more, or use a smaller file."

_STATIC = files(__package__) / "static"
_REPORT = files(__package__.rpartition(".")[0]) / "runs" / "templates"
_KINDS = {".css": "text/css", ".js": "text/javascript"}


def _static() -> dict[str, Traversable]:
    """Every file that can be asked for, by name."""
    table = {file.name: file for file in _STATIC.iterdir() if file.name.endswith((".js", ".css"))}
    table["tokens.css"] = _REPORT / "tokens.css"  # colours and type are those of the report
    return {**table, "plotly.js": files("plotly") / "package_data" / "plotly.min.js"}


def _index() -> str:
    """The document, with a template for each page from a file of the page's name."""
    pages = (
        f'<template id="{name}">\n{(_STATIC / f"{name}.html").read_text(encoding="utf-8")}</template>' for name in PAGES
    )
    return (_STATIC / "index.html").read_text(encoding="utf-8").replace("<!-- pages -->", "\n".join(pages))


def _create_app(token: str, port: int) -> FastAPI:
    """The application, for whoever knows the token, at this port of this machine."""
    app = FastAPI(title="policychord studio", docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(Guard, token=token, port=port)
    static, index, uploads = _static(), _index(), Uploads()

    @app.get("/")
    def document(request: Request) -> Response:
        answer = HTMLResponse(index)
        if "token" in request.query_params:  # from here on the cookie has it, and the page removes it from its address
            answer.set_cookie(cookie_name(port), token, httponly=True, samesite="strict")
        return answer

    @app.get("/static/{name}")
    def asset(name: str) -> Response:
        if name not in static:
            return PlainTextResponse("There is no such file.", 404)
        kind = _KINDS[name[name.rindex(".") :]]
        return Response(static[name].read_bytes(), media_type=f"{kind}; charset=utf-8")

    @app.get("/pages")
    def pages() -> list[dict[str, str]]:
        return [{"name": page.name, "title": page.title} for page in PAGES.values()]

    @app.post("/upload")
    async def upload(request: Request) -> Response:
        # the guard has seen how long the body is, and the server takes no more of it than that
        try:
            body = await asyncio.wait_for(request.body(), BODY_WITHIN)
        except TimeoutError:
            return PlainTextResponse(TOO_SLOW, 408, {"connection": "close"})
        except ClientDisconnect:  # nobody is there to read the answer
            return PlainTextResponse("The upload was cut off.", 400)
        return JSONResponse({"number": uploads.put(request.query_params.get("name", ""), body)})

    @app.get("/{name:path}")
    def elsewhere(name: str) -> Response:
        if name in PAGES:
            return RedirectResponse(f"/#{name}", 303)
        pages = ", ".join(f"/#{page}" for page in PAGES)
        return PlainTextResponse(f"There is no page here. The pages of the studio are {pages}.", 404)

    @app.websocket("/ws/{name}")
    async def line(ws: WebSocket, name: str) -> None:
        if name not in PAGES:
            await ws.close(1008)
            return
        await ws.accept()
        await _serve(ws, name, uploads)

    return app


async def _serve(ws: WebSocket, name: str, uploads: Uploads) -> None:
    """Carry messages and frames until the page is closed, then end the simulation."""
    loop, ready = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        with suppress(RuntimeError):  # the server may have ended before this thread
            loop.call_soon_threadsafe(ready.set)

    session = Session(PAGES[name], wake, uploads)
    sender = asyncio.create_task(_send(ws, session, ready))
    session.start()
    try:
        while (message := await ws.receive())["type"] != "websocket.disconnect":
            session.receive(message.get("text") or "")
    finally:
        session.close()
        sender.cancel()
        await asyncio.gather(sender, return_exceptions=True)


async def _send(ws: WebSocket, session: Session, ready: asyncio.Event) -> None:
    while True:
        await ready.wait()
        ready.clear()
        for part in session.take():
            await (ws.send_bytes(part) if isinstance(part, bytes) else ws.send_text(part))


class _Protocol(H11Protocol):
    """uvicorn's own, which sends at once, and closes connections whose headers do not come in time."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # asyncio leaves it out for listeners like ours; without it a small answer after another waits 40 ms
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.loop.call_later(HEADERS_WITHIN, self._check, None)

    def _check(self, before: Any) -> None:
        """Close if no request was completed since the last look, unless one is being answered or it is a socket."""
        if self.transport.is_closing() or self.transport.get_protocol() is not self:
            return
        if self.cycle is before and (before is None or before.response_complete):
            self.transport.close()
        else:
            self.loop.call_later(HEADERS_WITHIN, self._check, self.cycle)


def _configure(token: str, port: int) -> uvicorn.Config:
    """How the application is served: to this machine alone, quietly, and with small messages."""
    return uvicorn.Config(
        _create_app(token, port), host=ADDRESS, port=port, http=_Protocol, ws_max_size=LARGEST_MESSAGE,
        ws_per_message_deflate=False, proxy_headers=False, timeout_graceful_shutdown=1,
        log_level="warning", access_log=False, server_header=False,
    )  # fmt: skip


def serve(listener: socket.socket, token: str, address: str = "") -> None:
    """Serve on a socket that is bound already, until Ctrl-C; open the address in the browser if there is one."""
    share_arenas()
    with _private_link(address) if address else nullcontext() as link:
        if link:
            webbrowser.open(link)
        uvicorn.Server(_configure(token, listener.getsockname()[1])).run(sockets=[listener])
    raise KeyboardInterrupt  # uvicorn repeats the signal, but a process that ignores it would go on


@contextmanager
def _private_link(address: str) -> Iterator[str]:
    """A file that leads to the address and that only its owner can read: a process list shows only the file's name."""
    with tempfile.TemporaryDirectory(prefix="policychord-") as folder:  # 0700
        path, target = Path(folder) / "studio.html", html.escape(address)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(f'<!DOCTYPE html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={target}">')
            file.write(f'<title>Policychord studio</title><a href="{target}">Open the studio</a>\n')
        yield path.as_uri()
