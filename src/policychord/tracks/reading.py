"""From a file to tracks: long tables, idtracker.ai's HDF5 and CSV, numeric .npy arrays, and `movement` datasets.

Nothing in a file is executed: arrays of Python objects are refused, and links out of an HDF5 file are not followed.
"""

import io
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float

MOST_PLACES = 20_000_000  # frames times individuals of one trial: 320 MB of positions
LARGEST_TABLE = 200_000_000  # bytes; in memory it takes up to eight times as much
MOST_TRIALS = 20_000  # of a file
MOST_COLUMNS = 20_000  # of a table
LEAST_FRAMES = 3  # of a trial
LONGEST_QUOTE = 60  # characters of a file that a message repeats
FARTHEST = 1e8  # a coordinate in the unit that is asked for; those who are not there are put at 1e9
RATES = (1e-6, 1e6)  # frames a second
SCALES = (1e-12, 1e12)
MOST_PARTS = 10_000  # groups and datasets of an HDF5 file
MOST_TEXTS = 10_000  # entries of a dataset of text, or of an attribute
LARGEST_ARRAY = 16 * MOST_PLACES  # bytes of a dataset in memory
LARGEST_ATTRIBUTE = 1_000_000  # bytes
UNPACKED, MOST_PACKED = 1_000_000, 200  # a larger dataset takes at most so many times its place in the file
OF_NETCDF = (b"DIMENSION_LIST", b"REFERENCE_LIST")  # attributes that refer to the axes of a variable, inside the file
OF_MOVEMENT = ("position", "time", "space", "individual", "individuals", "keypoint", "keypoints")
MARKUP = frozenset("$\\<>&|`*[]")  # what figures, pages or tables would obey
MISSING = ("", "na", "n/a", "nan", "none", "null", ".")
EXPORT = "idtrackerai_format SESSION --formats h5 csv"
# Where idtracker.ai puts what it exports, from its session or from a folder in it.
IN_SESSIONS = (
    "trajectories.csv", "trajectories.h5", "trajectories_csv/trajectories.csv", "trajectories/trajectories.h5",
    "trajectories/trajectories_csv/trajectories.csv",
)  # fmt: skip

# What other labs call the columns of a long table, without case and punctuation; the first that is there is taken.
ALIASES: Mapping[str, tuple[str, ...]] = {
    "trial": ("trial", "video", "session", "recording", "drive", "replicate"),
    "frame": ("frame", "frameid", "framenumber", "frameindex", "frameidx", "t"),
    "time": ("time", "times", "seconds", "timestamp"),
    "id": ("id", "individual", "individuals", "track", "trackid", "animal", "animalid", "identity", "agent",
           "pedestrian", "fish", "bird", "particle"),
    "x": ("x", "posx", "xpos", "positionx", "xcm", "xpx", "xm", "centroidx"),
    "y": ("y", "posy", "ypos", "positiony", "ycm", "ypx", "ym", "centroidy"),
}  # fmt: skip


class TrackError(ValueError):
    """A file of tracks cannot be used; the message names the file, what is wrong, and the remedy."""


class _Source(NamedTuple):
    """A file on disk, or the content of one: what a reader opens, and what messages call it."""

    name: str
    held: Path | bytes

    @property
    def suffix(self) -> str:
        return Path(self.name).suffix

    def opened(self) -> Any:
        """What libraries take: a path, or something to read from."""
        return self.held if isinstance(self.held, Path) else io.BytesIO(self.held)

    def content(self, most: int) -> bytes:
        """All of it, if it has no more bytes than `most`."""
        size = self.held.stat().st_size if isinstance(self.held, Path) else len(self.held)
        if size > most:
            raise TrackError(f"{_shown(self)} has {size:,} bytes: a table may have {most:,}. Split it into files of "
                             "some trials each, or save positions as .npy.")  # fmt: skip
        return self.held.read_bytes() if isinstance(self.held, Path) else self.held


class Trial(NamedTuple):
    """One recording: positions of all individuals in all frames, NaN where one is not there."""

    name: str
    ids: tuple[str, ...]
    position: Float[np.ndarray, "frame id 2"]


class Tracks(NamedTuple):
    """What a file holds."""

    source: str
    trials: tuple[Trial, ...]
    rate: float  # frames a second
    unit: str  # of lengths
    notes: tuple[str, ...]  # what was assumed or guessed


