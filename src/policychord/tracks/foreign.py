"""Tables of other programs, with the columns of ours: DeepLabCut, SLEAP, TrackMate, PeTrack, Movebank.

Each function takes a table of text and returns it with columns that are known, or None if it is of another kind.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

LIKELY = 0.6  # DeepLabCut's own default: keypoints below are not drawn, and not used here
EARTH = 6_371_008.8  # m, mean radius
FLAT = 0.01  # relative error of distances from which a projection is doubted
OFF_GRID = 0.1  # of the time between two fixes
ABSENT = -1.0  # what some trackers write for both coordinates of those who are not there


class Turned(NamedTuple):
    """A long table, what it calls our columns, and what the file says of itself."""

    table: pd.DataFrame
    columns: dict[str, str]
    unit: str = ""
    notes: tuple[str, ...] = ()


def turned(table: pd.DataFrame) -> Turned | None:
    """A table of a program that is known."""
    return next((found for read in (_deeplabcut, _sleap, _trackmate) if (found := read(table)) is not None), None)


def _deeplabcut(table: pd.DataFrame) -> Turned | None:
    """Rows of headers (scorer, individuals, bodyparts, coords), then one for each frame; means of likely keypoints."""
    if table.columns[0] != "scorer":
        return None
    heads = {str(row.iloc[0]): row.iloc[1:].to_numpy() for _, row in table.iloc[:3].iterrows()}
    if "coords" not in heads or "bodyparts" not in heads:
        return None
    body = table.iloc[3 if "individuals" in heads else 2 :]
    values = body.iloc[:, 1:].apply(pd.to_numeric, errors="coerce").to_numpy(float)
    who, axis = heads.get("individuals", np.full(values.shape[1], "0")), heads["coords"]
    parts = []
    for name in dict.fromkeys(who.tolist()):
        x, y, likely = (values[:, (who == name) & (axis == part)] for part in ("x", "y", "likelihood"))
        unlikely = likely < LIKELY if likely.shape == x.shape else np.zeros(x.shape, bool)
        place = [_mean(np.where(unlikely, np.nan, part)) for part in (x, y)]
        parts.append(pd.DataFrame({"frame": body.iloc[:, 0], "id": name, "x": place[0], "y": place[1]}))
    note = f"Positions are the means of DeepLabCut's keypoints with a likelihood of {LIKELY:g} or more."
    return Turned(pd.concat(parts), {"frame": "frame", "id": "id", "x": "x", "y": "y"}, "px", (note,))


def _sleap(table: pd.DataFrame) -> Turned | None:
    """SLEAP's analysis CSV: track, frame_idx, and x and y of each node."""
    if not {"track", "frame_idx", "instance.score"} <= set(table.columns):
        return None
    nodes = [name[:-2] for name in table.columns if name.endswith(".x") and f"{name[:-2]}.y" in table.columns]
    place = {axis: _mean(np.stack([pd.to_numeric(table[f"{node}.{axis}"], errors="coerce") for node in nodes], axis=1))
             for axis in "xy"}  # fmt: skip
    whole, dropped = _tracked(table.assign(**place), "track")
    notes = (f"Positions are the means of {len(nodes)} nodes.", *dropped)
    return Turned(whole, {"frame": "frame_idx", "id": "track", "x": "x", "y": "y"}, "px", notes)


def _trackmate(table: pd.DataFrame) -> Turned | None:
    """TrackMate's table of spots, with or without its three more rows of headers; its ID is a spot, not a track."""
    if not {"TRACK_ID", "POSITION_X", "POSITION_Y", "FRAME"} <= set(table.columns):
        return None
    numbers = pd.to_numeric(table["FRAME"], errors="coerce").notna()
    heads = table[~numbers]
    units = dict(heads.iloc[-1]) if len(heads) else {}
    columns = {"frame": "FRAME", "id": "TRACK_ID", "x": "POSITION_X", "y": "POSITION_Y"}
    if "sec" in str(units.get("POSITION_T", "")) and "POSITION_T" in table.columns:
        columns["time"] = "POSITION_T"
    whole, dropped = _tracked(table[numbers], "TRACK_ID")
    return Turned(whole, columns, str(units.get("POSITION_X", "")).strip("() ")[:12], dropped)


