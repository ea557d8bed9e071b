"""`policychord doctor` tells the truth about this machine."""

import json
import os
from importlib import metadata

import jax
import pytest

from policychord.choices.fetch import FILES, VARIABLE
from policychord.runs import doctor
from policychord.runs.doctor import PURPOSE, Check


def found(name, checks):
    return next(check for check in checks if check.name == name)


def test_the_core_works_here(here, tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, os.fspath(tmp_path))  # data that are not where they should be break nothing else
    answer = here("doctor", "--json")
    assert answer.code == 0
    results = json.loads(answer.out)["results"]
    assert results["works"]
    checks = {check["name"]: check for check in results["checks"]}
    assert checks["self-test"]["state"] == checks["float64"]["state"] == "ok"
    assert checks["choice data"]["state"] == "problem"
    assert VARIABLE in checks["choice data"]["found"]
    assert all(check["remedy"] for check in checks.values() if check["state"] != "ok")
    assert results["packages"]["numpy"] == metadata.version("numpy")
    assert results["devices"][0].startswith(jax.devices()[0].platform)


def test_people_get_a_line_each_and_the_next_step(here):
    answer = here("doctor")
    assert answer.code == 0
    for word in ("python", "jax", "compile cache", "ffmpeg", "chromium", "self-test", "Next:"):
        assert word in answer.out


def test_what_is_optional_may_be_missing_and_what_is_needed_may_not():
    fine, optional = Check("python", "ok", "3", needed=True), Check("ffmpeg", "missing", "", "install it")
    assert doctor.works([fine, optional])
    assert not doctor.works([fine, Check("self-test", "problem", "", "", needed=True)])


def test_an_extra_that_is_missing_comes_with_what_it_is_for_and_how_to_get_it(monkeypatch):
    here = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda name: "" if name == "fastapi" else here(name))
    checks = list(doctor._installed())
    line = found("extra: studio", checks)
    assert (line.state, line.found, line.needed) == ("missing", "without fastapi", False)
    assert line.remedy == "pip install 'policychord[studio]'  (for the local page)"
    assert found("extra: gym", checks).state == "ok"
    assert {check.name.removeprefix("extra: ") for check in checks if check.name.startswith("extra")} == set(PURPOSE)


def test_hardware_is_what_may_be_used():
    processor, cores, memory = doctor.hardware()
    assert processor
    assert 1 <= cores <= os.cpu_count()
    assert memory > 0.1


def test_data_are_found_where_they_are(tmp_path, monkeypatch):
    for name in FILES:
        (tmp_path / name).write_text("")
    monkeypatch.setenv(VARIABLE, os.fspath(tmp_path))
    assert doctor._data() == Check("choice data", "ok", os.fspath(tmp_path))


def test_tools_are_found_on_the_path(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", os.fspath(tmp_path))
    assert found("ffmpeg", doctor._tools()).state == "missing"
    (tmp_path / "ffmpeg").write_text("")
    (tmp_path / "ffmpeg").chmod(0o755)
    assert found("ffmpeg", doctor._tools()).found == os.fspath(tmp_path / "ffmpeg")


@pytest.mark.skipif(os.name == "nt" or not hasattr(os, "fork"), reason="cache folders follow XDG on these systems only")
def test_the_compile_cache_is_cold_until_something_is_in_it(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", os.fspath(tmp_path))
    assert doctor._compile_cache().found.startswith("cold")
    folder = doctor._compile_cache().found.rpartition(" ")[2]
    os.makedirs(folder)
    (tmp_path / folder / "kernel.nbc").write_bytes(b"\0" * 2**20)
    assert doctor._compile_cache().found.startswith("warm, 1.0 MiB")