def read_tracks(
    path: Path | str | Sequence[Path | str],
    *,
    rate: float | None = None,
    scale: float = 1.0,
    unit: str = "",
    columns: Mapping[str, str] | None = None,
) -> Tracks:
    """Tracks from a file, or a `TrackError`. `rate` (Hz) wins over what the file says; one unit of the file's lengths
    is `scale` times `unit`. `columns` says what a long table calls `trial`, `frame` or `time`, `id`, `x`, `y`.

    Of several files each is one trial or more; they need the same rate and unit.
    """
    paths = [Path(path)] if isinstance(path, str | Path) else [Path(one) for one in path]
    if not paths:
        raise TrackError("no file of tracks is named: pass one or more.")
    options: dict[str, Any] = {"rate": rate, "scale": scale, "unit": unit, "columns": columns}
    read = [_parse(_source(one), **options) for one in paths]
    return read[0] if len(read) == 1 else _together(paths, read)


def parse_tracks(
    content: bytes,
    name: str,
    *,
    rate: float | None = None,
    scale: float = 1.0,
    unit: str = "",
    columns: Mapping[str, str] | None = None,
) -> Tracks:
    """Tracks from the content of a file with this name, as `read_tracks` reads it from a disk."""
    return _parse(_Source(name, content), rate=rate, scale=scale, unit=unit, columns=columns)


def _source(path: Path) -> _Source:
    """A file, or the file that is meant by a folder of idtracker.ai."""
    if not path.exists():
        raise TrackError(f"{_shown(path)} does not exist: check the path.")
    if path.is_dir():
        inside = next((path / name for name in IN_SESSIONS if (path / name).is_file()), None)
        if inside is None:
            raise TrackError(f"{_shown(path)} is a folder without trajectories.h5 or trajectories.csv: pass a file, or "
                             f"a session of idtracker.ai after  {EXPORT}")  # fmt: skip
        path = inside
    if not path.is_file():
        raise TrackError(f"{_shown(path)} is a pipe or a device: pass a file.")
    return _Source(str(path), path)


def _together(paths: list[Path], read: list[Tracks]) -> Tracks:
    """Several files as one: a trial is called after its file, by as much of the path as tells them apart."""
    first = read[0]
    for path, one in zip(paths, read, strict=True):
        if abs(one.rate / first.rate - 1) > 1e-3 or one.unit != first.unit:
            raise TrackError(f"{_shown(path)} has {one.rate:g} frames a second and lengths in {one.unit}, but "
                             f"{first.source} has {first.rate:g} and {first.unit}: fit them apart, or pass --rate and "
                             "--unit if they are the same.")  # fmt: skip
    whole = [path.resolve().with_suffix("") for path in paths]
    shared = Path(os.path.commonpath(whole))
    names = [_tidied(str(path.relative_to(shared)) if path != shared else path.name) for path in whole]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise TrackError(f"{twice} is named twice: pass every file once.")
    trials = [
        trial._replace(name=name if len(one.trials) == 1 else f"{name}/{trial.name}")
        for name, one in zip(names, read, strict=True) for trial in one.trials
    ]  # fmt: skip
    alike = len({one.notes for one in read}) == 1
    notes = [note if alike else f"{name}: {note}" for name, one in zip(names, read, strict=True) for note in one.notes]
    return Tracks(f"{len(paths)} files", tuple(trials), first.rate, first.unit, tuple(dict.fromkeys(notes)))


