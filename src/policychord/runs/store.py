"""Reading settings and writing results. A file is either there as a whole or not at all."""

import json
import math
import os
import re
import shutil
import stat
import time
import tomllib
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from .._files import PART, part_beside
from ..wording import in_words

if TYPE_CHECKING:
    from pydantic import BaseModel

Plan = TypeVar("Plan", bound="BaseModel")
LARGEST_TEXT = 10_000_000  # bytes of settings or of a plan
LARGEST_TOML = 1_000_000  # what people write themselves; its parser is slow
DEEPEST_KEY = 20
DEEPEST_LIST = 50  # lists and tables inside each other; Python's own limit is the process's, and others raise it
# Comments and strings of TOML, in which dots mean nothing, and what may stand next to a key.
# a string without an end goes on to that of its line or of the text, so that nothing is looked at twice
_QUOTED = re.compile(
    r"""#[^\n]*|\"{3}(?:\\.|[^\\])*?(?:\"{3}|\Z)|'{3}.*?(?:'{3}|\Z)|"(?:\\[^\n]|[^"\\\n])*"?|'[^'\n]*'?""", re.DOTALL
)
_BETWEEN_KEYS = re.compile(r"[=,\[\]{}\n]")
SECONDS_TO_WRITE = 60  # at most, for one file


class _StoreError(OSError):
    """Results could not be written; the message says where and what to do."""


def prepare(folder: Path) -> Path:
    """Make sure that results can be written, before hours are spent on them."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part_beside(folder / "probe").unlink()
        _clear(folder)
    except OSError as error:
        raise _StoreError(f"cannot write to {folder} ({error.strerror}): choose another folder with --out.") from error
    return folder


def remove_results(folder: Path, names: Iterable[str]) -> None:
    """Remove an earlier run's files and Zarr folders by their names; whatever else is in the folder stays."""
    try:
        for path in (folder / name for name in names):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
    except OSError as error:
        raise _StoreError(
            f"cannot replace {error.filename} ({error.strerror}): close it, or choose another folder with --out."
        ) from error


def note_earlier(folder: Path) -> list[str]:
    """A note if a folder has files already, some of which are about to be replaced; ask before writing."""
    if not any(not path.name.startswith(".") for path in folder.iterdir()):
        return []
    return [f"{folder} had files before: those of the same name were replaced. --out DIR keeps runs apart."]


def check_text(path: Path, largest: int = LARGEST_TEXT) -> None:
    """Refuse settings or a plan that would never end: a folder, a pipe or a device, or too many bytes."""
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is a folder, a pipe or a device: pass a file.")
    if path.exists() and path.stat().st_size > largest:
        raise ValueError(f"{path} has {path.stat().st_size:,} bytes: settings have at most {largest:,}.")


def read_settings(path: Path) -> dict[str, Any]:
    """What a TOML or JSON file says, or a ValueError in a sentence."""
    kind = "JSON" if path.suffix.lower() == ".json" else "TOML"
    check_text(path, LARGEST_TEXT if kind == "JSON" else LARGEST_TOML)
    try:
        text = path.read_text(encoding="utf-8")
        if kind == "TOML":
            _check_depth(text)
        values = json.loads(text) if kind == "JSON" else tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # broken, not text, or nested without end
        raise ValueError(f"{path} is not valid {kind}: {error}.") from None
    if not isinstance(values, dict):
        raise ValueError(f"{path} holds a {type(values).__name__}: write settings as names with values.")
    return values


def read_plan(path: Path, model: type[Plan]) -> Plan:
    """A plan from a TOML or JSON file; what is wrong with it is named."""
    from pydantic import ValidationError

    contents = read_settings(path)
    try:
        return model.model_validate(contents)
    except ValidationError as error:
        raise ValueError(f"{path}: {in_words(error, model, part_of='part of a plan')}") from None


def _check_depth(text: str) -> None:
    """Refuse keys of very many parts (a.b.c), which the parser pays for by their square, and endless nesting."""
    bare = _QUOTED.sub("_", text)
    if max(part.count(".") for part in _BETWEEN_KEYS.split(bare)) > DEEPEST_KEY:
        raise ValueError(f"a key has more than {DEEPEST_KEY} dots; settings are a few names deep")
    steps = ((bracket in "[{") - (bracket in "]}") for bracket in bare)
    if max(accumulate(steps), default=0) > DEEPEST_LIST:
        raise ValueError(f"more than {DEEPEST_LIST} lists or tables stand inside each other")


