"""From a file to tracks: long tables (those of other programs are `foreign`), idtracker.ai's HDF5 and CSV, SLEAP's
HDF5, numeric .npy arrays, and `movement` datasets.

Nothing in a file is executed: arrays of Python objects are refused, and links out of an HDF5 file are not followed.
"""

import io
import itertools
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd
from jaxtyping import Float

from .foreign import ABSENT, comments_of, frames_of, projected, seconds_of, turned

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
    "id": ("id", "individuallocalidentifier", "taglocalidentifier", "individual", "individuals", "track", "trackid",
           "animal", "animalid", "identity", "agent", "pedestrian", "persid", "fish", "bird", "particle"),
    "x": ("x", "posx", "xpos", "positionx", "xcm", "xpx", "xm", "centroidx"),
    "y": ("y", "posy", "ypos", "positiony", "ycm", "ypx", "ym", "centroidy"),
}  # fmt: skip
ON_EARTH = {"x": ("locationlong", "longitude", "lon", "long", "lng"), "y": ("locationlat", "latitude", "lat")}
WHO = re.compile(r"id$|track|individual|animal|identi")  # what names of columns that may be an identity have


class TrackError(ValueError):
    """A file of tracks cannot be used; the message names the file, what is wrong, and the remedy."""


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


class _Source(NamedTuple):
    """A file on disk, or the content of one: what a reader opens, and what messages call it."""

    name: str
    content: Path | bytes

    def opened(self) -> Any:
        """What libraries take: a path, or something to read from."""
        return self.content if isinstance(self.content, Path) else io.BytesIO(self.content)

    def error(self, fault: str) -> TrackError:
        """An error that begins with the name of the file."""
        return TrackError(f"{_printable(self.name)[:1000]}{fault}")