def _parse(path: _Source, *, rate: float | None, scale: float, unit: str, columns: Mapping[str, str] | None) -> Tracks:
    if rate is not None and not RATES[0] <= rate <= RATES[1]:
        raise TrackError(f"rate = {rate!r}: pass frames a second, from {RATES[0]:g} to {RATES[1]:g}.")
    if not SCALES[0] <= scale <= SCALES[1]:
        raise TrackError(f"scale = {scale!r}: pass the length of one unit of the file, from {SCALES[0]:g} to "
                         f"{SCALES[1]:g}.")  # fmt: skip
    readers = {".npy": _read_npy, ".h5": _read_hdf5, ".hdf5": _read_hdf5, ".nc": _read_netcdf, ".csv": _read_table,
               ".tsv": _read_table, ".txt": _read_table}  # fmt: skip
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise TrackError(f"{_shown(path)} ends with {path.suffix or 'nothing'}: pass a table (.csv, .tsv, .txt), .npy, "
                         "idtracker.ai's .h5, or a movement dataset (.nc).")  # fmt: skip
    if columns and reader is not _read_table:
        raise TrackError(f"columns are given but {Path(path.name).name} is no table: leave them out.")
    trials, found_rate, found_unit, notes = reader(path, dict(columns or {}))
    trials = _usable(path, trials, scale, notes)
    if rate is None and found_rate is None:
        raise TrackError(f"{_shown(path)} does not say how many frames a second it has: pass --rate HZ.")
    frames_a_second = float(rate if rate is not None else found_rate or 0.0)
    if not RATES[0] <= frames_a_second <= RATES[1]:
        raise TrackError(f"{_shown(path)} has the frame rate {frames_a_second!r}: pass --rate HZ.")
    if rate is not None and found_rate is not None and abs(found_rate / rate - 1) > 0.01:
        notes.append(f"The file says {found_rate:g} frames a second; {rate:g} were asked for and are used.")
    scaled = tuple(trial._replace(position=trial.position * scale) for trial in trials)
    found_unit = _tidied((unit or found_unit) if scale == 1.0 else unit) or "units"
    return Tracks(_tidied(Path(path.name).name), scaled, frames_a_second, found_unit, tuple(map(_tidied, notes)))


Found = tuple[list[Trial], float | None, str, list[str]]  # trials, rate and unit as the file says, notes


def _usable(path: _Source, trials: list[Trial], scale: float, notes: list[str]) -> list[Trial]:
    """The trials from which motion can be found, under names to show; the others are left out, which is said."""
    trials = [trial._replace(name=_tidied(trial.name), ids=tuple(map(_tidied, trial.ids))) for trial in trials]
    for trial in trials:
        largest = np.nanmax(np.abs(trial.position), initial=0.0)
        if np.isinf(largest):
            raise TrackError(f"{_shown(path)}, trial {_quoted(trial.name)} has infinite positions: mark missing ones "
                             "as NaN or leave them out.")  # fmt: skip
        if largest * scale > FARTHEST:
            raise TrackError(f"{_shown(path)}, trial {_quoted(trial.name)} has positions beyond {FARTHEST:g}: use "
                             "larger units (--scale), or mark missing ones as NaN.")  # fmt: skip
        if len(set(trial.ids)) < len(trial.ids):
            raise TrackError(f"{_shown(path)}, trial {_quoted(trial.name)}: two individuals have names that look "
                             "alike: use letters and numbers.")  # fmt: skip
    fine = [t for t in trials if len(t.position) >= LEAST_FRAMES and np.isfinite(t.position).all(axis=-1).any()]
    if not fine:
        frames, count = max((trial.position.shape[:2] for trial in trials), default=(0, 0))
        what = "no position that is a number" if frames >= LEAST_FRAMES else f"{frames} frames of {count} individuals"
        raise TrackError(f"{_shown(path)} has {what}: {LEAST_FRAMES} frames with positions are needed at least.")
    if len(fine) < len(trials):
        notes.append(f"{len(trials) - len(fine)} of {len(trials)} trials have too few positions and are left out.")
    return fine


def _tidied(text: str) -> str:
    """Text of a file to show in terminals, figures, pages and tables: nothing invisible, no markup."""
    return "".join(c if c.isprintable() and c not in MARKUP else "_" for c in text)


def _shown(path: Path | _Source) -> str:
    name = path.name if isinstance(path, _Source) else str(path)
    return "".join(c if c.isprintable() else "?" for c in name)[:1000]


def _quoted(text: object) -> str:
    seen = "".join(c if c.isprintable() else "?" for c in str(text))
    return repr(seen if len(seen) <= LONGEST_QUOTE else seen[: LONGEST_QUOTE - 3] + "...")


# ----------------------------------------------------------------------------------------------- arrays


def _read_npy(path: _Source, columns: dict[str, str]) -> Found:
    try:  # from a disk without reading it yet: its size is checked first
        array = np.load(path.opened(), mmap_mode="r" if isinstance(path.held, Path) else None, allow_pickle=False)
    except ValueError as error:
        if "pickle" in str(error).lower() or "object" in str(error).lower():
            raise TrackError(
                f"{_shown(path)} holds Python objects or is damaged: opening objects would run code from the file, so "
                f"it is refused. Export it with  {EXPORT}  and pass the .h5 or .csv file."
            ) from None
        raise TrackError(f"{_shown(path)} is not a whole .npy file ({_quoted(error)}): save it once more.") from None
    except MemoryError:
        raise
    except Exception as error:  # a damaged header can fail in any way
        raise TrackError(f"{_shown(path)} is not a whole .npy file ({_quoted(error)}): save it once more.") from None
    return [_of_array(path, np.asarray(array), "the array")], None, "", []