def plain(value: Any, finite: bool = False) -> Any:
    """A value as JSON has it: records and settings become objects, arrays lists, all else text. With `finite`, numbers
    that JSON has no word for become null.
    """
    if hasattr(value, "_asdict"):
        value = value._asdict()
    elif hasattr(value, "model_dump"):
        value = value.model_dump()
    elif hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): plain(part, finite) for name, part in value.items()}
    if isinstance(value, list | tuple | set):
        return [plain(part, finite) for part in value]
    if finite and isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def write_json(path: Path, value: Any) -> Path:
    return write_text(path, json.dumps(plain(value), indent=2, ensure_ascii=False) + "\n")


def write_text(path: Path, text: str) -> Path:
    return _whole(path, lambda target: target.write_text(text, encoding="utf-8"))


def write_bytes(path: Path, content: bytes) -> Path:
    return _whole(path, lambda target: target.write_bytes(content))


def save_animation(path: Path, animation: Any, fps: float) -> Path:
    """A `matplotlib` animation; GIF through Pillow, anything else through ffmpeg."""
    writer = "pillow" if path.suffix == ".gif" else "ffmpeg"
    # writers go by the ending
    return _whole(path, lambda target: animation.save(target, writer=writer, fps=fps), ending=path.suffix)


def save_figure(stem: Path, figure: Any) -> list[Path]:
    """A figure as SVG, for print, and as PNG, for everything else."""
    from ..drawing import save

    svg = partial(save, figure, format="svg", metadata={"Date": None})  # no date: the same figure, the same file
    png = partial(save, figure, format="png", dpi=200)
    first = _whole(stem.with_suffix(".svg"), svg)
    figure.set_layout_engine("none")  # everything has its place now; to find it again takes a fifth of the time
    return [first, _whole(stem.with_suffix(".png"), png)]


def write_table(path: Path, table: Any) -> Path:
    """A `pandas.DataFrame` as Parquet."""
    return _whole(path, lambda target: table.to_parquet(target, index=False, engine="pyarrow", compression="zstd"))


def write_dataset(path: Path, dataset: Any) -> Path:
    """An `xarray.Dataset` or a tree of them as a Zarr folder, or as a netCDF file if the name ends in .nc."""
    if path.suffix == ".nc":
        return _whole(path, lambda target: dataset.to_netcdf(target, engine="h5netcdf"), ".nc")

    def replace_folder(target: Path) -> None:
        with warnings.catch_warnings():
            # text and a table of contents are not in the third format's text yet; every reader we use knows them
            warnings.filterwarnings("ignore", module="zarr")
            dataset.to_zarr(target, mode="w", zarr_format=3)
        if path.exists():
            shutil.rmtree(path)

    return _whole(path, replace_folder, folder=True)


def _whole(path: Path, write: Callable[[Path], Any], ending: str = "", folder: bool = False) -> Path:
    """Write to a temporary name, make it durable, and only then give it its own."""
    target: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        target = part_beside(path, ending, folder)
        write(target)
        for written in [target] if target.is_file() else [p for p in target.rglob("*") if p.is_file()]:
            # Windows makes only those files durable that are open for writing
            with open(written, "r+b" if os.name == "nt" else "rb") as file:
                os.fsync(file.fileno())
        target.replace(path)
    except OSError as error:
        if target is not None:
            _discard(target)
        raise _StoreError(
            f"could not write {path} ({error.strerror or error}): free some space or choose another folder with --out; "
            "files written before are complete."
        ) from error
    return path


def _clear(folder: Path) -> None:
    """Remove files that killed processes of ours left half written; folders stay, whoever made them.

    Another machine may share the folder, where a process that is not known here is alive: it writes for seconds.
    """
    for left in [*folder.glob(".policychord-*"), *folder.glob("*/.policychord-*")]:  # no deeper: it may be a home
        ours = PART.fullmatch(left.name)
        with suppress(OSError):
            about = left.lstat()
            old = time.time() - about.st_mtime > SECONDS_TO_WRITE
            if ours and old and stat.S_ISREG(about.st_mode) and not is_alive(int(ours[1])):
                left.unlink()


def is_alive(process: int) -> bool:
    """Whether a process of this machine is there; True where nobody says."""
    if os.name == "nt":  # signal 0 would be Ctrl-C there
        try:
            import psutil
        except ImportError:
            return True  # nobody says: what may be in use stays
        return psutil.pid_exists(process)
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's
        pass
    return True


def _discard(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
