"""How kernels are compiled: flags that let loops vectorise, a cache in the user's folder, and a word on the screen.

The first compilation takes some ten seconds. It is kept in the user's cache folder under a name made
from the sources, so that it happens once per version and never goes stale.
"""

import hashlib
import shutil
import sys
import threading
from collections.abc import Callable
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numba
from platformdirs import user_cache_path

# Reassociation and contraction let sums vectorise. NaN and infinity keep their meaning: a NaN cost must be
# seen, not optimised away. Python's division check is off ("numpy"), because it blocks vectorisation.
_FAST = {"reassoc", "contract", "arcp", "nsz"}


def compiled(reassociate: bool = True) -> Callable:
    """Decorate a helper that is compiled into the kernels that call it."""
    flags = _FAST if reassociate else _FAST - {"reassoc"}
    return numba.njit(error_model="numpy", fastmath=flags, forceinline=not reassociate)


def cache_folder() -> Path:
    """Where the compiled kernels of exactly this source are kept."""
    here = Path(__file__).parent
    sources = b"".join(
        (here / name).read_bytes() for name in ("_compile.py", "_kernels.py", "_method.py", "_native.py", "_sweeps.py")
    )
    return user_cache_path("policychord", appauthor=False) / f"kernels-{hashlib.sha256(sources).hexdigest()[:12]}"


def compile_entry(signature, function: Callable) -> Callable:
    """Compile `function` for one signature, or load it from the cache; say so when it takes a while."""
    _forget_old_versions(cache_folder())
    with _cached_in(cache_folder()), _announced():
        return numba.njit(signature, error_model="numpy", fastmath=_FAST, cache=True, nogil=True)(function)


def compile_callback(signature, function: Callable) -> Any:
    """Compile `function` so that C can call it, or load it from the cache."""
    with _cached_in(cache_folder()), _announced():
        return numba.cfunc(signature, error_model="numpy", cache=True)(function)


def _forget_old_versions(current: Path, keep: int = 4) -> None:
    """Every version compiles once; the kernels of long gone ones need not stay for ever."""
    others = [path for path in current.parent.glob("kernels-*") if path != current]
    for path in sorted(others, key=lambda path: path.stat().st_mtime, reverse=True)[keep:]:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _cached_in(folder: Path):
    # numba picks the folder when a function is decorated; other people's functions keep theirs
    before = numba.config.CACHE_DIR  # type: ignore[attr-defined]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        numba.config.CACHE_DIR = str(folder)  # type: ignore[attr-defined]
    except OSError:
        pass  # no writable cache: numba falls back to its own choice
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before  # type: ignore[attr-defined]


@cache
def _announce() -> None:
    print(
        f"policychord: compiling the solver for this processor (about 20 s, once; kept in {cache_folder()})",
        file=sys.stderr,
        flush=True,
    )


@contextmanager
def _announced():
    # loading kernels that are there already may take a second or two on a busy machine, and is not worth a word
    timer = threading.Timer(5.0 if any(cache_folder().rglob("*.nbc")) else 1.0, _announce)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
