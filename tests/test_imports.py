"""The rooms of the house: who may import whom. Imports point down only."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path, PurePath

import pytest

import policychord

SOURCE = Path(policychord.__file__).parent

LIBRARY = {"_types", "core", "actions", "primitives", "models", "envs", "stats", "agent", "population", "loops"}

# Room -> the rooms of our own it may import from (itself always included).
ALLOWED = {
    "_types": set(),
    "_calls": set(),
    "_files": set(),
    "_lazy": set(),
    "wording": set(),
    "core": {"_types"},
    "actions": {"_types"},
    "primitives": {"_types", "_calls", "actions"},
    "models": {"_types", "_calls", "actions", "primitives"},
    "envs": {"_types", "core"},
    "agent": {"_types", "_calls", "core", "actions", "primitives", "models"},
    "population": {"_types", "core", "agent"},
    "loops": {"_types", "agent", "population", "envs"},
    "gym": {"_types", "_calls", "actions", "agent", "envs", "loops"},
    "pettingzoo": {"_types", "agent", "envs", "loops", "gym"},
    "torch": {"_types", "core", "agent"},
    "stats": {"_types"},
    "fitting": LIBRARY,
    "learning": LIBRARY | {"_files", "fitting"},
    "choices": LIBRARY | {"_lazy", "fitting"},
    "studies": LIBRARY | {"_lazy", "fitting", "choices"},
    "tracks": LIBRARY | {"_calls", "_lazy", "fitting", "studies"},
    "runs": {"_types", "_files", "__init__", "wording", "core", "loops", "fitting", "choices", "studies", "tracks"},
    "__init__": LIBRARY
    | {"_lazy", "choices", "fitting", "gym", "learning", "pettingzoo", "studies", "torch", "tracks"},
    "studio": {"_types", "__init__", "wording", "core", "envs", "loops", "choices", "studies", "tracks", "runs"},
    "cli": {"_types", "__init__", "wording", "core", "fitting", "choices", "studies", "tracks", "runs", "studio"},
    "__main__": {"cli"},
}

# Outside packages that only some files may import.
KEPT = {
    "numba": {"core/_compile.py", "core/_kernels.py", "core/_native.py", "core/_sweeps.py", "envs/cells.py"},
    "llvmlite": {"core/_sweeps.py", "core/_native.py"},
    "diffrax": {"core/flow.py", "core/circuit.py", "learning/local.py"},
    "optimistix": {"core/circuit.py", "learning/local.py"},
    "gymnasium": {"gym.py", "pettingzoo.py"},
    "pettingzoo": {"pettingzoo.py"},
    "torch": {"torch.py", "primitives/trained.py"},
    "xarray": {
        "choices/checks.py",
        "fitting/output.py",
        "loops/trace.py",
        "runs/fit.py",
        "studies/study.py",
        "studies/*/report.py",
        "studies/*/episodes.py",
        "tracks/reading.py",
    },
    "matplotlib": {
        "choices/figures.py",
        "fitting/output.py",
        "studies/*.py",
        "studies/*/figures.py",
        "studies/*/animation.py",
        "tracks/figures.py",
    },
    "mpltern": {"studies/*/figures.py"},
    "pandas": {
        "choices/*.py",
        "studies/bandit/*.py",
        "studies/phase_maps.py",
        "runs/batches.py",
        "runs/sweep.py",
        "tracks/reading.py",
    },
    "h5py": {"tracks/reading.py"},
    "pooch": {"choices/data.py", "choices/fetch.py", "studies/bandit/*.py"},
    "statsmodels": {"stats/glm.py"},
    "jinja2": {"runs/fit.py", "runs/report.py"},
    "markdown_it": {"runs/report.py"},
    "PIL": {"runs/compare.py"},
    "fastapi": {"studio/server.py"},
    "starlette": {"studio/security.py", "studio/server.py"},
    "uvicorn": {"studio/server.py"},
    "typer": {"cli/*.py"},
    "rich": {"cli/*.py"},
    "loky": {"runs/engine.py"},
    "distributed": {"runs/engine.py"},
}

FILES = sorted(SOURCE.rglob("*.py"))


def room_of(path: Path) -> str:
    first = path.relative_to(SOURCE).parts[0]
    return first.removesuffix(".py")


def imports(path: Path):
    """(is ours, dotted name relative to the package or outside package) of every import in a file."""
    package = path.relative_to(SOURCE).with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((False, alias.name.split(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield False, node.module.split(".")[0]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1]
            names = [node.module] if node.module else [alias.name for alias in node.names]
            yield from ((True, ".".join([*base, name])) for name in names)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_down(path):
    room = room_of(path)
    for ours, name in imports(path):
        if ours:
            target = name.split(".")[0]
            target = target if target in ALLOWED else "__init__"
            assert target == room or target in ALLOWED[room], f"{room} may not import {name}"
        else:
            assert name != "policychord", "inside the package imports are relative"
            keepers = KEPT.get(name)
            where = str(path.relative_to(SOURCE))
            assert keepers is None or any(map(PurePath(where).match, keepers)), f"{where} may not import {name}"


def test_no_study_imports_another():
    for path in (SOURCE / "studies").rglob("*.py"):
        parts = path.relative_to(SOURCE).parts
        if len(parts) < 3:
            continue
        for ours, name in imports(path):
            if ours and name.startswith("studies."):
                other = name.split(".")[1]
                assert other == parts[1] or (SOURCE / "studies" / f"{other}.py").exists(), f"{path} imports {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_files_are_data(path):
    """Nothing that is read from disk is executed: no module, function or option that could."""
    outside = {name for ours, name in imports(path) if not ours}
    assert not outside & {"pickle", "cloudpickle", "dill", "marshal", "shelve"}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in ("eval", "exec", "compile", "__import__"), f"{path.name}:{node.lineno}"
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            assert isinstance(node.value, ast.Constant), f"{path.name}:{node.value.lineno}"
            assert node.value.value is False, f"{path.name}:{node.value.lineno}"
        if isinstance(node, ast.Attribute):
            assert node.attr not in ("read_pickle", "to_pickle", "literal_eval"), f"{path.name}:{node.lineno}"


def test_import_loads_nothing_heavy_and_sets_nothing():
    """`import policychord` compiles nothing, draws nothing and leaves JAX's settings alone."""
    code = (
        "import sys, jax; before = jax.config.values.copy(); import policychord; "
        "assert jax.config.values == before, 'settings changed'; "
        "heavy = {'numba', 'diffrax', 'equinox', 'gymnasium', 'xarray', 'matplotlib', 'typer', 'scipy.optimize'}; "
        "heavy &= set(sys.modules); "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_public_names_are_there():
    needed = (
        "Composer Grid Sampled Finite Gaussian Table Policy Cost Rollouts GaussianTarget Reference Sum fit enable_x64"
    )
    assert set(needed.split()) <= set(dir(policychord))  # all that an example needs, by one import
    assert len(policychord.__all__) <= 52, "too many to know by heart: leave the new name in its room, as pc.ROOM.NAME"
    for name in policychord.__all__:
        assert getattr(policychord, name).__doc__, f"{name} has no docstring"


ROOMS_WITH_NAMES = ("studies.flock", "choices", "tracks")  # no other one imports the first for it


def test_one_import_gives_whole_rooms():
    """`pc.envs.Pendulum` and its like need no second import, and a room's names come with it."""
    code = (
        "import policychord as pc\n"
        "assert pc.envs.Pendulum and pc.models.riccati and pc.fitting.recover and pc.gym.play\n"
        f"for room in {ROOMS_WITH_NAMES}:\n"
        "    found = pc\n"
        "    for part in room.split('.'):\n"
        "        found = getattr(found, part)\n"
        "    assert set(found.__all__) == {name for name in dir(found) if not name.startswith(chr(95))}, room\n"
        "    assert all(not hasattr(getattr(found, name), '__path__') for name in found.__all__)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("room", ROOMS_WITH_NAMES)
def test_no_name_of_a_room_is_hidden_by_a_module_of_the_same_name(room):
    """Whoever imports the module first would find the module under the name."""
    folder = SOURCE.joinpath(*room.split("."))
    names = importlib.import_module(f"policychord.{room}").__all__
    assert not set(names) & {path.stem for path in folder.iterdir()}


def test_a_misspelt_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"policychord.choices.*read_choice"):
        policychord.choices.read_choice  # noqa: B018