class _Content(NamedTuple):
    """What a reader finds in a file; rate and unit are None and empty where the file does not say."""

    trials: list[Trial]
    rate: float | None
    unit: str
    notes: list[str]


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

    Of several files each is one trial or more; they need the same rate and unit. Tables without a column of identities
    are individuals of one trial.
    """
    paths = [Path(path)] if isinstance(path, str | Path) else [Path(part) for part in path]
    if not paths:
        raise TrackError("no file of tracks is named: pass one or more.")
    options: dict[str, Any] = {"rate": rate, "scale": scale, "unit": unit, "columns": columns}
    sources = [_source(part) for part in paths]
    if len(sources) > 1 and all(_of_one(source, columns) for source in sources):
        return _parse(_one_table(sources), **options)
    files = [_parse(source, **options) for source in sources]
    return files[0] if len(files) == 1 else _together(paths, files)


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
    return _parse(_Source(name, content), rate, scale, unit, columns)


def _source(path: Path) -> _Source:
    """A file, or the file that is meant by a folder of idtracker.ai."""
    source = _Source(str(path), path)
    if not path.exists():
        raise source.error(" does not exist: check the path.")
    if path.is_dir():
        inside = next((path / name for name in IN_SESSIONS if (path / name).is_file()), None)
        if inside is None:
            raise source.error(" is a folder without trajectories.h5 or trajectories.csv: pass a file, or a session "
                               f"of idtracker.ai after  {EXPORT}")  # fmt: skip
        return _Source(str(inside), inside)
    if not path.is_file():
        raise source.error(" is a pipe or a device: pass a file.")
    return source


def _of_one(source: _Source, columns: Mapping[str, str] | None) -> bool:
    """Whether a file is a table of one individual: it has a frame or time, x and y, and no column of identities."""
    if READERS.get(Path(source.name).suffix.lower()) is not _read_table or "id" in (columns or {}):
        return False
    with open(cast(Path, source.content), encoding="utf-8-sig", errors="replace") as file:
        head = file.readline(LARGEST_ATTRIBUTE)
    known = {re.sub(r"[^a-z0-9]", "", name.lower()) for name in re.split(r"[\t;,\s]+", head.strip())}
    moment = known & {*ALIASES["frame"], *ALIASES["time"], "framenumber"}
    place = (known & {*ALIASES["x"], *ON_EARTH["x"]}) and (known & {*ALIASES["y"], *ON_EARTH["y"]})
    return bool(moment and place) and not known & {*ALIASES["id"], "scorer", "frameidx"}


def _one_table(sources: list[_Source]) -> _Source:
    """Tables of one individual each as one table, in which the names of the files are those of the individuals."""
    names = [_tidied(Path(source.name).stem) for source in sources]
    if len(set(names)) < len(names):
        raise TrackError(f"{max(names, key=names.count)} is the name of several files: each is an individual, so give "
                         "them names of their own.")  # fmt: skip
    tables = [_table_of(source)[0].assign(id=name) for source, name in zip(sources, names, strict=True)]
    if any(list(table.columns) != list(tables[0].columns) for table in tables):
        raise TrackError("the tables of single individuals have different columns: they need the same.")
    content = pd.concat(tables).to_csv(index=False).encode()
    return _Source(f"{len(sources)} files of one individual each.csv", content)


def _together(paths: list[Path], files: list[Tracks]) -> Tracks:
    """Several files as one: a trial is called after its file, by as much of the path as tells them apart."""
    first = files[0]
    for path, tracks in zip(paths, files, strict=True):
        if abs(tracks.rate / first.rate - 1) > 1e-3 or tracks.unit != first.unit:
            raise TrackError(f"{_printable(str(path))[:1000]} has {tracks.rate:g} frames a second and lengths in "
                             f"{tracks.unit}, but {first.source} has {first.rate:g} and {first.unit}: fit them apart, "
                             "or pass --rate and --unit if they are the same.")  # fmt: skip
    whole = [path.resolve().with_suffix("") for path in paths]
    shared = Path(os.path.commonpath(whole))
    names = [_tidied(str(path.relative_to(shared)) if path != shared else path.name) for path in whole]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise TrackError(f"{twice} is named twice: pass every file once.")
    trials = tuple(
        trial._replace(name=name if len(tracks.trials) == 1 else f"{name}/{trial.name}")
        for name, tracks in zip(names, files, strict=True) for trial in tracks.trials
    )  # fmt: skip
    alike = len({tracks.notes for tracks in files}) == 1
    notes = [note if alike else f"{name}: {note}" for name, tracks in zip(names, files, strict=True)
             for note in tracks.notes]  # fmt: skip
    return first._replace(source=f"{len(paths)} files", trials=trials, notes=tuple(dict.fromkeys(notes)))


def _parse(source: _Source, rate: float | None, scale: float, unit: str, columns: Mapping[str, str] | None) -> Tracks:
    if rate is not None and not RATES[0] <= rate <= RATES[1]:
        raise TrackError(f"rate = {rate!r}: pass frames a second, from {RATES[0]:g} to {RATES[1]:g}.")
    if not SCALES[0] <= scale <= SCALES[1]:
        raise TrackError(f"scale = {scale!r}: pass the length of one unit of the file, from {SCALES[0]:g} to "
                         f"{SCALES[1]:g}.")  # fmt: skip
    name = Path(source.name)
    reader = READERS.get(name.suffix.lower())
    if reader is None:
        raise source.error(f" ends with {name.suffix or 'nothing'}: pass a table (.csv, .tsv, .txt), .npy, "
                           "idtracker.ai's .h5, or a movement dataset (.nc).")  # fmt: skip
    if columns and reader is not _read_table:
        raise TrackError(f"columns are given but {name.name} is no table: leave them out.")
    trials, own_rate, own_unit, notes = reader(source, dict(columns or {}))
    trials = _usable(source, trials, scale, notes)
    used = own_rate if rate is None else rate
    if used is None:
        raise source.error(" does not say how many frames a second it has: pass --rate HZ.")
    if not RATES[0] <= used <= RATES[1]:
        raise source.error(f" has the frame rate {used!r}: pass --rate HZ.")
    if own_rate is not None and abs(own_rate / used - 1) > 0.01:
        notes.append(f"The file says {own_rate:g} frames a second; {used:g} were asked for and are used.")
    scaled = tuple(trial._replace(position=trial.position * scale) for trial in trials)
    unit = _tidied(unit or (own_unit if scale == 1.0 else "")) or "units"
    return Tracks(_tidied(name.name), scaled, float(used), unit, tuple(map(_tidied, notes)))


def _usable(source: _Source, trials: list[Trial], scale: float, notes: list[str]) -> list[Trial]:
    """The trials from which motion can be found, under names to show; the others are left out, with a note."""
    trials = [trial._replace(name=_tidied(trial.name), ids=tuple(map(_tidied, trial.ids))) for trial in trials]
    for trial in trials:
        where, largest = f", trial {_quoted(trial.name)}", np.nanmax(np.abs(trial.position), initial=0.0)
        if np.isinf(largest):
            raise source.error(f"{where} has infinite positions: mark missing ones as NaN or leave them out.")
        if largest * scale > FARTHEST:
            raise source.error(f"{where} has positions beyond {FARTHEST:g}: use larger units (--scale), or mark "
                               "missing ones as NaN.")  # fmt: skip
        if len(set(trial.ids)) < len(trial.ids):
            raise source.error(f"{where}: two individuals have names that look alike: use letters and numbers.")
    usable = [t for t in trials if len(t.position) >= LEAST_FRAMES and np.isfinite(t.position).all(axis=-1).any()]
    if not usable:
        frames, count = max((trial.position.shape[:2] for trial in trials), default=(0, 0))
        what = "no position that is a number" if frames >= LEAST_FRAMES else f"{frames} frames of {count} individuals"
        raise source.error(f" has {what}: {LEAST_FRAMES} frames with positions are needed at least.")
    if len(usable) < len(trials):
        notes.append(f"{len(trials) - len(usable)} of {len(trials)} trials have too few positions and are left out.")
    return usable


def _printable(text: str, markup: frozenset[str] = frozenset(), instead: str = "?") -> str:
    return "".join(c if c.isprintable() and c not in markup else instead for c in text)


def _tidied(text: str) -> str:
    """Text of a file to show in terminals, figures, pages and tables: nothing invisible, no markup."""
    return _printable(text, MARKUP, "_")


def _quoted(text: object) -> str:
    seen = _printable(str(text))
    return repr(seen if len(seen) <= LONGEST_QUOTE else seen[: LONGEST_QUOTE - 3] + "...")


# ----------------------------------------------------------------------------------------------- arrays


@contextmanager
def _opened(source: _Source, kind: str) -> Iterator[None]:
    """What libraries say about broken files, in our words: a damaged header can fail in any way."""
    try:
        yield
    except (TrackError, MemoryError):
        raise
    except ImportError as error:
        raise source.error(f" needs {error.name}: pip install 'policychord[studies]'.") from None
    except Exception as error:
        raise source.error(f" is not a whole {kind} file ({_quoted(error)}): save it once more.") from None


def _of_array(source: _Source, array: np.ndarray, what: str, ids: Sequence[str] | None = None) -> Trial:
    """One trial from an array of any numbers with axes (frame, individual, x and y)."""
    _check_numbers(source, array, what)
    names = tuple(map(str, range(array.shape[1]) if ids is None else ids))
    return Trial("0", names, _without_halves(array.astype(float)))


def _without_halves(position: np.ndarray) -> np.ndarray:
    """A position of which one number is missing is missing."""
    return np.where(np.isnan(position).any(axis=-1, keepdims=True), np.nan, position)


def _check_numbers(source: _Source, array: Any, what: str) -> None:
    """Refuse what is no track before it takes memory."""
    if array.dtype.kind not in "iuf":
        raise source.error(f": {what} has entries of type {array.dtype}: numbers are needed.")
    if array.ndim != 3 or array.shape[2] != 2:
        raise source.error(f": {what} has shape {array.shape}: (frames, individuals, 2) is needed.")
    _check_size(source, array.shape[0], array.shape[1])


def _check_size(source: _Source, frames: int, count: int) -> None:
    if frames * count > MOST_PLACES:
        raise source.error(f" has {frames} frames of {count} individuals: more than {MOST_PLACES:,} places in one "
                           "trial; split it into trials.")  # fmt: skip


def _read_npy(source: _Source, columns: dict[str, str]) -> _Content:
    with _opened(source, ".npy"):
        try:  # from a disk without reading it yet: its size is checked first
            mode: Any = "r" if isinstance(source.content, Path) else None
            array = np.load(source.opened(), mmap_mode=mode, allow_pickle=False)
        except ValueError as error:
            if "pickle" not in str(error).lower() and "object" not in str(error).lower():
                raise
            raise source.error(
                " holds Python objects or is damaged: opening objects would run code from the file, so it is refused. "
                f"Export it with  {EXPORT}  and pass the .h5 or .csv file."
            ) from None
        trial, notes = _of_array(source, np.asarray(array), "the array"), list[str]()
        if len(trial.position) < len(trial.ids):
            notes.append(f"The array has {len(trial.position)} frames of {len(trial.ids)} individuals: if it is the "
                         "other way round, save it with the first two axes exchanged.")  # fmt: skip
        return _Content([trial], None, "", notes)


def _read_hdf5(source: _Source, columns: dict[str, str]) -> _Content:
    """The trajectories.h5 of idtracker.ai."""
    with _opened(source, "HDF5"):
        import h5py

        with h5py.File(source.opened(), "r") as file:
            if "track_occupancy" in file and "tracks" in file:
                return _sleap(source, file)
            link = file.get("trajectories", getlink=True) if "trajectories" in file else None
            if not isinstance(link, h5py.HardLink) or not isinstance(file["trajectories"], h5py.Dataset):
                held = ", ".join(sorted(file)[:6]) or "nothing"
                raise source.error(f" has no dataset 'trajectories' (it has {held[:80]}): pass the trajectories.h5 of "
                                   f"idtracker.ai ({EXPORT}), SLEAP's analysis file, or DeepLabCut's CSV.")  # fmt: skip
            _check_content(source, file)
            values = file["trajectories"]
            _check_numbers(source, values, "'trajectories'")
            count = values.shape[1]
            # labels, or numbers from 1 as in its tables
            labels = [str(name)[:LONGEST_QUOTE] for name in np.ravel(file.attrs.get("identities_labels", ()))]
            ids = labels if len(set(labels)) == count else [str(i) for i in range(1, count + 1)]
            trial = _of_array(source, np.asarray(values[()]), "'trajectories'", ids)
            rate, body, length = (_number(file, n) for n in ("frames_per_second", "body_length", "length_unit"))
    notes = [f"idtracker.ai's body length is {body:g} pixels."] if body else []
    if length:
        notes.append(f"idtracker.ai has a length unit of {length:g} pixels: --scale {1 / length:.6g} uses it.")
    return _Content([trial], rate, "px", notes)


def _sleap(source: _Source, file: Any) -> _Content:
    """SLEAP's analysis file: tracks (track, x and y, node, frame), of which the mean over nodes is taken."""
    _check_content(source, file)
    values = file["tracks"]
    if values.dtype.kind not in "iuf" or values.ndim != 4 or values.shape[1] != 2:
        raise source.error(f": 'tracks' has shape {values.shape}: (tracks, 2, nodes, frames) is needed.")
    count, _, nodes, frames = values.shape
    _check_size(source, frames, count)
    array = np.asarray(values[()], float)
    there = np.isfinite(array).all(axis=1, keepdims=True)
    known = there.sum(axis=2)
    mean = np.where(known > 0, np.where(there, array, 0.0).sum(axis=2) / np.maximum(known, 1), np.nan)
    labels = [name.decode() if isinstance(name, bytes) else str(name) for name in file.get("track_names", ())]
    ids = labels if len(set(labels)) == count else [str(i) for i in range(count)]
    trial = _of_array(source, mean.transpose(2, 0, 1), "'tracks'", ids)
    return _Content([trial], None, "px", [f"Positions are the means of {nodes} nodes."])


