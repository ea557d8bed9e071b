"""Evidence on disk: what a step found is kept under a name made from everything that it depends on."""

import hashlib
import pickle
import re
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .store import write_bytes

FOLDER = ".work"
PACKAGES = ("jax", "jaxlib", "numba", "numpy", "scipy", "statsmodels", "matplotlib")


class MissingError(LookupError):
    """Nothing is kept under this name, or it cannot be read."""


def place(out: Path, study: str, step: str, settings: Any) -> Path:
    """Where the result of a step is kept; another seed, setting, data file or version of the code is another place."""
    parts = [code_version(), study, step, settings.model_dump_json(), *_contents(settings)]
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    words = re.sub(r"[^a-zA-Z0-9.]+", "-", step).strip("-")
    return out / FOLDER / study / f"{words}-{digest}.pickle"


def keep(path: Path, value: Any) -> None:
    write_bytes(path, pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL))


def load(path: Path) -> Any:
    """What was kept. These are our own files of the same version of the code; never load another person's."""
    try:
        return pickle.loads(path.read_bytes())
    except Exception as error:  # a file that is cut short or foreign can fail in any way: the step is done again
        raise MissingError(str(path)) from error


def forget_others(out: Path, study: str, wanted: set[Path]) -> None:
    """Drop what this run did not use: results of other settings or of older code."""
    for path in (out / FOLDER / study).glob("*.pickle"):
        if path not in wanted:
            path.unlink(missing_ok=True)


@cache
def code_version() -> str:
    """Changes whenever a source file of the package changes, or a package that computes."""
    source = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(source.rglob("*.py")):
        digest.update(str(path.relative_to(source)).encode() + path.read_bytes())
    for name in PACKAGES:
        digest.update(f"{name}=={version(name)}".encode())
    return digest.hexdigest()


def _contents(settings: Any) -> list[str]:
    """Digests of the files that settings point to."""
    found = []
    for value in dict(settings).values():
        if isinstance(value, Path):
            files = sorted(value.iterdir()) if value.is_dir() else [value]
            found += [hashlib.sha256(path.read_bytes()).hexdigest() for path in files if path.is_file()]
    return found