def _of_array(path: _Source, array: np.ndarray, what: str, ids: tuple[str, ...] | None = None) -> Trial:
    """One trial from an array of any numbers with axes (frame, individual, x and y)."""
    _check_numbers(path, array, what)
    names = tuple(str(i) for i in range(array.shape[1])) if ids is None else ids
    return Trial("0", names, _without_halves(array.astype(float)))


def _without_halves(position: np.ndarray) -> np.ndarray:
    """A position of which one number is missing is missing."""
    return np.where(np.isnan(position).any(axis=-1, keepdims=True), np.nan, position)


def _check_size(path: _Source, frames: int, count: int) -> None:
    if frames * count > MOST_PLACES:
        raise TrackError(f"{_shown(path)} has {frames} frames of {count} individuals: more than {MOST_PLACES:,} places "
                         "in one trial; split it into trials.")  # fmt: skip


@contextmanager
def _opened(path: _Source, kind: str) -> Iterator[None]:
    """What libraries say about broken files, in our words."""
    try:
        yield
    except (TrackError, MemoryError):
        raise
    except ImportError as error:
        raise TrackError(f"{_shown(path)} needs {error.name}: pip install 'policychord[studies]'.") from None
    except Exception as error:
        raise TrackError(f"{_shown(path)} is not a whole {kind} file ({_quoted(error)}): save it once more.") from None


def _read_hdf5(path: _Source, columns: dict[str, str]) -> Found:
    with _opened(path, "HDF5"):
        import h5py

        with h5py.File(path.opened(), "r") as file:
            link = file.get("trajectories", getlink=True) if "trajectories" in file else None
            if not isinstance(link, h5py.HardLink) or not isinstance(file["trajectories"], h5py.Dataset):
                held = ", ".join(sorted(file)[:6]) or "nothing"
                raise TrackError(f"{_shown(path)} has no dataset 'trajectories' (it has {held[:80]}): pass the "
                                 f"trajectories.h5 of idtracker.ai ({EXPORT}).")  # fmt: skip
            _check_content(path, file)
            values = file["trajectories"]
            _check_numbers(path, values, "'trajectories'")
            trial = _of_array(path, np.asarray(values[()]), "'trajectories'", _labels(file, values.shape[1]))
            rate = _number(file, "frames_per_second")
            body, length = _number(file, "body_length"), _number(file, "length_unit")
    notes = [f"idtracker.ai's body length is {body:g} pixels."] if body else []
    if length and length > 0:
        notes.append(f"idtracker.ai has a length unit of {length:g} pixels: --scale {1 / length:.6g} uses it.")
    return [trial], rate, "px", notes


def _check_content(path: _Source, file: Any) -> None:
    """Refuse an HDF5 file with anything but plain datasets, reached by hard links, that unpack to what memory holds.

    The whole file is walked before anything in it is read: whoever follows one of its names afterwards, a library too,
    stays inside the file and within the limits.
    """
    import h5py

    waiting, seen = [("", file)], set()
    while waiting:
        name, part = waiting.pop()
        about = h5py.h5o.get_info(part.id)
        if about.addr in seen:  # linked twice, or in a circle
            continue
        seen.add(about.addr)
        if len(seen) + (len(part) if isinstance(part, h5py.Group) else 0) > MOST_PARTS:
            raise TrackError(f"{_shown(path)} has more than {MOST_PARTS:,} groups and datasets: export it once more.")
        _check_attributes(path, name, part)
        if isinstance(part, h5py.Dataset):
            _check_dataset(path, name, part)
        elif isinstance(part, h5py.Group):
            waiting += [(f"{name}/{inner}", _linked(path, part, inner)) for inner in part]


def _linked(path: _Source, group: Any, name: str) -> Any:
    """What a group holds itself under a name."""
    import h5py

    kind = group.id.links.get_info(name.encode("utf-8", "surrogateescape")).type
    if kind == h5py.h5l.TYPE_HARD:
        return group[name]
    where = "is a link to another place of the file" if kind == h5py.h5l.TYPE_SOFT else "lies in another file"
    raise TrackError(
        f"{_shown(path)}: {_quoted(name)} {where}: links are not followed; export it once more ({EXPORT})."
    )