def _number(file: Any, name: str) -> float | None:
    """A positive number that is an attribute or a small dataset; None for anything else."""
    value = file.attrs.get(name)
    if value is None and name in file and getattr(file[name], "size", 0) == 1:
        value = file[name][()]
    try:
        number = float(np.asarray(value).reshape(()))
    except (TypeError, ValueError):
        return None
    return number if np.isfinite(number) and number > 0 else None


def _check_content(source: _Source, file: Any) -> None:
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
            raise source.error(f" has more than {MOST_PARTS:,} groups and datasets: export it once more.")
        _check_attributes(source, name, part)
        if isinstance(part, h5py.Dataset):
            _check_dataset(source, name, part)
        elif isinstance(part, h5py.Group):
            waiting += [(f"{name}/{inner}", _linked(source, part, inner)) for inner in part]


def _linked(source: _Source, group: Any, name: str) -> Any:
    """What a group holds itself under a name."""
    import h5py

    kind = group.id.links.get_info(name.encode("utf-8", "surrogateescape")).type
    if kind == h5py.h5l.TYPE_HARD:
        return group[name]
    where = "is a link to another place of the file" if kind == h5py.h5l.TYPE_SOFT else "lies in another file"
    raise source.error(f": {_quoted(name)} {where}: links are not followed; export it once more ({EXPORT}).")


