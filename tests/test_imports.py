"""Who may import whom. Imports point down only, and the paper is a client of public names."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path, PurePath

import pytest

import policychord

SOURCE = Path(policychord.__file__).parent
PAPER = SOURCE.parent / "policychord_paper"

BELOW = {"_types", "_calls", "core", "actions", "primitives", "models"}
LIBRARY = BELOW | {"agent", "population", "loops", "worlds"}
ESTIMATION = LIBRARY | {"_lazy", "_files", "inference"}

# Package -> the packages of our own it may import from (itself always included).
ALLOWED = {
    "_names": set(),
    "_types": set(),
    "_calls": set(),
    "_files": set(),
    "_lazy": set(),
    "_plugins": set(),
    "wording": set(),
    "drawing": set(),
    "core": {"_types", "_files"},
    "actions": {"_types"},
    "primitives": {"_types", "_calls", "actions"},
    "models": {"_types", "_calls", "actions", "primitives"},
    "agent": BELOW | {"_names"},
    "population": {"_types", "core", "agent"},
    "rivals": BELOW | {"agent"},
    "loops": BELOW | {"agent", "population"},
    "worlds": LIBRARY | {"_lazy", "_names", "drawing", "effect_size"},
    "gym": {"_types", "_calls", "actions", "agent", "loops", "worlds"},
    "pettingzoo": {"_types", "agent", "loops", "gym"},
    "torch": {"_types", "core", "agent"},
    "effect_size": {"_types"},
    "inference": LIBRARY | {"_files", "_lazy", "drawing"},
    "choices": ESTIMATION | {"_names"},
    "tracks": ESTIMATION | {"_names", "drawing"},
    "runs": {"_names", "_types", "_files", "_lazy", "_plugins", "__init__", "wording", "drawing", "core", "loops",
             "worlds", "inference", "choices", "tracks"},
    "__init__": LIBRARY | {"_lazy", "drawing", "choices", "effect_size", "gym", "inference", "pettingzoo", "rivals",
                           "torch", "tracks"},
    "studio": {"_types", "__init__", "wording", "drawing", "core", "loops", "worlds", "choices", "tracks", "runs"},
    "cli": {"_names", "_types", "_plugins", "__init__", "wording", "drawing", "core", "inference", "choices", "worlds",
            "tracks", "runs", "studio"},
    "__main__": {"cli"},
}  # fmt: skip

# Outside packages that only some files may import.
KEPT = {
    "numba": {"core/_compile.py", "core/_kernels.py", "core/_native.py", "core/_sweeps.py", "worlds/flock/cells.py"},
    "llvmlite": {"core/_sweeps.py", "core/_native.py"},
    "diffrax": {"core/flow.py", "core/circuit.py", "core/game.py", "inference/learning/local.py"},
    "optimistix": {"core/circuit.py", "inference/learning/local.py"},
    "gymnasium": {"gym.py", "pettingzoo.py"},
    "pettingzoo": {"pettingzoo.py"},
    "torch": {"torch.py", "models/value.py", "primitives/policy.py"},
    "xarray": {
        "choices/checks.py",
        "inference/export.py",
        "loops/trace.py",
        "runs/fit.py",
        "worlds/*/episodes.py",
        "worlds/quadrotor/flights.py",
        "tracks/reading.py",
    },
    "matplotlib": {
        "choices/figures.py",
        "inference/figures.py",
        "drawing.py",
        "runs/phase_maps.py",
        "runs/policies.py",
        "worlds/*/figures.py",
        "tracks/figures.py",
    },
    "mpltern": {"worlds/*/figures.py"},
    "pandas": {
        "choices/*.py",
        "runs/phase_maps.py",
        "runs/plan.py",
        "runs/sweep.py",
        "tracks/foreign.py",
        "tracks/reading.py",
    },
    "h5py": {"tracks/reading.py"},
    "pooch": {"choices/data.py", "choices/fetch.py"},
    "jinja2": {"runs/page.py"},
    "markdown_it": {"runs/page.py"},
    "fastapi": {"studio/server.py"},
    "starlette": {"studio/security.py", "studio/server.py"},
    "uvicorn": {"studio/server.py"},
    "typer": {"cli/*.py"},
    "rich": {"cli/*.py"},
    "loky": {"runs/engine.py"},
    "distributed": {"runs/engine.py"},
}

FILES = sorted(SOURCE.rglob("*.py"))
STUDIES = ("theory", "flock", "bandit", "quadrotor")


def package_of(path: Path) -> str:
    first = path.relative_to(SOURCE).parts[0]
    return first.removesuffix(".py")


def imports(path: Path):
    """(is ours, dotted name relative to the package or outside package) of every import in a file."""
    package = path.relative_to(SOURCE.parent).with_suffix("").parts[1:-1]
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
    package = package_of(path)
    for ours, name in imports(path):
        if ours:
            target = name.split(".")[0]
            target = target if target in ALLOWED else "__init__"
            assert target == package or target in ALLOWED[package], f"{package} may not import {name}"
        else:
            assert name not in ("policychord", "policychord_paper"), "ours are relative, and the paper is nobody's"
            keepers = KEPT.get(name)
            where = str(path.relative_to(SOURCE))
            assert keepers is None or any(map(PurePath(where).match, keepers)), f"{where} may not import {name}"


def test_no_study_imports_another():
    for path in PAPER.rglob("*.py"):
        own = path.relative_to(PAPER).parts
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level == 2 and len(own) == 2 and own[0] in STUDIES:
                assert (node.module or "").split(".")[0] not in STUDIES, f"{path} imports {node.module}"


@pytest.mark.parametrize("path", sorted(PAPER.rglob("*.py")), ids=lambda p: str(p.relative_to(PAPER)))
def test_the_paper_uses_public_names_only(path):
    """What it imports from the library stands in the `__all__` of where it is imported from."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            assert not any(alias.name.split(".")[0] == "policychord" for alias in node.names), "say which names"
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module.split(".")[0] == "policychord":
            assert not any(part.startswith("_") for part in node.module.split(".")), f"{node.module} is private"
            public = {"__version__", *importlib.import_module(node.module).__all__}
            assert {alias.name for alias in node.names} <= public, f"line {node.lineno}: {node.module}"


