"""The server: the page, its files, and a socket for each room. It computes nothing and opens no path of a client's."""

import asyncio
import socket
from contextlib import suppress
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

import uvicorn
from fastapi import FastAPI, Request, Response, WebSocket
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse

from .rooms import ROOMS
from .security import ADDRESS, LARGEST_MESSAGE, Guard, cookie_name
from .session import Session
from .uploads import Uploads

_PAGE = files(__package__) / "page"
_KINDS = {".css": "text/css", ".js": "text/javascript"}


def _static() -> dict[str, Traversable]:
    """Every file that can be asked for, by name."""
    table = {one.name: one for one in _PAGE.iterdir() if one.name.endswith((".js", ".css"))}
    return {**table, "plotly.js": files("plotly") / "package_data" / "plotly.min.js"}


def _index() -> str:
    """The page, with a template for each room from a file of the room's name."""
    rooms = (f'<template id="{name}">\n{(_PAGE / f"{name}.html").read_text()}</template>' for name in ROOMS)
    return (_PAGE / "index.html").read_text().replace("<!-- rooms -->", "\n".join(rooms))


def create_app(token: str, port: int) -> FastAPI:
    """The application, for whoever knows the token, at this port of this machine."""
    app = FastAPI(title="policychord studio", docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(Guard, token=token, port=port)
    static, index, uploads = _static(), _index(), Uploads()

    @app.get("/")
    def page(request: Request) -> Response:
        if "token" not in request.query_params:
            return HTMLResponse(index)
        # from here on the cookie knows it, and links that are passed on do not hold it
        answer = RedirectResponse("/", 303)
        answer.set_cookie(cookie_name(port), token, httponly=True, samesite="strict")
        return answer

    @app.get("/static/{name}")
    def asset(name: str) -> Response:
        if name not in static:
            return PlainTextResponse("There is no such file.", 404)
        return _file(static[name], name[name.rindex(".") :])

    @app.get("/rooms")
    def rooms() -> list[dict[str, str]]:
        return [{"name": one.name, "title": one.title} for one in ROOMS.values()]

    @app.post("/upload")
    async def upload(request: Request) -> dict[str, str]:
        # the guard has seen how long the body is, and the server takes no more of it than that
        return {"number": uploads.put(request.query_params.get("name", ""), await request.body())}

    @app.websocket("/ws/{name}")
    async def room(ws: WebSocket, name: str) -> None:
        if name not in ROOMS:
            await ws.close(1008)
            return
        await ws.accept()
        await _serve(ws, name, uploads)

    return app


def _file(path: Traversable, suffix: str) -> Response:
    return Response(path.read_bytes(), media_type=f"{_KINDS[suffix]}; charset=utf-8")


async def _serve(ws: WebSocket, name: str, uploads: Uploads) -> None:
    """Carry words and frames until the page goes away, then let the simulation go."""
    loop, fresh = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        with suppress(RuntimeError):  # the server may have ended before this thread
            loop.call_soon_threadsafe(fresh.set)

    session = Session(ROOMS[name], wake, uploads)
    speaking = asyncio.create_task(_speak(ws, session, fresh))
    session.start()
    try:
        while (message := await ws.receive())["type"] != "websocket.disconnect":
            session.tell(message.get("text") or "")
    finally:
        session.close()
        speaking.cancel()
        await asyncio.gather(speaking, return_exceptions=True)


async def _speak(ws: WebSocket, session: Session, fresh: asyncio.Event) -> None:
    while True:
        await fresh.wait()
        fresh.clear()
        for part in session.take():
            await (ws.send_bytes(part) if isinstance(part, bytes) else ws.send_text(part))


def configured(token: str, port: int) -> uvicorn.Config:
    """How the application is served: to this machine alone, quietly, and with small messages."""
    options: dict[str, Any] = {"log_level": "warning", "access_log": False, "server_header": False}
    return uvicorn.Config(
        create_app(token, port), host=ADDRESS, port=port, ws_max_size=LARGEST_MESSAGE, ws_per_message_deflate=False,
        proxy_headers=False, timeout_graceful_shutdown=1, **options,
    )  # fmt: skip


def serve(ear: socket.socket, token: str) -> None:
    """Serve on a socket that is bound already, until Ctrl-C."""
    uvicorn.Server(configured(token, ear.getsockname()[1])).run(sockets=[ear])