def _check_dataset(source: _Source, name: str, dataset: Any) -> None:
    import h5py

    if dataset.external or dataset.is_virtual:
        raise source.error(f": {_quoted(name)} lies in another file: export it once more ({EXPORT}).")
    kind = dataset.id.get_type()
    if not _is_plain(kind):
        raise source.error(f": {_quoted(name)} has entries that are neither numbers nor text: leave it out.")
    count = dataset.size or 0
    most = MOST_TEXTS if kind.get_class() == h5py.h5t.STRING else 2 * MOST_PLACES
    if count > most:
        raise source.error(f": {_quoted(name)} has {count:,} entries, more than {most:,}: split it into trials.")
    size, stored = count * kind.get_size(), dataset.id.get_storage_size()
    if size > LARGEST_ARRAY or size > max(UNPACKED, MOST_PACKED * stored):
        raise source.error(f": {_quoted(name)} has {stored:,} bytes and unpacks to {size:,}, more than is plausible: "
                           "store it without compression, or in several files.")  # fmt: skip


def _is_plain(kind: Any) -> bool:
    """Whether entries are numbers, truth values or text."""
    from h5py import h5t

    return kind.get_class() in (h5t.INTEGER, h5t.FLOAT, h5t.STRING) or (
        kind.get_class() == h5t.ENUM and kind.get_super().get_class() == h5t.INTEGER
    )


