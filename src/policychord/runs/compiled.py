"""Programs that XLA compiled, kept in the user's cache folder, so that a second run (or worker) need not wait."""

import hashlib
import os
import platform
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import jax

from .._files import private_folder

KEPT_BYTES = 500_000_000


def programs_folder() -> Path:
    """A private folder for compiled programs. They are machine code: each processor and each JAX has its own."""
    kind = hashlib.sha256("\n".join([jax.__version__, platform.machine(), _abilities()]).encode()).hexdigest()[:12]
    return private_folder(f"programs-{kind}")


def keep_programs() -> None:
    """Let this process load and keep compiled programs. Processes of ours call it; a library never decides this."""
    try:
        folder = programs_folder()
        _forget_oldest(folder)
    except OSError:
        return  # nowhere to write: everything is compiled again
    jax.config.update("jax_compilation_cache_dir", str(folder))
    # small ones too: hundreds of them are compiled in a run, and loading one takes a third of the time
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


def _abilities() -> str:
    """What instructions the processor has, as far as the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")


def _forget_oldest(folder: Path) -> None:
    sizes = sorted((fact.st_mtime, fact.st_size, path) for path, fact in facts_of(folder.iterdir()))
    excess = sum(size for _, size, _ in sizes) - KEPT_BYTES
    for _, size, path in sizes:
        if excess <= 0:
            return
        excess -= size
        path.unlink(missing_ok=True)


def facts_of(paths: Iterable[Path]) -> Iterator[tuple[Path, os.stat_result]]:
    """Size and age of files, without those that another process has just deleted."""
    for path in paths:
        with suppress(OSError):
            if stat.S_ISREG((fact := path.stat()).st_mode):
                yield path, fact
