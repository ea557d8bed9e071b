"""Which changes of the source do the tests notice? Every mutation of a fixed list, one by one.

python -m benchmarks.mutants --out build/mutants.json [--only PACKAGE] [--minutes N] [--list] [--fresh] [--trust]

For each mutation the tests that must notice it run against a changed copy of the source. A mutation that they do not
notice is a survivor: either a test is missing, or the change means nothing. Results are stored after every mutation,
so a run that was stopped goes on where it was; a mutation is tried again when its file or its tests have changed.
Tests run without any mutation too, to see that they pass; after a whole `make test`, --trust saves that half. The copy
and its compiled code stay in a folder beside the results, so that a run that goes on does not compile again.
"""

import argparse
import hashlib
import importlib
import json
import os
import shutil
import signal
import sys
import time
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, NoReturn

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
LIMIT = 1800  # s for the tests of one mutation; a change that makes them hang was noticed
LIBRARIES = (
    "jax.numpy", "jax.scipy", "equinox", "diffrax", "numba", "beartype", "jaxtyping", "hypothesis", "matplotlib.figure",
    "pandas", "pydantic", "scipy.integrate", "scipy.optimize", "scipy.special", "scipy.stats", "typer", "xarray",
)  # fmt: skip
AIM = 0.9  # share that tests should notice

Tests = tuple[str, ...]  # arguments of pytest
Fate = Literal["noticed", "survived", "tests fail without it", "tests did not run"]


class Mutation(NamedTuple):
    """A change of one place of the package, and the tests that must notice it."""

    file: str  # in src
    old: str
    new: str
    tests: Tests


def load() -> tuple[Mutation, ...]:
    """The list, from mutations.toml."""
    rows = tomllib.loads((ROOT / "benchmarks" / "mutations.toml").read_text(encoding="utf-8"))["mutation"]
    return tuple(Mutation(**row)._replace(tests=tuple(row["tests"])) for row in rows)


def files_of(tests: Tests) -> list[Path]:
    """The files among the arguments of pytest."""
    return [ROOT / argument.partition("::")[0] for argument in tests if ".py" in argument]


def package_of(mutation: Mutation) -> str:
    """The folder, or file, of the package that is changed."""
    return Path(mutation.file).with_suffix("").parts[1]


def changed(mutation: Mutation, source: str) -> str:
    """The source with the mutation. The old text must occur once, or nobody knows what is changed."""
    if (count := source.count(mutation.old)) != 1:
        raise ValueError(f"{mutation.file} has {count} times {mutation.old!r}: give a text that occurs once.")
    return source.replace(mutation.old, mutation.new)


def identity(mutation: Mutation) -> str:
    """Changes whenever the outcome could: with the mutation, its file or its tests."""
    files = [SOURCE / mutation.file, *files_of(mutation.tests)]
    parts = [repr(mutation).encode(), *(path.read_bytes() for path in files)]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def run_tests(tree: Path, tests: Iterable[str]) -> int:
    """Run tests against the package in `tree`: pytest's exit code, or 1 if they hang.

    In a fork of this process, which has loaded the libraries that all tests need, but nothing of the package.
    """
    load_libraries(tree.parent)
    if (child := os.fork()) == 0:
        _run_here(tree, ["-q", "-x", "-n", "0", "-p", "no:cacheprovider", *tests])
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return 1


@cache
def load_libraries(folder: Path) -> None:
    """Load what is slow to load. Caches are our own: the user's stay, and what is compiled serves all mutations."""
    caches = {"XDG_CACHE_HOME": "cache", "JAX_COMPILATION_CACHE_DIR": "programs"}
    os.environ |= {name: str(folder / sub) for name, sub in caches.items()}
    os.environ |= {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}
    sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
    for name in LIBRARIES:
        importlib.import_module(name)
    assert "policychord" not in sys.modules