def _check_attributes(source: _Source, name: str, part: Any) -> None:
    """Refuse attributes that are large, or refer to anything but the axes of a netCDF variable."""
    from h5py import h5a

    where = f": an attribute of {_quoted(name or '/')}"
    for at in range(h5a.get_num_attrs(part.id)):
        attribute = h5a.open(part.id, index=at)
        kind, count = attribute.get_type(), attribute.get_space().get_simple_extent_npoints()
        size = count * kind.get_size()
        if count > MOST_TEXTS or size > LARGEST_ATTRIBUTE:
            raise source.error(f"{where} has {size:,} bytes, more than {LARGEST_ATTRIBUTE:,}: leave it out.")
        if not _is_plain(kind) and attribute.name not in OF_NETCDF:
            raise source.error(f"{where} is neither numbers nor text: leave it out.")


def _read_netcdf(source: _Source, columns: dict[str, str]) -> _Content:
    """A dataset of the package `movement`: position with time, space, individual(s), and perhaps keypoint(s)."""
    with _opened(source, "netCDF"):
        import xarray as xr

        with open(source.content, "rb") if isinstance(source.content, Path) else source.opened() as file:
            classic, unused = file.read(3) == b"CDF", []
        if not classic:  # h5netcdf prints a traceback of its own about what is no HDF5
            import h5py

            with h5py.File(source.opened(), "r") as file:
                _check_content(source, file)
                unused = [name for name in file if name not in OF_MOVEMENT]  # xarray would read axes among them
        engine: Any = "scipy" if classic else "h5netcdf"
        with xr.open_dataset(source.opened(), engine=engine, decode_times=False, drop_variables=unused) as dataset:
            if "position" not in dataset:
                raise source.error(" has no variable 'position': save a movement dataset with to_netcdf.")
            array, notes = dataset["position"], []
            array = array.rename({name: name[:-1] for name in ("individuals", "keypoints") if name in array.dims})
            dims = set(map(str, array.dims))
            if missing := {"time", "space", "individual"} - dims:
                raise source.error(f": position has the dims {tuple(array.dims)} and no {', '.join(sorted(missing))}: "
                                   "save a movement dataset.")  # fmt: skip
            if dims - {"time", "space", "individual", "keypoint"}:
                raise source.error(f": position has the dims {tuple(array.dims)}: time, space, individual and "
                                   "keypoint are known.")  # fmt: skip
            if "keypoint" in dims:
                if array.sizes["keypoint"] > 1:
                    notes.append(f"Positions are the means of {array.sizes['keypoint']} keypoints.")
                array = array.mean("keypoint", skipna=True)
            if "space" in array.coords:
                axes = [str(name) for name in array["space"].to_numpy()]
                if sorted(axes) != ["x", "y"]:
                    raise source.error(f": space is {_quoted(', '.join(axes))}: tracks in a plane (x, y) are needed.")
                array = array.sel(space=["x", "y"])
            values = array.transpose("time", "individual", "space").to_numpy()
            trial = _of_array(source, values, "position", array["individual"].to_numpy().tolist())
            rate = _number(dataset, "fps")
            in_seconds = str(dataset.attrs.get("time_unit", "")).startswith("s")
            if rate is None and in_seconds and "time" in dataset.coords:
                rate = _rate_from(dataset["time"].to_numpy().astype(float))
            unit = str(dataset.attrs.get("space_unit", ""))[:12]
    return _Content([trial], rate, unit, notes)


def _rate_from(times: np.ndarray) -> float | None:
    """Frames a second from the times of frames."""
    steps = np.diff(np.unique(times[np.isfinite(times)]))
    return float(1.0 / np.median(steps)) if len(steps) and np.median(steps) > 0 else None


# ----------------------------------------------------------------------------------------------- tables


