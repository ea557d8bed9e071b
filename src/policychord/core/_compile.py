"""How kernels are compiled: flags that let loops vectorise, a private cache on disk, and a message when it takes time.

The first compilation takes some ten seconds, and small problems are solved in Python until it is needed. Its result is
cached under a name made from the sources, so that it happens once per version and never goes stale. Threads and
processes that need the same kernel wait for each other.
"""

import hashlib
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, wraps
from pathlib import Path
from types import CellType, FunctionType, ModuleType, SimpleNamespace
from typing import Any

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, InTreeCacheLocator
from numba.core.ccallback import CFunc
from numba.core.dispatcher import Dispatcher
from numba.core.sigutils import normalize_signature
from platformdirs import user_cache_path

from .._files import private_folder

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

# Reassociation and contraction let sums vectorise. NaN and infinity keep their meaning: a NaN cost must be
# seen, not optimised away. Python's division check is off ("numpy"), because it blocks vectorisation.
_FAST = {"reassoc", "contract", "arcp", "nsz"}

_LOCK = threading.RLock()


def once(make: Callable) -> Callable:
    """Decorate a function whose result is made once for each argument, by one thread while the others wait."""
    made: dict[tuple, Any] = {}

    @wraps(make)
    def get(*arguments: Any) -> Any:
        if arguments not in made:
            with _LOCK:
                if arguments not in made:
                    made[arguments] = make(*arguments)
        return made[arguments]

    get.cache_clear = made.clear  # type: ignore[attr-defined]
    return get


def compiled(reassociate: bool = True, signed_zeros: bool = False) -> Callable:
    """Decorate a helper that is compiled into the kernels that call it.

    Where the sign of zero counts, `total + (x if c else 0)` stays a sum of selected numbers, which vectorises, and is
    not made into a jump.
    """
    flags = _FAST - ({"nsz"} if signed_zeros else set()) - (set() if reassociate else {"reassoc"})
    # Wrappers for Python and C would take a fifth of the compilation. Without them a call from Python crashes the
    # process, so a helper is called from compiled code only; tests put it into a kernel of their own.
    no_wrappers: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return numba.njit(error_model="numpy", fastmath=flags, forceinline=not reassociate, **no_wrappers)


def cache_folder() -> Path:
    """Where the compiled kernels of exactly this source belong."""
    return user_cache_path("policychord", appauthor=False) / _version()


def is_kept(function: Callable) -> bool:
    """Whether an entry has been compiled on this machine."""
    return any(cache_folder().glob(f"*.{function.__name__}-*.nbi"))


def interpreted(function: Callable, **intrinsics: Callable) -> Callable:
    """An entry and all helpers that it calls, in the Python that they are written in; intrinsics by their names."""
    made: dict[int, dict[str, Any]] = {}

    def names_in(module: dict[str, Any]) -> dict[str, Any]:
        if id(module) not in made:
            names = made[id(module)] = dict(module)
            names.update({name: plain(value) for name, value in module.items()})
            names.update({name: value for name, value in intrinsics.items() if name in names})
        return made[id(module)]

    def plain(value: Any) -> Any:
        if isinstance(value, ModuleType) and value.__name__.startswith(f"{__package__}."):
            return SimpleNamespace(**names_in(vars(value)))
        if not isinstance(value, Dispatcher):
            return value
        code = value.py_func
        cells = tuple(CellType(plain(cell.cell_contents)) for cell in code.__closure__ or ())
        return FunctionType(code.__code__, names_in(code.__globals__), code.__name__, closure=cells)

    return FunctionType(function.__code__, names_in(function.__globals__), function.__name__)


def compile_entry(signature: Any, function: Callable) -> Callable:
    """Compile `function` for one signature, or load it from the cache."""
    with _alone():
        kernel: Any = numba.njit(error_model="numpy", fastmath=_FAST, nogil=True)(function)
        kernel._cache = _Cache(function)
        kernel.compile(signature)
        kernel.disable_compile()
        return kernel


def compile_callback(signature: Any, function: Callable) -> Any:
    """Compile `function` so that C can call it, or load it from the cache."""
    with _alone():
        callback: Any = CFunc(function, normalize_signature(signature), {}, {"error_model": "numpy"})
        callback._cache = _Cache(function)
        callback.compile()
        return callback


@cache
def _version() -> str:
    here = Path(__file__).parent
    sources = b"".join(
        (here / f"_{name}.py").read_bytes() for name in ("compile", "kernels", "method", "native", "sweeps")
    )
    return f"kernels-{hashlib.sha256(sources).hexdigest()[:12]}"


@contextmanager
def _alone() -> Iterator[None]:
    """Hold the lock of this process, and a lock file against other processes, which then find the work done."""
    with _LOCK, ExitStack() as held:
        folder = private_folder(_version())
        _forget_old_versions(folder)
        with suppress(OSError):  # where files cannot be locked, both compile and the later result stays
            file = held.enter_context(open(folder / "lock", "wb"))
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)  # given back when the file is closed, also by a process that dies
        yield


def _forget_old_versions(current: Path, keep: int = 4) -> None:
    """Every version compiles once; the kernels of long gone ones need not stay for ever."""
    dated = []
    for path in current.parent.glob("kernels-*"):
        with suppress(OSError):  # another process may have removed it
            dated.append((path.stat().st_mtime, path))
    for _, path in sorted((other for other in dated if other[1] != current), reverse=True)[keep:]:
        shutil.rmtree(path, ignore_errors=True)


class _Locator(InTreeCacheLocator):
    """Tell numba where the cache is, without its process-wide setting."""

    def get_cache_path(self) -> str:
        return str(private_folder(_version()))

    def ensure_cache_path(self) -> None:
        private_folder(_version())


class _Files(CompileResultCacheImpl):
    _locator_classes = [_Locator]  # noqa: RUF012


class _Cache(FunctionCache):
    """numba's cache of one function, which rebuilds: a file that cannot be read is removed and made again."""

    _impl_class = _Files

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        overload = None
        try:
            overload = super().load_overload(sig, target_context)
        except Exception as error:  # a damaged file may raise anything
            _say(f"a compiled kernel in {self.cache_path} is damaged ({type(error).__name__}); it is compiled again")
            for path in Path(self.cache_path).glob(f"{self._impl.filename_base}*"):
                path.unlink(missing_ok=True)
        if overload is None:
            _announce(self.cache_path)
        return overload

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(OSError):  # a full disk, or a folder that somebody removed: the kernel works without
            super().save_overload(sig, data)


@cache
def _announce(folder: str) -> None:
    _say(f"compiling the solver for this processor (about 10 s, once; kept in {folder})")


def _say(sentence: str) -> None:
    print(f"policychord: {sentence}", file=sys.stderr, flush=True)
