"""The peak of memory is in the same unit on every system, and None where nobody says it."""

import sys
from types import SimpleNamespace

import pytest

from policychord.runs.doctor import peak_megabytes


def test_the_peak_of_this_process_is_plausible():
    assert 10.0 < peak_megabytes() < 100_000.0


@pytest.mark.parametrize(("system", "held"), [("linux", 300 * 2**10), ("darwin", 300 * 2**20)])
def test_systems_count_in_other_units(system, held, monkeypatch):
    usage = SimpleNamespace(RUSAGE_SELF=0, getrusage=lambda who: SimpleNamespace(ru_maxrss=held))
    monkeypatch.setitem(sys.modules, "resource", usage)
    monkeypatch.setattr(sys, "platform", system)
    assert peak_megabytes() == 300.0


def test_windows_is_asked_through_psutil(monkeypatch):
    memory = SimpleNamespace(rss=1, peak_wset=300 * 2**20)
    monkeypatch.setitem(sys.modules, "resource", None)
    monkeypatch.setitem(
        sys.modules, "psutil", SimpleNamespace(Process=lambda: SimpleNamespace(memory_info=lambda: memory))
    )
    assert peak_megabytes() == 300.0


@pytest.mark.parametrize(
    "psutil", [None, SimpleNamespace(Process=lambda: SimpleNamespace(memory_info=lambda: object()))]
)
def test_where_nobody_says_it_is_none(psutil, monkeypatch):
    monkeypatch.setitem(sys.modules, "resource", None)
    monkeypatch.setitem(sys.modules, "psutil", psutil)
    assert peak_megabytes() is None