def _check_dataset(path: _Source, name: str, dataset: Any) -> None:
    import h5py

    if dataset.external or dataset.is_virtual:
        raise TrackError(f"{_shown(path)}: {_quoted(name)} lies in another file: export it once more ({EXPORT}).")
    kind = dataset.id.get_type()
    if not _is_plain(kind):
        raise TrackError(
            f"{_shown(path)}: {_quoted(name)} has entries that are neither numbers nor text: leave it out."
        )
    count = dataset.size or 0
    most = MOST_TEXTS if kind.get_class() == h5py.h5t.STRING else 2 * MOST_PLACES
    if count > most:
        raise TrackError(f"{_shown(path)}: {_quoted(name)} has {count:,} entries, more than {most:,}: split it into "
                         "trials.")  # fmt: skip
    size, stored = count * kind.get_size(), dataset.id.get_storage_size()
    if size > LARGEST_ARRAY or size > max(UNPACKED, MOST_PACKED * stored):
        raise TrackError(f"{_shown(path)}: {_quoted(name)} has {stored:,} bytes and unpacks to {size:,}, more than is "
                         f"plausible: store it without compression, or in several files.")  # fmt: skip


def _is_plain(kind: Any) -> bool:
    """Whether entries are numbers, truth values or text."""
    import h5py

    h5t = h5py.h5t
    return kind.get_class() in (h5t.INTEGER, h5t.FLOAT, h5t.STRING) or (
        kind.get_class() == h5t.ENUM and kind.get_super().get_class() == h5t.INTEGER
    )


def _check_attributes(path: _Source, name: str, part: Any) -> None:
    """Refuse attributes that are large, or refer to anything but the axes of a netCDF variable."""
    import h5py

    for at in range(h5py.h5a.get_num_attrs(part.id)):
        held = h5py.h5a.open(part.id, index=at)
        kind, count = held.get_type(), held.get_space().get_simple_extent_npoints()
        if count > MOST_TEXTS or count * kind.get_size() > LARGEST_ATTRIBUTE:
            raise TrackError(f"{_shown(path)}: an attribute of {_quoted(name or '/')} has {count * kind.get_size():,} "
                             f"bytes, more than {LARGEST_ATTRIBUTE:,}: leave it out.")  # fmt: skip
        if not _is_plain(kind) and held.name not in OF_NETCDF:
            raise TrackError(f"{_shown(path)}: an attribute of {_quoted(name or '/')} is neither numbers nor text: "
                             "leave it out.")  # fmt: skip


def _check_numbers(path: _Source, array: Any, what: str) -> None:
    """Refuse what is no track before it takes memory."""
    if array.dtype.kind not in "iuf":
        raise TrackError(f"{_shown(path)}: {what} has entries of type {array.dtype}: numbers are needed.")
    if array.ndim != 3 or array.shape[2] != 2:
        raise TrackError(f"{_shown(path)}: {what} has shape {array.shape}: (frames, individuals, 2) is needed.")
    _check_size(path, array.shape[0], array.shape[1])


def _labels(file: Any, count: int) -> tuple[str, ...]:
    """What idtracker.ai calls the individuals: their labels, or numbers from 1 as in its tables."""
    given = np.asarray(file.attrs.get("identities_labels", ())).reshape(-1)
    names = tuple(str(name)[:LONGEST_QUOTE] for name in given)
    return names if len(set(names)) == count else tuple(str(i) for i in range(1, count + 1))


def _number(file: Any, name: str) -> float | None:
    """A number that is an attribute or a small dataset; None for anything else."""
    value = file.attrs.get(name)
    if value is None and name in file and getattr(file[name], "size", 0) == 1:
        value = file[name][()]
    try:
        number = float(np.asarray(value).reshape(()))
    except (TypeError, ValueError):
        return None
    return number if np.isfinite(number) and number > 0 else None


