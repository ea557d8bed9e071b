"""Rules of the project that files can break: pins without addresses, one version, two commands in the README."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import policychord

ROOT = Path(__file__).parent.parent


def test_constraints_hold_pins_and_no_addresses():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert len(lines) > 20
    for line in lines:
        assert re.fullmatch(r'[A-Za-z0-9_.-]+==[A-Za-z0-9_.+!-]+(; python_version (<|>=) "3\.\d+")?', line), line


# JAX 0.10.2 gives wrong results on CPU (jax issue 39103); in 0.11.1 a scan of n steps takes n^2 there (jax issue 40101)
BAD_JAX = ("0.10.2", "0.11.1")


@pytest.mark.parametrize("version", BAD_JAX)
def test_a_jax_that_computes_wrongly_or_slowly_on_cpu_is_excluded(version):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (jax,) = (Requirement(r) for r in project["dependencies"] if re.match(r"jax\W", r))
    assert not jax.specifier.contains(version)
    pins = [line.split(";")[0] for line in (ROOT / "constraints.txt").read_text().splitlines()]
    for pin in (pin for pin in pins if re.match("jax(lib)?==", pin)):
        assert jax.specifier.contains(pin.split("==")[1])
    for found in re.findall(r'"3\.\d+ ([\d.]+)"', (ROOT / ".ci" / "matrix").read_text()):
        assert jax.specifier.contains(found)


def test_every_dependency_is_pinned_and_explained():
    text = (ROOT / "pyproject.toml").read_text()
    project = tomllib.loads(text)["project"]
    pinned = {line.split("==")[0].lower() for line in (ROOT / "constraints.txt").read_text().splitlines()}
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    for requirement in (r for group in groups for r in group):
        name = re.match(r"[A-Za-z0-9_-]+", requirement)[0]
        assert name.lower() in {*pinned, "policychord"}, f"{name} is not pinned"
        assert re.search(rf'"{re.escape(requirement)}",\s+# \w+', text), f"{name} has no reason beside it"


def test_one_version_everywhere():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert policychord.__version__ == version
    assert f"version: {version}" in (ROOT / "CITATION.cff").read_text()


def test_readme_names_the_two_commands_first():
    commands = re.findall(r"^make \w+", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert commands[:2] == ["make reproduce", "make test"]