def _read_table(source: _Source, columns: dict[str, str]) -> _Content:
    table, rate, unit = _table_of(source)
    if (other := None if columns else turned(table)) is not None:
        found = _long(source, other.table, other.columns)
        return found._replace(unit=other.unit, notes=[*other.notes, *found.notes])
    pairs = _wide_pairs(list(table.columns))
    found = _wide(source, table, pairs) if pairs and not columns else _long(source, table, columns)
    return found._replace(rate=found.rate or rate, unit=found.unit or unit)


def _table_of(source: _Source) -> tuple[pd.DataFrame, float | None, str]:
    """A table of text, and the frame rate and unit in the comments before it. Its index counts lines."""
    content = source.content
    size = content.stat().st_size if isinstance(content, Path) else len(content)
    if size > LARGEST_TABLE:
        raise source.error(f" has {size:,} bytes: a table may have {LARGEST_TABLE:,}. Split it into files of some "
                           "trials each, or save positions as .npy.")  # fmt: skip
    raw = content.read_bytes() if isinstance(content, Path) else content
    if b"\0" in raw[:4096]:
        raise source.error(" is not text: pass a table of tracks.")
    try:
        raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise source.error(f" is not UTF-8 text (byte {error.start}): save the table as UTF-8.") from None
    comments = list(itertools.takewhile(lambda line: line.startswith("#") or not line.strip(), _lines(raw)))
    names, rate, unit = comments_of(comments)
    if names:
        raw = b" ".join(name.encode() for name in names) + b"\n" + _without_lines(raw, len(comments))
    head = next((line for line in _lines(raw) if line.strip()), "")
    separator = max(("\t", ";", ","), key=head.count) if any(s in head for s in "\t;,") else r"\s+"
    if head.count(separator) > MOST_COLUMNS:
        raise source.error(f" has more than {MOST_COLUMNS:,} columns: pass a table with a row for every individual "
                           "and frame.")  # fmt: skip
    if len(separator) == 1 and b'"' not in raw:
        # the parser would fill a row that was cut off with empty cells, and those are gaps
        for number, line in enumerate(_lines(raw), start=1):
            if line.count(separator) < head.count(separator) and line.strip():
                raise source.error(f", line {number} has fewer cells than the header: every row needs all of them, "
                                   "empty ones too.")  # fmt: skip
    try:
        table = pd.read_csv(io.BytesIO(raw), sep=separator, dtype=str, keep_default_na=False, index_col=False,
                            engine="c" if len(separator) == 1 else "python", on_bad_lines="error",
                            encoding="utf-8-sig")  # fmt: skip
    except (ValueError, pd.errors.ParserError) as error:
        words = f" is not a whole table ({_quoted(error)}): every row needs the cells of the header."
        raise source.error(words) from None
    table.columns = pd.Index([str(name).strip() for name in table.columns])
    if table.empty:
        raise source.error(" has a header but no rows: pass a table of tracks.")
    table.index += len(comments) + 1 if names else 2
    return table, rate, unit


def _without_lines(raw: bytes, count: int) -> bytes:
    return raw.split(b"\n", count)[-1]


def _lines(raw: bytes) -> io.TextIOWrapper:
    """The lines of a table, one at a time: all of them at once take several times its size."""
    return io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8-sig")


def _wide_pairs(header: list[str]) -> list[tuple[str, str, str]]:
    """(individual, its x column, its y column) of a table with the columns x1, y1, x2, y2 or x_1, y_1 and so on."""
    axes: dict[str, dict[str, str]] = {"x": {}, "y": {}}
    for name in header:
        if match := re.fullmatch(r"([xy])_?(\d+)", name.lower()):
            axes[match[1]].setdefault(match[2], name)
    return [(number, x, axes["y"][number]) for number, x in axes["x"].items() if number in axes["y"]]


def _wide(source: _Source, table: pd.DataFrame, pairs: list[tuple[str, str, str]]) -> _Content:
    """A table of idtracker.ai, which writes its attributes next to it."""
    _check_size(source, len(table), len(pairs))
    axes = [[_numbers(source, table[columns[axis]]) for columns in pairs] for axis in (1, 2)]
    rate, notes = None, []
    beside = source.content.parent / "attributes.json" if isinstance(source.content, Path) else None
    if beside is not None and beside.is_file() and beside.stat().st_size < LARGEST_ATTRIBUTE:
        try:
            rate = float(json.loads(beside.read_text(encoding="utf-8"))["frames_per_second"])
            notes = ["The frame rate is that of attributes.json."]
        except (ValueError, KeyError, TypeError, RecursionError):
            notes = ["attributes.json has no frame rate that can be read."]
    if rate is None and "time" in table:
        rate = _rate_from(_numbers(source, table["time"]))
    return _Content([_of_array(source, np.array(axes).T, "the table", [name for name, *_ in pairs])], rate, "px", notes)