def _read_netcdf(path: _Source, columns: dict[str, str]) -> Found:
    """A dataset of the package `movement`: position with time, space, individual(s), and perhaps keypoint(s)."""
    with _opened(path, "netCDF"):
        import xarray as xr

        with open(path.held, "rb") if isinstance(path.held, Path) else path.opened() as file:
            classic, unused = file.read(3) == b"CDF", []
        if not classic:  # h5netcdf prints a traceback of its own about what is no HDF5
            import h5py

            with h5py.File(path.opened(), "r") as file:
                _check_content(path, file)
                unused = [name for name in file if name not in OF_MOVEMENT]  # xarray would read axes among them
        engine: Any = "scipy" if classic else "h5netcdf"
        with xr.open_dataset(path.opened(), engine=engine, decode_times=False, drop_variables=unused) as dataset:
            if "position" not in dataset:
                raise TrackError(f"{_shown(path)} has no variable 'position': save a movement dataset with to_netcdf.")
            array, notes = dataset["position"], []
            plural = {name: name[:-1] for name in ("individuals", "keypoints") if name in array.dims}
            array = array.rename(plural)
            if missing := {"time", "space", "individual"} - set(map(str, array.dims)):
                raise TrackError(f"{_shown(path)}: position has the dims {tuple(array.dims)} and no "
                                 f"{', '.join(sorted(missing))}: save a movement dataset.")  # fmt: skip
            if "keypoint" in array.dims:
                if array.sizes["keypoint"] > 1:
                    notes.append(f"Positions are the means of {array.sizes['keypoint']} keypoints.")
                array = array.mean("keypoint", skipna=True)
            if set(map(str, array.dims)) != {"time", "space", "individual"}:
                raise TrackError(f"{_shown(path)}: position has the dims {tuple(array.dims)}: time, space, individual "
                                 "and keypoint are known.")  # fmt: skip
            if "space" in array.coords:
                axes = [str(name) for name in array["space"].to_numpy()]
                if sorted(axes) != ["x", "y"]:
                    raise TrackError(f"{_shown(path)}: space is {_quoted(', '.join(axes))}: tracks in a plane (x, y) "
                                     "are needed.")  # fmt: skip
                array = array.sel(space=["x", "y"])
            ids = tuple(str(name) for name in array["individual"].to_numpy())
            values = array.transpose("time", "individual", "space").to_numpy()
            rate = _rate_of(dataset)
            unit = str(dataset.attrs.get("space_unit", ""))[:12]
    return [_of_array(path, values, "position", ids)], rate, unit, notes


def _rate_of(dataset: Any) -> float | None:
    try:
        fps = float(dataset.attrs.get("fps", "nan"))
    except (TypeError, ValueError):
        fps = float("nan")
    if np.isfinite(fps) and fps > 0:
        return fps
    in_seconds = str(dataset.attrs.get("time_unit", "")).startswith("s")
    if in_seconds and "time" in dataset.coords and dataset.sizes["time"] > 1:
        return _rate_from(dataset["time"].to_numpy().astype(float))
    return None


def _rate_from(times: np.ndarray) -> float | None:
    """Frames a second from the times of frames."""
    steps = np.diff(np.unique(times[np.isfinite(times)]))
    return float(1.0 / np.median(steps)) if len(steps) and np.median(steps) > 0 else None


# ----------------------------------------------------------------------------------------------- tables


def _read_table(path: _Source, columns: dict[str, str]) -> Found:
    raw = path.content(LARGEST_TABLE)
    if b"\0" in raw[:4096]:
        raise TrackError(f"{_shown(path)} is not text: pass a table of tracks.")
    try:
        raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TrackError(f"{_shown(path)} is not UTF-8 text (byte {error.start}): save the table as UTF-8.") from None
    head = next((line for line in _lines(raw) if line.strip()), "")
    separator = max(("\t", ";", ","), key=head.count) if any(s in head for s in "\t;,") else r"\s+"
    if head.count(separator) > MOST_COLUMNS:
        raise TrackError(f"{_shown(path)} has more than {MOST_COLUMNS:,} columns: pass a table with a row for every "
                         "individual and frame.")  # fmt: skip
    if len(separator) == 1 and b'"' not in raw:
        # the parser would fill a row that was cut off with empty cells, and those are gaps
        for number, line in enumerate(_lines(raw), start=1):
            if line.count(separator) < head.count(separator) and line.strip():
                raise TrackError(f"{_shown(path)}, line {number} has fewer cells than the header: every row needs all "
                                 "of them, empty ones too.")  # fmt: skip
    try:
        table = pd.read_csv(io.BytesIO(raw), sep=separator, dtype=str, keep_default_na=False, index_col=False,
                            engine="c" if len(separator) == 1 else "python", on_bad_lines="error",
                            encoding="utf-8-sig")  # fmt: skip
    except (ValueError, pd.errors.ParserError) as error:
        raise TrackError(f"{_shown(path)} is not a whole table ({_quoted(error)}): every row needs the cells of the "
                         "header.") from None  # fmt: skip
    table.columns = pd.Index([str(name).strip() for name in table.columns])
    if table.empty:
        raise TrackError(f"{_shown(path)} has a header but no rows: pass a table of tracks.")
    pairs = _wide_pairs(list(table.columns))
    if pairs and not columns:
        return _wide(path, table, pairs)
    return _long(path, table, columns)