def _tracked(table: pd.DataFrame, name: str) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Without the detections that belong to no track, and what to say about them."""
    there = ~table[name].str.strip().str.lower().isin(("", "none", "nan"))
    left = int((~there).sum())
    return table[there], (f"{left:,} detections belong to no track and are left out.",) if left else ()


def _mean(values: np.ndarray) -> np.ndarray:
    """Of the columns that are there; NaN if none is."""
    count = np.isfinite(values).sum(axis=1)
    return np.where(count > 0, np.nansum(values, axis=1) / np.maximum(count, 1), np.nan)


# ------------------------------------------------------------------------------------------------- PeTrack


def comments_of(lines: Sequence[str]) -> tuple[list[str], float | None, str]:
    """(names of the columns, frames a second, unit) in the comments of PeTrack and PedPy: `# id frame x/m y/m z/m`."""
    names, rate, unit = list[str](), None, ""
    for line in lines:
        words = line.lstrip("# \t").split()
        lower = [word.lower() for word in words]
        if match := re.match(r"#\s*framerate:?\s*([0-9.]+)", line, re.IGNORECASE):
            rate = float(match[1])
        elif {word.partition("/")[0] for word in lower} >= {"frame", "x", "y"}:
            names = [word.partition("/")[0] for word in words]
            unit = next((word.partition("/")[2] for word in lower if word.startswith("x/")), "")
    return names, rate, unit


# ------------------------------------------------------------------------------------------------- places and times


def projected(longitude: np.ndarray, latitude: np.ndarray) -> tuple[np.ndarray, str]:
    """Metres east and north of the middle, (N, 2), on the plane that touches there; and a note."""
    known = np.isfinite(longitude) & np.isfinite(latitude)
    if not known.any() or np.abs(latitude[known]).max() > 90 or np.abs(longitude[known]).max() > 360:
        raise ValueError("longitudes and latitudes are degrees, up to 360 and 90")
    east = np.degrees(np.unwrap(np.radians(np.where(known, longitude, longitude[known][0]))))
    middle = np.median(east[known]), np.median(latitude[known])
    place = EARTH * np.radians(np.stack([(east - middle[0]) * np.cos(np.radians(middle[1])), latitude - middle[1]], -1))
    place[~known] = np.nan
    spread = np.radians(np.abs(latitude[known] - middle[1]).max())
    error = spread * np.tan(np.radians(abs(middle[1])))
    doubt = f"; distances at the edge are wrong by up to {100 * error:.0f}%" if error > FLAT else ""
    return place, f"Longitudes and latitudes are projected to metres around {middle[1]:.4f}, {middle[0]:.4f}{doubt}."


def seconds_of(cells: pd.Series) -> pd.Series:
    """Times as seconds: timestamps (ISO 8601) are counted from the first one, numbers stay as they are."""
    if pd.to_numeric(cells, errors="coerce").notna().any():
        return cells
    moments = pd.to_datetime(cells, format="ISO8601", utc=True, errors="coerce")
    if not moments.notna().any():
        return cells
    return ((moments - moments.min()) / pd.Timedelta(seconds=1)).rename(cells.name)


def frames_of(time: np.ndarray, who: np.ndarray, name: str) -> tuple[np.ndarray, float | None, list[str]]:
    """(frame of each row, frames a second, notes) from times, by the usual step of an individual."""
    order = np.lexsort((time, who))
    steps = np.diff(time[order])[who[order][1:] == who[order][:-1]]
    steps = steps[steps > 0]
    if not len(steps):
        return time, None, []
    rate = 1.0 / float(np.median(steps))
    place = (time - np.nanmin(time)) * rate
    frame, notes = np.round(place), [f"Frames are the times {name!r} at {rate:.6g} a second."]
    if (off := float((np.abs(place - frame) > OFF_GRID).mean())) > 0.01:
        notes.append(f"{100 * off:.0f}% of the times are more than a tenth of a step off that grid.")
    if rate < 1 and np.median(steps) >= 5 and name.lower() in ("t", "time", "ms", "times"):
        notes.append(f"Times are taken as seconds, {np.median(steps):g} from one to the next: if they are "
                     f"milliseconds, pass --rate {1000 * rate:g}.")  # fmt: skip
    return frame, rate, notes