def _long(source: _Source, table: pd.DataFrame, columns: dict[str, str]) -> _Content:
    """A table with a row for every individual and frame."""
    names = _column_names(source, list(table.columns), columns)
    notes = [f"{ours} is the column {theirs!r}." for ours, theirs in names.items() if ours != theirs.lower()]
    if "visible" in table:  # Movebank: what its owners have marked as an outlier
        table = table[table["visible"].str.lower() != "false"]
    notes += _doubts_about(table, names) if not columns else []
    place, unit = _places(source, table, names, notes)
    who, rate = table[names["id"]].astype(str).str.strip().to_numpy(), None
    if "frame" in names:
        moment = _numbers(source, table[names["frame"]], whole=True, needed=True)
        if "time" in names:
            rate = _rate_of_frames(moment, table[names["time"]], notes)
    else:
        time = _numbers(source, seconds_of(table[names["time"]]), needed=True)
        moment, rate, doubts = frames_of(time, who, names["time"])
        if rate is None:
            raise source.error(f": all rows have the same {names['time']}: tracks need several frames.")
        notes += doubts
        first = ~pd.DataFrame({"trial": table[names["trial"]] if "trial" in names else "0", "who": who, "at": moment},
                              index=table.index).duplicated().to_numpy()  # fmt: skip
        if not first.all():
            notes.append(f"{int((~first).sum()):,} rows fall into a frame that another one has, and are left out.")
        table, who, moment, place = table[first], who[first], moment[first], place[first]
    trial = table[names["trial"]].str.strip().to_numpy() if "trial" in names else np.full(len(table), "0")
    which, names_of_trials = pd.factorize(trial)
    if len(names_of_trials) > MOST_TRIALS:
        raise source.error(f" has {len(names_of_trials):,} trials, more than {MOST_TRIALS:,}: split it into several "
                           "files.")  # fmt: skip
    # the rows of each trial, in their order: to look through the whole table for each takes the square of their number
    parts = np.split(np.argsort(which, kind="stable"), np.cumsum(np.bincount(which))[:-1])
    trials, steps = zip(*(_one_trial(source, str(name), moment[rows], who[rows], place[rows])
                          for name, rows in zip(names_of_trials, parts, strict=True)), strict=True)  # fmt: skip
    if set(steps) != {1}:
        every = ", ".join(str(step) for step in sorted(set(steps)))
        notes.append(f"The file has every {every}. frame number only; --rate counts the frames that are there.")
    return _Content(list(trials), rate, unit, notes)


def _places(source: _Source, table: pd.DataFrame, names: dict[str, str], notes: list[str]) -> tuple[np.ndarray, str]:
    """Positions (N, 2) in a plane, and their unit where it is known."""
    east, north = (_numbers(source, table[names[axis]]) for axis in ("x", "y"))
    if all(_plain(names[axis]) in ON_EARTH[axis] for axis in ("x", "y")):
        try:
            place, note = projected(east, north)
        except ValueError as error:
            raise source.error(f": {error}.") from None
        notes.append(note)
        return place, "m"
    absent = (east == ABSENT) & (north == ABSENT)
    if absent.sum() > 1:
        notes.append(f"{int(absent.sum()):,} rows have x = y = {ABSENT:g}: these positions count as missing.")
        east, north = (np.where(absent, np.nan, values) for values in (east, north))
    return np.stack([east, north], axis=-1), ""


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _doubts_about(table: pd.DataFrame, names: dict[str, str]) -> list[str]:
    """What may have been guessed wrongly: other columns that could be the identity, and a third dimension."""
    others = [name for name in table.columns if name not in names.values() and WHO.search(_plain(name))
              and "frame" not in _plain(name) and 1 < table[name].nunique() < len(table) / 2]  # fmt: skip
    notes = []
    if others:
        notes.append(f"{', '.join(map(repr, others))} may be the identity as well: --columns id={others[-1]} takes it.")
    z = next((name for name in table.columns if _plain(name) in ("z", "posz", "positionz")), None)
    if z is not None and table[z].nunique() > 1:
        notes.append(f"The column {z!r} is left out: tracks are in a plane.")
    return notes