def _lines(raw: bytes) -> io.TextIOWrapper:
    """The lines of a table, one at a time: all of them at once take several times its size."""
    return io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8-sig")


def _wide_pairs(header: list[str]) -> list[tuple[str, str, str]]:
    """(individual, its x column, its y column) of a table with the columns x1, y1, x2, y2 and so on."""
    names = {name.lower(): name for name in header}
    numbers = [match[1] for name in names if (match := re.fullmatch(r"x_?(\d+)", name))]
    found = []
    for number in numbers:
        x, y = (next((names[c] for c in (f"{a}{number}", f"{a}_{number}") if c in names), None) for a in "xy")
        if x is not None and y is not None:
            found.append((number, x, y))
    return found


def _wide(path: _Source, table: pd.DataFrame, pairs: list[tuple[str, str, str]]) -> Found:
    _check_size(path, len(table), len(pairs))
    position = np.stack(
        [np.stack([_numbers(path, table[x]), _numbers(path, table[y])], axis=-1) for _, x, y in pairs], axis=1
    )
    rate, notes = _rate_beside(path, "attributes.json")
    if rate is None and "time" in table:
        rate = _rate_from(_numbers(path, table["time"]))
    return [_of_array(path, position, "the table", tuple(number for number, _, _ in pairs))], rate, "px", notes


