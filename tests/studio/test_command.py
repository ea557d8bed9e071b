"""`policychord studio` as people start it."""

import json
import os
import re
import signal
import socket
import subprocess

import httpx
import pytest

from tests.cli.command import here, process

from .serving import wait_until

__all__ = ["here"]


def start(*options, after="pass", env=None):
    """The command, and the record that it printed."""
    words = process("studio", "--json", *options, after=after)
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as command:
        lines = [command.stdout.readline()]
        while lines[-1] not in ("}\n", ""):
            lines.append(command.stdout.readline())
        yield command, json.loads("".join(lines))
        command.kill()


# as a shell starts background jobs
IGNORE = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"


@pytest.fixture(params=["pass", IGNORE], ids=["in front", "in the background"])
def started(request):
    yield from start("--no-browser", after=request.param)


def test_it_prints_its_address_serves_the_page_and_ends_on_ctrl_c(started):
    command, record = started
    address, port = record["results"]["address"], record["results"]["port"]
    assert address.startswith(f"http://127.0.0.1:{port}/?token=")
    with httpx.Client(follow_redirects=True, timeout=120) as client:
        assert "Policychord" in client.get(address).text
        assert client.get(f"http://127.0.0.1:{port}/pages").json()[0]["name"] == "gate"
    assert httpx.get(address + "x").status_code == 403
    command.send_signal(signal.SIGINT)
    assert command.wait(60) == 130
    assert "Traceback" not in command.stderr.read()


def test_the_browser_is_opened_through_a_private_file(tmp_path):
    """A process list shows the browser's arguments: the token is not among them, and no one else can read the file."""
    browser, seen = tmp_path / "browser", tmp_path / "seen"
    browser.write_text(
        f'#!/bin/sh\nfile="${{1#file://}}"\n'
        f'{{ echo "$1"; stat -c %a "$file" "$(dirname "$file")"; cat "$file"; }} > {seen}.part\n'
        f"mv {seen}.part {seen}\n"
    )
    browser.chmod(0o755)
    for command, record in start(env={**os.environ, "BROWSER": f"{browser} %s"}):
        address = record["results"]["address"]
        wait_until(seen.exists)
        link, *modes, page = seen.read_text().splitlines()
        assert re.fullmatch(r"file://\S+\.html", link)
        assert modes == ["600", "700"]
        assert address in page
        command.send_signal(signal.SIGINT)
        assert command.wait(60) == 130
        assert not os.path.exists(link.removeprefix("file://"))


@pytest.fixture
def running():
    yield from start("--no-browser")


def test_no_other_machine_can_ask(running):
    _, record = running
    with socket.socket() as other:
        other.settimeout(5)
        with pytest.raises(OSError):  # noqa: PT011  (which one depends on the system)
            other.connect(("127.0.0.2", record["results"]["port"]))


def test_a_port_that_is_taken_or_impossible(here):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        answer = here("studio", "--no-browser", "--port", port)
    assert answer.code == 2
    assert f"--port {port}" in answer.err
    answer = here("studio", "--no-browser", "--port", 70000)
    assert answer.code == 2
    assert "65535" in answer.err
