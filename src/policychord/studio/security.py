"""Who may talk to the studio: this machine's browser, from the studio's own page, with the token that was printed."""

import secrets
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Any

from starlette.datastructures import Headers, QueryParams
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST_BODY = 5_000_000  # bytes of an upload
LARGEST_MESSAGE = 65_536  # bytes of a message on a socket: settings, never data
ADDRESS = "127.0.0.1"  # never anything that another machine can reach

REFUSED_HOST = "This address is not the studio's own."
REFUSED_ORIGIN = "Another page asked. Only the studio's own page may."
REFUSED_TOKEN = "The token is missing or wrong: open the address that `policychord studio` printed."
TOO_LARGE = f"This is too large: the studio takes up to {LARGEST_BODY // 1_000_000} MB."
NO_LENGTH = "Say how long the body is (Content-Length)."


def new_token() -> str:
    return secrets.token_urlsafe(24)


def cookie_name(port: int) -> str:
    """Browsers keep cookies for a host, not for a port: two studios must not share one."""
    return f"policychord-{port}"


def _headers(port: int) -> dict[str, str]:
    """What the browser must refuse. Charts set styles from their script, hence the one exception."""
    sockets = f"ws://{ADDRESS}:{port} ws://localhost:{port}"
    policy = {
        "default-src": "'none'", "script-src": "'self'", "img-src": "'self' data: blob:",
        "style-src": "'self' 'unsafe-inline'",  # plotly writes a style sheet and style attributes as it draws
        "connect-src": f"'self' {sockets}", "base-uri": "'none'", "form-action": "'none'", "frame-ancestors": "'none'",
    }  # fmt: skip
    return {
        "content-security-policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        "cache-control": "no-cache",
    }


def _refusal(scope: Mapping[str, Any], token: str, port: int) -> tuple[int, str] | None:
    """Why a request or socket is refused (status, text), or None. Nothing of a body has been read yet."""
    headers = Headers(scope=scope)  # type: ignore[arg-type]
    if headers.getlist("host") not in ([f"{name}:{port}"] for name in (ADDRESS, "localhost")):
        return 403, REFUSED_HOST  # another name that leads here: a page elsewhere tries to pass as ours
    origin = headers.get("origin")
    if origin not in (f"http://{ADDRESS}:{port}", f"http://localhost:{port}", None):
        return 403, REFUSED_ORIGIN
    if origin is None and scope["type"] == "websocket":
        return 403, REFUSED_ORIGIN  # browsers always say where a socket comes from
    if not _has_token(scope, headers, token, port):
        return 403, REFUSED_TOKEN
    if "transfer-encoding" in headers:
        return 411, NO_LENGTH
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit() and len(length) < 16):
        return 400, NO_LENGTH
    return (413, TOO_LARGE) if int(length) > LARGEST_BODY else None


def _has_token(scope: Mapping[str, Any], headers: Headers, token: str, port: int) -> bool:
    """By its cookie; the first page, and it alone, by its address."""
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(cookie_name(port))
    except CookieError:
        cookie = None
    if cookie is not None and _same(cookie.value, token):
        return True
    asked = QueryParams(scope["query_string"]).get("token", "")
    return scope["type"] == "http" and scope["path"] == "/" and _same(asked, token)


def _same(text: str, token: str) -> bool:
    return secrets.compare_digest(text.encode("utf-8", "replace"), token.encode())


class Guard:
    """Middleware before the application: it refuses requests, and puts the headers on every answer."""

    def __init__(self, app: ASGIApp, token: str, port: int):
        self.app, self.token, self.port = app, token, port
        self.extra = [(name.encode(), value.encode()) for name, value in _headers(port).items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        refused = _refusal(scope, self.token, self.port)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *self.extra]}
            await send(message)

        if refused is None:
            await self.app(scope, receive, send_with_headers)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})  # before it was accepted: the browser sees a 403
        else:
            status, text = refused
            await PlainTextResponse(text, status, {"connection": "close"})(scope, receive, send_with_headers)
