"""Only the studio's own page, on this machine, with the token."""

import re
import socket
import time

import httpx
import pytest
from websockets.exceptions import InvalidStatus

from policychord.studio import security, server
from policychord.studio.pages import PAGES

from .serving import TOKEN, served
from .test_session import words


def ask(studio, path="/", method="GET", cookies="own", **more):
    cookies = studio.cookies if cookies == "own" else cookies
    with httpx.Client(base_url=studio.origin, cookies=cookies, timeout=60) as client:
        return client.request(method, path, **more)


def test_the_printed_address_opens_the_page(studio):
    with httpx.Client(base_url=studio.origin) as client:
        first = client.get(f"/?token={TOKEN}")
        assert first.status_code == 200
        kept = first.headers["set-cookie"].lower()
        assert "httponly" in kept
        assert "samesite=strict" in kept
        page = client.get("/")
    assert page.status_code == 200
    assert "Policychord" in page.text
    assert TOKEN not in page.text


@pytest.mark.parametrize(
    "path", ["/", "/?token=wrong", "/?token=", "/pages", "/static/app.js", f"/pages?token={TOKEN}"]
)
def test_without_the_token_there_is_nothing(studio, path):
    for cookies in ({}, {security.cookie_name(studio.port): "wrong"}):
        answer = ask(studio, path, cookies=cookies)
        assert answer.status_code == 403
        assert "policychord studio" in answer.text


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "localhost:1", "[::1]:80"])
def test_another_name_for_this_machine_is_refused(studio, host):
    assert ask(studio, headers={"host": host}).status_code == 403


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:1", "http://127.0.0.1"])
def test_another_page_is_refused(studio, origin):
    assert ask(studio, headers={"origin": origin}).status_code == 403
    with pytest.raises(InvalidStatus) as refused:
        studio.socket("gate", origin=origin)
    assert refused.value.response.status_code == 403


def test_sockets_need_origin_token_and_a_page_that_exists(studio):
    for page, more in (("gate", {"origin": None}), ("gate", {"cookie": "wrong"}), ("cellar", {})):
        with pytest.raises(InvalidStatus) as refused:
            studio.socket(page, **more)
        assert refused.value.response.status_code == 403
    with studio.socket("gate", origin=f"http://localhost:{studio.port}"):
        pass


def test_a_large_upload_is_refused_before_it_is_read(studio):
    with socket.create_connection(("127.0.0.1", studio.port), timeout=60) as line:
        cookie = "; ".join(f"{name}={value}" for name, value in studio.cookies.items())
        line.sendall(
            f"POST /upload HTTP/1.1\r\nHost: 127.0.0.1:{studio.port}\r\nCookie: {cookie}\r\n"
            "Content-Length: 100000000\r\n\r\n".encode()
        )
        assert line.recv(1000).split(b"\r\n")[0].split()[1] == b"413"  # though not a byte of the body was sent


def test_a_body_without_a_length_is_refused(studio):
    assert ask(studio, "/upload", "POST", content=iter([b"x"])).status_code == 411


@pytest.mark.parametrize(
    "path",
    ["/static/../server.py", "/static/%2e%2e%2fserver.py", "/static//etc/passwd", "/static/index.html", "/static/"],
)
def test_only_named_files_are_served(studio, path):
    assert ask(studio, path).status_code == 404


def test_pages_have_addresses_and_other_addresses_say_so(studio):
    for page in PAGES:
        assert ask(studio, f"/{page}").headers["location"] == f"/#{page}"
    for path in ("/cellar", "/<script>", "/flock/7", "/ws/gate"):
        answer = ask(studio, path)
        assert answer.status_code == 404
        assert "/#gate, /#policies, /#flock, /#choices, /#flight" in answer.text
        assert answer.headers["content-type"].startswith("text/plain")


@pytest.fixture
def impatient(monkeypatch):
    """A studio that waits for headers for a moment only."""
    monkeypatch.setattr(server, "HEADERS_WITHIN", 0.2)
    yield from served()


def test_half_a_request_is_not_waited_for(impatient):
    cookie = "; ".join(f"{name}={value}" for name, value in impatient.cookies.items())
    whole = f"GET /pages HTTP/1.1\r\nHost: 127.0.0.1:{impatient.port}\r\nCookie: {cookie}\r\n\r\n".encode()
    for sent in (b"", b"GET / HT", whole[:-2], whole + whole[:-2]):
        with socket.create_connection(("127.0.0.1", impatient.port), timeout=60) as line:
            line.sendall(sent)
            while line.recv(10_000):  # raises if the connection stays open
                pass


def test_sockets_outlive_the_time_for_headers(impatient):
    with impatient.socket("gate") as line:
        words(line)
        time.sleep(1.0)
        line.send('{"set": {"eps": 2.0}}')
        assert words(line)["settings"]["eps"] == 2.0


def test_every_named_file_is_there_and_nothing_is_fetched_from_elsewhere(studio):
    asked = re.findall(r"/static/([\w.]+)", ask(studio).text)
    assert {"app.js", "style.css", "theme.js", "tokens.css"} <= set(asked)
    for page in PAGES:
        asked += [f"{page}.js", *re.findall(r'from "\./([\w.]+)"', ask(studio, f"/static/{page}.js").text)]
    for name in asked:
        answer = ask(studio, f"/static/{name}")
        assert answer.status_code == 200
        assert "https://" not in answer.text
    assert len(ask(studio, "/static/plotly.js").content) > 1_000_000


def test_every_answer_tells_the_browser_what_to_refuse(studio):
    for answer in (ask(studio), ask(studio, cookies={}), ask(studio, "/nowhere")):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
