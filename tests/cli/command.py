"""The command as people start it: a process of its own, or, where that is enough, in this one."""

import subprocess
import sys
from typing import NamedTuple

import pytest

from policychord import cli


class Answer(NamedTuple):
    code: int
    out: str
    err: str


def process(*words, after: str = "pass") -> list[str]:
    """What starts the command, after a statement that changes the process it will run in.

    It hears Ctrl-C also if the tests do not: a job in the background ignores SIGINT, and so do its children.
    """
    listen = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    start = "import runpy; runpy.run_module('policychord', run_name='__main__', alter_sys=True)"
    code = "; ".join([listen, after, start])
    return [sys.executable, "-c", code, *map(str, words)]


def run(*words, after: str = "pass") -> Answer:
    """In a process of its own."""
    done = subprocess.run(process(*words, after=after), capture_output=True, text=True, timeout=600)
    return Answer(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def here(monkeypatch, capsys):
    """In this process, which has loaded everything already."""

    def call(*words) -> Answer:
        monkeypatch.setattr(sys, "argv", ["policychord", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        said = capsys.readouterr()
        return Answer(stop.value.code or 0, said.out, said.err)

    return call