@pytest.mark.parametrize(
    "path", [*FILES, *sorted(PAPER.rglob("*.py"))], ids=lambda p: str(p.relative_to(SOURCE.parent))
)
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
        "heavy = {'numba', 'diffrax', 'equinox', 'gymnasium', 'xarray', 'pandas', 'matplotlib', 'typer'}; "
        "heavy &= set(sys.modules); "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_papers_problem_loads_nothing_of_the_general_one():
    code = (
        "import sys, numpy as np, policychord as pc; "
        "given = pc.problem(pi=np.eye(2), action_cost=np.zeros(2), eps=0.1); "
        "weights = pc.solve(given).weights; pc.certify(given, weights), pc.energy(given, weights); "
        "general = ('complexities', 'convex', '_newton', 'regularisers'); "
        "loaded = {f'policychord.core.{name}' for name in general} & set(sys.modules); "
        "assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_public_names_are_there():
    needed = (
        "Composer Grid Sampled Finite Gaussian Table Policy Cost Rollouts GaussianTarget Reference Sum fit enable_x64"
    )
    assert set(needed.split()) <= set(dir(policychord))  # all that an example needs, by one import
    assert len(policychord.__all__) <= 54, (
        "too many to know by heart: leave the new name in its package, as pc.PACKAGE.NAME"
    )
    for name in policychord.__all__:
        assert getattr(policychord, name).__doc__, f"{name} has no docstring"


WITH_NAMES = ("worlds.flock", "worlds.quadrotor", "choices", "tracks")  # no other one imports the first for it


def test_one_import_gives_whole_packages():
    """`pc.worlds.Pendulum` and its like need no second import, and a package's names come with it."""
    code = (
        "import policychord as pc\n"
        "assert pc.worlds.Pendulum and pc.models.riccati and pc.inference.recover and pc.gym.play\n"
        f"for package in {WITH_NAMES}:\n"
        "    found = pc\n"
        "    for part in package.split('.'):\n"
        "        found = getattr(found, part)\n"
        "    assert set(found.__all__) == {name for name in dir(found) if not name.startswith(chr(95))}, package\n"
        "    assert all(not hasattr(getattr(found, name), '__path__') for name in found.__all__)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("package", WITH_NAMES)
def test_no_name_of_a_package_is_hidden_by_a_module_of_the_same_name(package):
    """Whoever imports the module first would find the module under the name."""
    folder = SOURCE.joinpath(*package.split("."))
    names = importlib.import_module(f"policychord.{package}").__all__
    assert not set(names) & {path.stem for path in folder.iterdir()}


def test_a_misspelt_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"policychord.choices.*read_choice"):
        policychord.choices.read_choice  # noqa: B018


def test_every_module_is_imported_where_the_modules_of_unix_are_missing():
    """As on Windows. Packages of others that are not installed here are passed over."""
    code = (
        "import importlib, pkgutil, sys\n"
        "blocked = {'fcntl', 'grp', 'pwd', 'resource', 'termios'}\n"
        "sys.modules |= dict.fromkeys(blocked)\n"
        "import policychord, policychord_paper\n"
        "for package in (policychord, policychord_paper):\n"
        "    for module in pkgutil.walk_packages(package.__path__, f'{package.__name__}.'):\n"
        "        if module.name.endswith('__main__'):\n"
        "            continue\n"
        "        try:\n"
        "            importlib.import_module(module.name)\n"
        "        except ModuleNotFoundError as error:\n"
        "            assert error.name not in blocked, (module.name, error)\n"
        "            print(error.name)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert set(run.stdout.split()) <= {"gymnasium", "pettingzoo", "torch", "mujoco", "numpyro", "stable_baselines3"}