def _rate_beside(path: _Source, name: str) -> tuple[float | None, list[str]]:
    """(frames a second, notes) from the attributes that idtracker.ai writes beside a table."""
    beside = path.held.parent / name if isinstance(path.held, Path) else None
    if beside is None or not beside.is_file() or beside.stat().st_size >= 1_000_000:
        return None, []
    try:
        rate = float(json.loads(beside.read_text(encoding="utf-8"))["frames_per_second"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None, [f"{name} has no frame rate that can be read."]
    return rate, [f"The frame rate is that of {name}."]


def _long(path: _Source, table: pd.DataFrame, columns: dict[str, str]) -> Found:
    names = _column_names(path, list(table.columns), columns)
    notes = [f"{ours} is the column {theirs!r}." for ours, theirs in names.items() if ours != theirs.lower()]
    x, y = (_numbers(path, table[names[axis]]) for axis in ("x", "y"))
    rate = None
    if "frame" in names:
        moment = _numbers(path, table[names["frame"]], whole=True, needed=True)
        if "time" in names:
            rate = _rate_of_frames(moment, table[names["time"]], notes)
    else:
        time = _numbers(path, table[names["time"]], needed=True)
        rate = _rate_from(time)
        if rate is None:
            raise TrackError(f"{_shown(path)}: all rows have the same {names['time']}: tracks need several frames.")
        moment = np.round(time * rate)
        notes.append(f"Frames are the times {names['time']!r} at {rate:.6g} a second.")
    who = table[names["id"]].str.strip().to_numpy()
    trial = table[names["trial"]].str.strip().to_numpy() if "trial" in names else np.full(len(table), "0")
    which, names_of_trials = pd.factorize(trial)
    if len(names_of_trials) > MOST_TRIALS:
        raise TrackError(f"{_shown(path)} has {len(names_of_trials):,} trials, more than {MOST_TRIALS:,}: split it "
                         "into several files.")  # fmt: skip
    place, found = np.stack([x, y], axis=-1), []
    # the rows of each trial, in their order: to look through the whole table for each takes the square of their number
    parts = np.split(np.argsort(which, kind="stable"), np.cumsum(np.bincount(which))[:-1])
    for name, rows in zip(names_of_trials, parts, strict=True):
        found.append(_one_trial(path, str(name), moment[rows], who[rows], place[rows]))
    steps = {step for _, step in found}
    if steps - {1}:
        every = ", ".join(str(step) for step in sorted(steps))
        notes.append(f"The file has every {every}. frame number only; --rate counts the frames that are there.")
    return [one for one, _ in found], rate, "", notes


def _rate_of_frames(moment: np.ndarray, time: pd.Series, notes: list[str]) -> float | None:
    """Frames a second of a table that has both: the slope of frames over times, if these are seconds."""
    seconds = pd.to_numeric(time, errors="coerce").to_numpy(dtype=float)
    fine = np.isfinite(seconds)
    frames, first = np.unique(moment[fine], return_index=True)
    steps, spans = np.diff(frames), np.diff(seconds[fine][first])
    ahead = spans > 0  # times may begin anew in another trial
    if not ahead.any():
        return None
    # what stands between two frames of the table counts as one, as in `_one_trial`
    rate = float(steps[ahead].sum() / spans[ahead].sum() / max(1.0, np.gcd.reduce(steps.astype(np.int64))))
    rate = round(rate) if abs(rate / max(round(rate), 1) - 1) < 1e-3 else rate
    notes.append(f"{rate:g} frames a second are those of the column {time.name!r}, taken as seconds.")
    return rate


def _column_names(path: _Source, header: list[str], given: dict[str, str]) -> dict[str, str]:
    known = {re.sub(r"[^a-z0-9]", "", name.lower()): name for name in reversed(header)}
    found = {}
    for ours, theirs in given.items():
        if ours not in ALIASES:
            raise TrackError(f"columns have {ours!r}: use {', '.join(ALIASES)}.")
        if theirs not in header:
            raise TrackError(f"{_shown(path)} has no column {theirs!r}: it has {_quoted(', '.join(header))}.")
        found[ours] = theirs
    for ours, aliases in ALIASES.items():
        name = next((known[alias] for alias in aliases if alias in known and known[alias] not in found.values()), None)
        if ours not in found and name is not None:
            found[ours] = name
    missing = [ours for ours in ("id", "x", "y") if ours not in found]
    missing += [] if "frame" in found or "time" in found else ["frame"]
    if missing:
        raise TrackError(f"{_shown(path)} has no column for {', '.join(missing)} (it has {_quoted(', '.join(header))}):"
                         f" name it, such as --columns {missing[0]}=THEIRS.")  # fmt: skip
    return found


def _numbers(path: _Source, cells: pd.Series, whole: bool = False, needed: bool = False) -> np.ndarray:
    """A column as numbers; what is neither a number nor missing is an error with its line."""
    values = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=float)
    empty = cells.str.strip().str.lower().isin(MISSING).to_numpy()
    wrong = np.isnan(values) & (~empty | needed)
    if whole:
        wrong |= np.isfinite(values) & (values != np.round(values)) | (np.abs(values) > 2**53)
    if wrong.any():
        row = int(np.argmax(wrong))
        wanted = "a whole number" if whole else "a number"
        raise TrackError(f"{_shown(path)}, line {row + 2}: {cells.name} is {_quoted(cells.iloc[row])}, not {wanted} "
                         f"({int(wrong.sum())} such rows).")  # fmt: skip
    return values


def in_order(name: str) -> tuple[bool, int, str]:
    """Numbers by their size, then names by the alphabet."""
    number = name.isascii() and name.isdigit() and len(name) < 19
    return not number, int(name) if number else 0, name


def _one_trial(path: _Source, name: str, moment: np.ndarray, who: np.ndarray, place: np.ndarray) -> tuple[Trial, int]:
    """(a trial, how many frame numbers lie between two frames)."""
    ids, column = np.unique(who, return_inverse=True)
    order = sorted(range(len(ids)), key=lambda i: in_order(str(ids[i])))
    rank = np.argsort(order)
    numbers = np.unique(moment)
    step = max(1, int(np.gcd.reduce(np.diff(numbers).astype(np.int64)))) if len(numbers) > 1 else 1
    row = ((moment - numbers[0]) / step).astype(np.int64)
    frames = int(row.max()) + 1
    _check_size(path, frames, len(ids))
    flat = row * len(ids) + rank[column]
    if len(np.unique(flat)) < len(flat):
        values, counts = np.unique(flat, return_counts=True)
        twice = int(values[np.argmax(counts > 1)])
        who_twice, frame = ids[order[twice % len(ids)]], int(numbers[0] + step * (twice // len(ids)))
        raise TrackError(f"{_shown(path)}: individual {_quoted(who_twice)} is twice in frame {frame} of trial "
                         f"{_quoted(name)}: "
                         "name the column of trials, or delete one row.")  # fmt: skip
    position = np.full((frames * len(ids), 2), np.nan)
    position[flat] = place
    shaped = _without_halves(position.reshape(frames, len(ids), 2))
    return Trial(name, tuple(str(ids[i]) for i in order), shaped), step
