"""`policychord studio` as people start it."""

import json
import signal
import socket
import subprocess

import httpx
import pytest

from tests.cli.command import here, process

__all__ = ["here"]


@pytest.fixture
def started():
    """The command, and the record that it printed."""
    words = process("studio", "--no-browser", "--json")
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as command:
        lines = [command.stdout.readline()]
        while lines[-1] not in ("}\n", ""):
            lines.append(command.stdout.readline())
        yield command, json.loads("".join(lines))
        command.kill()


def test_it_prints_its_address_serves_the_page_and_ends_on_ctrl_c(started):
    command, record = started
    address, port = record["results"]["address"], record["results"]["port"]
    assert address.startswith(f"http://127.0.0.1:{port}/?token=")
    with httpx.Client(follow_redirects=True, timeout=120) as client:
        assert "Policychord" in client.get(address).text
        assert client.get(f"http://127.0.0.1:{port}/rooms").json()[0]["name"] == "gate"
    assert httpx.get(address + "x").status_code == 403
    command.send_signal(signal.SIGINT)
    assert command.wait(60) == 130
    assert "Traceback" not in command.stderr.read()


def test_nobody_else_on_the_network_can_ask(started):
    _, record = started
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