def _rate_of_frames(moment: np.ndarray, time: pd.Series, notes: list[str]) -> float | None:
    """Frames a second of a table that has both: the slope of frames over times, if these are seconds."""
    seconds = pd.to_numeric(time, errors="coerce").to_numpy(dtype=float)
    known = np.isfinite(seconds)
    frames, first = np.unique(moment[known], return_index=True)
    steps, spans = np.diff(frames), np.diff(seconds[known][first])
    ahead = spans > 0  # times may begin again in another trial
    if not ahead.any():
        return None
    # what stands between two frames of the table counts as one, as in `_one_trial`
    rate = float(steps[ahead].sum() / spans[ahead].sum() / max(1.0, np.gcd.reduce(steps.astype(np.int64))))
    rate = round(rate) if abs(rate / max(round(rate), 1) - 1) < 1e-3 else rate
    notes.append(f"{rate:g} frames a second are those of the column {time.name!r}, taken as seconds.")
    return rate


def _column_names(source: _Source, header: list[str], columns: dict[str, str]) -> dict[str, str]:
    """What the table calls our columns: as the user says, or by an alias."""
    for ours, theirs in columns.items():
        if ours not in ALIASES:
            raise TrackError(f"columns have {ours!r}: use {', '.join(ALIASES)}.")
        if theirs not in header:
            raise source.error(f" has no column {theirs!r}: it has {_quoted(', '.join(header))}.")
    known = {_plain(name): name for name in reversed(header)}
    names = dict(columns)
    on_earth = not {"x", "y"} & {*known, *columns} and all(set(known) & set(ON_EARTH[axis]) for axis in "xy")
    for ours, aliases in {**ALIASES, **(ON_EARTH if on_earth else {})}.items():
        name = next((known[alias] for alias in aliases if alias in known and known[alias] not in names.values()), None)
        if ours not in names and name is not None:
            names[ours] = name
    missing = [ours for ours in ("id", "x", "y") if ours not in names]
    missing += [] if "frame" in names or "time" in names else ["frame"]
    if missing:
        raise source.error(f" has no column for {', '.join(missing)} (it has {_quoted(', '.join(header))}): name it, "
                           f"such as --columns {missing[0]}=THEIRS.")  # fmt: skip
    return names


def _numbers(source: _Source, cells: pd.Series, whole: bool = False, needed: bool = False) -> np.ndarray:
    """A column as numbers; what is neither a number nor missing is an error with its line."""
    values = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=float)
    empty = (cells.isna() | cells.astype(str).str.strip().str.lower().isin(MISSING)).to_numpy()
    wrong = np.isnan(values) & (~empty | needed)
    if whole:
        wrong |= np.isfinite(values) & (values != np.round(values)) | (np.abs(values) > 2**53)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise source.error(f", line {cells.index[row]}: {cells.name} is {_quoted(cells.iloc[row])}, not a "
                           f"{'whole ' if whole else ''}number ({int(wrong.sum())} such rows).")  # fmt: skip
    return values


def in_order(name: str) -> tuple[bool, int, str]:
    """Numbers by their size, then names by the alphabet."""
    number = name.isascii() and name.isdigit() and len(name) < 19
    return not number, int(name) if number else 0, name


def _one_trial(source: _Source, name: str, moment: np.ndarray, who: np.ndarray, place: np.ndarray) -> tuple[Trial, int]:
    """(a trial, how many frame numbers lie between two frames)."""
    ids = sorted(map(str, np.unique(who)), key=in_order)
    column = pd.Index(ids).get_indexer(who)
    numbers = np.unique(moment)
    step = max(1, int(np.gcd.reduce(np.diff(numbers).astype(np.int64)))) if len(numbers) > 1 else 1
    row = ((moment - numbers[0]) / step).astype(np.int64)
    frames = int(row.max()) + 1
    _check_size(source, frames, len(ids))
    position = np.full((frames * len(ids), 2), np.nan)
    places, counts = np.unique(row * len(ids) + column, return_counts=True)
    if (counts > 1).any():
        row_twice, twice = divmod(int(places[np.argmax(counts > 1)]), len(ids))
        raise source.error(f": individual {_quoted(ids[twice])} is twice in frame {int(numbers[0] + step * row_twice)} "
                           f"of trial {_quoted(name)}: name the column of trials, or delete one row.")  # fmt: skip
    position[row * len(ids) + column] = place
    return Trial(name, tuple(ids), _without_halves(position.reshape(frames, len(ids), 2))), step


READERS = {".npy": _read_npy, ".h5": _read_hdf5, ".hdf5": _read_hdf5, ".nc": _read_netcdf,
           ".csv": _read_table, ".tsv": _read_table, ".txt": _read_table}  # fmt: skip
