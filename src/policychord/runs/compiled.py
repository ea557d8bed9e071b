"""Programs that XLA compiled, kept in the user's cache folder, so that a second run (or worker) need not wait."""

import hashlib
import os
import platform
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import jax
from platformdirs import user_cache_path

KEPT_BYTES = 500_000_000


def programs_folder() -> Path:
    """Where compiled programs are kept. They are machine code, so each processor and each JAX has its own folder."""
    kind = hashlib.sha256("\n".join([jax.__version__, platform.machine(), _abilities()]).encode()).hexdigest()[:12]
    return user_cache_path("policychord", appauthor=False) / f"programs-{kind}"


def keep_programs() -> None:
    """Let this process load and keep compiled programs. Processes of ours call it; a library never decides this."""
    folder = programs_folder()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _private(folder):
            return  # somebody else could have put programs there: everything is compiled anew
        _forget_oldest(folder)
    except OSError:
        return  # no writable cache: everything is compiled anew
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)


def _abilities() -> str:
    """What instructions the processor has, as far as the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")


def _private(folder: Path) -> bool:
    """Whether a folder, and the one around it, belong to this user, and nobody else can write there."""
    if not hasattr(os, "getuid"):
        return True  # a system without such owners: the user's own cache folder is all there is to trust
    facts = [path.stat() for path in (folder, folder.parent)]
    return all(fact.st_uid == os.getuid() and not fact.st_mode & 0o022 for fact in facts)


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
