"""What there is on this machine, and whether it is enough: versions, devices, data, tools, and a solve as a test."""

import os
import platform
import re
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
DISTRIBUTION = "policychord"


class Hardware(NamedTuple):
    """What the program may use, which can be less than what is built in."""

    processor: str
    cores: int
    memory_gib: float  # 0 where the system does not say


def packages() -> dict[str, str]:
    """The packages that Policychord names, as far as they are installed, with their versions."""
    names = {name for names in _named().values() for name in names} | {"jaxlib"}  # JAX computes with the latter
    versions = {name: _version(name) for name in names}
    return {name: version for name, version in sorted(versions.items()) if version}


def hardware() -> Hardware:
    """Processor, cores and memory."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Hardware(_processor(), cores, round(_memory() / 2**30, 1))


def devices() -> list[str]:
    """Where JAX computes, such as `cpu:0`."""
    import jax

    return [f"{d.platform}:{d.id}" + (f" {d.device_kind}" if d.platform != "cpu" else "") for d in jax.devices()]


def _named() -> dict[str, list[str]]:
    """Packages by the extra that asks for them; those that are always needed under an empty name."""
    try:
        lines = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:  # run from a folder, without having been installed
        return {}
    found: dict[str, list[str]] = {}
    for line in lines:
        name, extra = re.match(r"[\w.-]+", line), re.search(r"extra == ['\"]([\w-]+)", line)
        found.setdefault(extra[1] if extra else "", []).append(name[0] if name else line)
    return found


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
