"""Programs that XLA compiled, kept in the user's cache folder, so that a second run (or worker) need not wait."""

import hashlib
import platform
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
        folder.mkdir(parents=True, exist_ok=True)
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


def _forget_oldest(folder: Path) -> None:
    files = sorted((path for path in folder.iterdir() if path.is_file()), key=lambda path: path.stat().st_mtime)
    excess = sum(path.stat().st_size for path in files) - KEPT_BYTES
    for path in files:
        if excess <= 0:
            return
        excess -= path.stat().st_size
        path.unlink(missing_ok=True)
