"""What this machine has, and whether it is enough: versions, devices, data, tools, and a solve as a test."""

import os
import platform
import re
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Literal, NamedTuple

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
DISTRIBUTION = "policychord"
PURPOSE = {
    "studies": "for the paper's studies, figures and sweeps",
    "gym": "for Gymnasium",
    "torch": "for PyTorch tensors",
    "bench": "only for comparing speed with other solvers",
    "sb3": "for policies trained with Stable-Baselines3",
    "pettingzoo": "for environments with several agents",
    "mujoco": "for MuJoCo's robots",
    "numpyro": "for full posteriors of a fit",
    "studio": "for the local page",
    "cluster": "for sweeps on a Dask cluster",
    "docs": "only for building the documentation",
    "dev": "only for working on policychord itself",
}
OLDEST_PYTHON = (3, 11)
PROOF = 1e-10  # the gap within which a solve counts as right


class _Hardware(NamedTuple):
    """What the program may use, which can be less than what is built in."""

    processor: str
    cores: int
    memory_gib: float  # 0 where the system does not say


State = Literal["ok", "missing", "problem"]


class Check(NamedTuple):
    """One line of the examination."""

    name: str
    state: State
    found: str
    remedy: str = ""
    needed: bool = False  # without it nothing works


def packages() -> dict[str, str]:
    """The packages that Policychord names, as far as they are installed, with their versions."""
    names = {name for names in _named().values() for name in names} | {"jaxlib"}  # JAX computes with the latter
    versions = {name: _version(name) for name in names}
    return {name: version for name, version in sorted(versions.items()) if version}