def _run_here(tree: Path, words: list[str]) -> NoReturn:
    """pytest in this process, which ends with it."""
    os.setsid()
    os.chdir(ROOT)
    log = os.open(tree.parent / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    sys.path[:0] = [str(ROOT), str(tree)]
    os.environ["PYTHONPATH"] = str(tree)
    code = 3  # pytest's own for a mistake of the machine
    try:
        code = int(pytest.main(words))
    finally:
        sys.stdout.flush()
        os._exit(code)


@contextmanager
def applied(mutation: Mutation, tree: Path) -> Iterator[None]:
    """The tree with one mutation, and afterwards as it was."""
    original, copy = SOURCE / mutation.file, tree / mutation.file
    copy.write_text(changed(mutation, original.read_text(encoding="utf-8")), encoding="utf-8")
    try:
        yield
    finally:
        shutil.copy2(original, copy)  # with its time, which numba's cache looks at


def try_out(mutation: Mutation, tree: Path, sound: dict[Tests, bool]) -> Fate:
    """What becomes of one mutation. `sound` remembers which tests pass without any."""
    if mutation.tests not in sound:
        sound[mutation.tests] = run_tests(tree, mutation.tests) == 0
    if not sound[mutation.tests]:
        return "tests fail without it"
    with applied(mutation, tree):
        code = run_tests(tree, mutation.tests)
    return "survived" if code == 0 else "noticed" if code in (1, 2) else "tests did not run"


def run_all(
    chosen: list[Mutation], out: Path, fresh: bool, trust: bool = False, seconds: float = float("inf")
) -> dict[str, dict[str, str]]:
    """Try what has no stored result, store every result at once, and begin none when the time is over."""
    stored = {} if fresh or not out.is_file() else json.loads(out.read_text(encoding="utf-8"))
    results = {key: stored[key] for key in map(identity, chosen) if key in stored}
    tree = fresh_copy(out.with_suffix(".tree"))
    sound = dict.fromkeys((mutation.tests for mutation in chosen), True) if trust else {}
    end = time.monotonic() + seconds
    for number, mutation in enumerate(chosen, 1):
        key = identity(mutation)
        if key not in results:
            if time.monotonic() > end:
                continue
            fate = try_out(mutation, tree, sound)
            results[key] = {**describe(mutation), "fate": fate, "by": reason(tree) if fate != "survived" else ""}
            _write(out, stored | results)
        print(f"[{number}/{len(chosen)}] {results[key]['fate']}: {title(mutation)}", flush=True)
    return results


def fresh_copy(folder: Path) -> Path:
    """The present source in a folder, whose caches of compiled code stay."""
    tree = folder / "src"
    shutil.rmtree(tree, ignore_errors=True)
    # files keep their times, which the caches look at
    shutil.copytree(SOURCE, tree, ignore=shutil.ignore_patterns("__pycache__"))
    return tree


def reason(tree: Path) -> str:
    """What the last tests said first: a failure of the machine must not pass for a test that notices."""
    lines = (tree.parent / "log.txt").read_text(encoding="utf-8", errors="replace").splitlines()
    return next((line for line in lines if line.startswith(("FAILED", "ERROR"))), lines[-1] if lines else "hung")


def describe(mutation: Mutation) -> dict[str, str]:
    """A mutation for people and programs."""
    return {"package": package_of(mutation), "file": mutation.file, "old": mutation.old, "new": mutation.new}


def title(mutation: Mutation) -> str:
    old, new = (" ".join(text.split()) or "(nothing)" for text in (mutation.old, mutation.new))
    return f"{mutation.file}: {old}  ->  {new}"


def _write(out: Path, results: dict[str, dict[str, str]]) -> None:
    part = out.with_suffix(".part")
    part.write_text(json.dumps(results, indent=1), encoding="utf-8")
    part.replace(out)


def main() -> int:
    mutations = load()
    packages = sorted(set(map(package_of, mutations)))
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "mutants.json", help="where results are stored")
    parser.add_argument("--only", choices=packages, help="mutations of one package")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no mutation after so many minutes")
    parser.add_argument("--list", action="store_true", help="print them and do nothing")
    parser.add_argument("--fresh", action="store_true", help="try all again")
    parser.add_argument("--trust", action="store_true", help="all tests have just passed: do not run them unchanged")
    told = parser.parse_args()
    chosen = [mutation for mutation in mutations if told.only in (None, package_of(mutation))]
    if told.list:
        print("\n".join(f"{package_of(mutation):12} {title(mutation)}" for mutation in chosen))
        return 0
    results = run_all(chosen, told.out, told.fresh, told.trust, 60 * told.minutes)
    fates = [result["fate"] for result in results.values()]
    judged = sum(fate in ("noticed", "survived") for fate in fates)
    noticed = fates.count("noticed")
    rest = f"{len(fates) - judged} could not be judged, {len(chosen) - len(fates)} were not tried"
    print(f"\n{noticed} of {judged} mutations were noticed ({rest}).")
    for result in results.values():
        if result["fate"] != "noticed":
            print(f"\n{result['fate']}: {result['file']}\n- {result['old']}\n+ {result['new']}")
    return 0 if judged == len(chosen) and noticed >= AIM * judged else 1


if __name__ == "__main__":
    sys.exit(main())