def hardware() -> _Hardware:
    """Processor, cores and memory."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return _Hardware(_processor(), cores, round(_memory() / 2**30, 1))


def peak_megabytes() -> float | None:
    """The most memory that this process has held so far, in units of 2^20 bytes; None where nobody says."""
    try:
        import resource
    except ImportError:  # on Windows
        with suppress(ImportError, AttributeError):  # Windows alone has a peak
            import psutil

            return psutil.Process().memory_info().peak_wset / 2**20
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10  # bytes on macOS, elsewhere units of 2^10


def devices() -> list[str]:
    """Where JAX computes, such as `cpu:0`."""
    import jax

    return [f"{d.platform}:{d.id}" + (f" {d.device_kind}" if d.platform != "cpu" else "") for d in jax.devices()]


def examine_machine() -> list[Check]:
    """All checks, one line each; the solve comes last, because it may have to compile."""
    return [*_installed(), *_machine(), _data(), *_tools(), _self_test()]


def works(checks: list[Check]) -> bool:
    """Whether what is always needed is there and does its work."""
    return all(check.state == "ok" for check in checks if check.needed)


def _check(name: str, right: object, found: str, remedy: str, needed: bool = False, other: State = "problem") -> Check:
    return Check(name, "ok", found, needed=needed) if right else Check(name, other, found, remedy, needed)


def _installed() -> Iterator[Check]:
    recent = sys.version_info >= OLDEST_PYTHON
    yield _check("python", recent, platform.python_version(), "install Python 3.11 or newer", needed=True)
    yield Check(DISTRIBUTION, "ok", _version(DISTRIBUTION) or "run from a folder, not installed", needed=True)
    for extra, names in _named().items():
        lacking = [name for name in names if not _version(name)]
        source = f"'{DISTRIBUTION}[{extra}]'" if extra else DISTRIBUTION
        remedy = f"pip install {source}  ({PURPOSE.get(extra, 'needed')})"
        shown = names if extra else ("jax", "jaxlib", "numpy", "numba")
        words = f"without {', '.join(lacking)}" if lacking else ", ".join(f"{name} {_version(name)}" for name in shown)
        yield _check(f"extra: {extra}" if extra else "packages", not lacking, words, remedy, not extra, "missing")


def _machine() -> Iterator[Check]:
    processor, cores, memory = hardware()
    counted = f"{cores} core" + "s" * (cores != 1)
    yield Check("hardware", "ok", f"{processor}, {counted}, {memory:g} GiB of memory")
    try:
        import jax
    except ImportError as error:
        yield Check("devices", "problem", str(error), f"pip install {DISTRIBUTION}", True)
        return
    yield Check("devices", "ok", f"JAX {jax.__version__} on {', '.join(devices())}", needed=True)
    exact = bool(jax.config.read("jax_enable_x64"))
    remedy = 'set JAX_ENABLE_X64=1, or jax.config.update("jax_enable_x64", True)'
    yield _check("float64", exact, "on" if exact else "off in JAX", remedy, needed=True)


def _data() -> Check:
    from ..choices.fetch import find_data

    fetched = "policychord choices data fetch; without them choices are simulated, and labelled so"
    try:
        folder = find_data()
    except ValueError as error:
        return Check("choice data", "problem", str(error), fetched)
    words = str(folder or "the public data of Gershman (2018) are not here")
    return _check("choice data", folder, words, fetched, other="missing")


def _tools() -> Iterator[Check]:
    yield _compile_cache()
    for name, names, use in (
        ("ffmpeg", ("ffmpeg",), "only for films as MP4; GIFs need nothing"),
        ("chromium", BROWSERS, "only for the report as a PDF; any browser opens and prints it"),
    ):
        path = find_program(names)
        yield _check(name, path, path or "not found", f"install it ({use})", other="missing")


def find_program(names: Iterable[str]) -> str | None:
    """The first of these programs that is on the PATH."""
    return next(filter(None, map(shutil.which, names)), None)


def _compile_cache() -> Check:
    try:
        from ..core._compile import cache_folder
        from .compiled import facts_of
    except ImportError as error:
        return Check("compile cache", "problem", str(error), f"pip install {DISTRIBUTION}", True)
    folder = cache_folder()
    kernels = sum(fact.st_size for _, fact in facts_of(folder.rglob("*.nbc")))
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    if not os.access(nearest, os.W_OK):
        remedy = "make it writable, or every run compiles again (about 20 s)"
        return Check("compile cache", "problem", f"{nearest} cannot be written", remedy)
    cold = f"cold: the first solve compiles (about 20 s, once) into {folder}"
    return Check("compile cache", "ok", f"warm, {kernels / 2**20:.1f} MiB in {folder}" if kernels else cold)


def _self_test() -> Check:
    """Three policies over four actions: solve, and check the answer with a newly computed certificate."""
    try:
        import numpy as np

        from ..core.equilibrium import solve
        from ..core.objective import certify, problem

        pi = np.full((4, 3), 0.1)
        pi[[0, 1, 3], [0, 1, 2]] = 0.7
        task = problem(pi=pi, action_cost=np.array([1.0, 0.2, 0.5, 0.8]), eps=0.1)
        times = []
        for _ in range(2):
            begun = time.perf_counter()
            weights = np.asarray(solve(task).weights)
            times.append(time.perf_counter() - begun)
        gap = float(certify(task, weights).gap)
    except Exception as error:  # whatever is broken here, the other lines are worth reading
        words = f"solving failed: {type(error).__name__}: {error}"
        return Check("self-test", "problem", words, "policychord --debug doctor shows where", True)
    took = f"{times[0]:.2g} s; again {1e3 * times[1]:.2g} ms"
    words = f"a problem solved, proved within {gap:.0e} of the minimum ({took})"
    return _check("self-test", gap <= PROOF, words, f"at most {PROOF:g} is right", needed=True)


def _named() -> dict[str, list[str]]:
    """Packages by the extra that asks for them; those that are always needed under an empty name."""
    try:
        lines = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:  # run from a folder, without having been installed
        return {}
    packages_of: dict[str, list[str]] = {}
    for line in lines:
        name, extra = re.match(r"[\w.-]+", line), re.search(r"extra == ['\"]([\w-]+)", line)
        packages_of.setdefault(extra[1] if extra else "", []).append(name[0] if name else line)
    order = ["", *PURPOSE]
    return dict(sorted(packages_of.items(), key=lambda item: order.index(item[0]) if item[0] in order else len(order)))


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _processor() -> str:
    try:
        names = re.findall(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()


def _memory() -> float:
    try:
        built_in = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return 0.0
    try:  # a container may grant less
        return min(built_in, float(Path("/sys/fs/cgroup/memory.max").read_text()))
    except (OSError, ValueError):
        return built_in
