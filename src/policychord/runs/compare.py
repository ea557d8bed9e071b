"""Two runs side by side: which verdicts, measured numbers and figures moved, and what was different beforehand."""

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

NUMBER = re.compile(r"(?:(?<![\w.)\]])[-+])?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+|(?=\.\d))(?:\.\d+)?(?:[eE][-+]?\d+)?")
RECORD = re.compile(r'<script type="application/json" id="record">(.*?)</script>', re.DOTALL)
NOT_FOUND = "pass a run's folder, its report.html or its claims.json."
CLAIM = {"id": str, "statement": str, "paper": str, "reported": str, "measured": dict, "rule": str, "verdict": str}
STEP = " / "  # on the way to a value inside others
TEXTS = ("statement", "paper", "reported", "rule")


class Run(NamedTuple):
    """What is read of a run; without its environment or figures these are not compared."""

    path: Path
    claims: dict[str, dict[str, Any]]  # by id
    environment: dict[str, Any] | None
    figures: dict[str, Path]  # "study/name" -> PNG


class Change(NamedTuple):
    """A value that is not the same in both; None where a run does not have it."""

    name: str
    a: Any
    b: Any


class Moved(NamedTuple):
    """A measured number that differs by more than the tolerance, or words that differ."""

    claim: str
    name: str
    a: Any
    b: Any
    difference: float | None  # b - a; the largest, where a text holds several numbers
    relative: float | None  # of it, to the larger of both


class Figure(NamedTuple):
    """A drawn figure: identical, different, resized, or in one run only."""

    name: str
    state: str
    share: float  # of pixels that differ


class Comparison(NamedTuple):
    """Everything that is not the same."""

    claims: int  # in both runs
    verdicts: list[Change]
    moved: list[Moved]
    only_a: list[str]
    only_b: list[str]
    wording: list[Change]
    figures: list[Figure]
    settings: list[Change]
    seeds: list[Change]
    versions: list[Change]
    machine: list[Change]
    notes: list[str]  # what could not be compared


def compare(a: Path, b: Path, rtol: float = 1e-9) -> Comparison:
    """What changed from run `a` to run `b`; numbers count as moved beyond the relative tolerance."""
    if not (math.isfinite(rtol) and rtol >= 0):
        raise ValueError(f"rtol = {rtol}: pass a tolerance of zero or more.")
    one, other = read(a), read(b)
    both = [name for name in one.claims if name in other.claims]
    pairs = [(name, one.claims[name], other.claims[name]) for name in both]
    before = _split(one.environment or {})
    after = _split(other.environment or {})
    known = one.environment is not None and other.environment is not None
    changed = {part: _changes(before[part], after[part]) if known else [] for part in before}
    return Comparison(
        claims=len(both),
        verdicts=[Change(name, x["verdict"], y["verdict"]) for name, x, y in pairs if x["verdict"] != y["verdict"]],
        moved=[moved for name, x, y in pairs for moved in _moved(name, x["measured"], y["measured"], rtol)],
        only_a=[name for name in one.claims if name not in other.claims],
        only_b=[name for name in other.claims if name not in one.claims],
        wording=[Change(f"{name} {t}", x[t], y[t]) for name, x, y in pairs for t in TEXTS if x[t] != y[t]],
        figures=_figures(one.figures, other.figures) if one.figures and other.figures else [],
        **changed,
        notes=[*_notes("first", one), *_notes("second", other)],
    )


def read(path: Path) -> Run:
    """A run from its folder, its page or its claims; a page that was sent alone holds both itself."""
    if not path.exists():
        raise ValueError(f"{path} does not exist: {NOT_FOUND}")
    folder = path if path.is_dir() else path.parent
    page = folder / "report.html" if path.is_dir() else path
    if path.is_file() and path.suffix in (".html", ".htm"):
        claims, environment = _from_page(page)
    elif (path if path.is_file() else folder / "claims.json").is_file():
        claims = _json(path if path.is_file() else folder / "claims.json")
        beside = folder / "environment.json"
        environment = _json(beside) if beside.is_file() else None
    elif page.is_file():
        claims, environment = _from_page(page)
    else:
        raise ValueError(f"{folder} holds neither claims.json nor report.html: {NOT_FOUND}")
    if environment is not None and not isinstance(environment, dict):
        raise ValueError(f"environment.json in {folder} holds no names with values: run the studies again.")
    drawn = {str(png.relative_to(folder / "figures").with_suffix("")): png for png in folder.glob("figures/**/*.png")}
    return Run(path, _checked(claims, path), environment, dict(sorted(drawn.items())))


def numbers_in(text: str) -> tuple[list[str], list[float]]:
    """The words between numbers, and the numbers."""
    found = [float(n.replace(",", "")) for n in NUMBER.findall(text)]
    return NUMBER.split(text), found


def same_pixels(a: Path, b: Path) -> Figure:
    """Two PNG files, pixel by pixel; the name is left to the caller."""
    from PIL import Image, UnidentifiedImageError

    if a.read_bytes() == b.read_bytes():
        return Figure("", "identical", 0.0)
    pixels = []
    for path in (a, b):
        try:
            with Image.open(path) as image:
                pixels.append(np.asarray(image.convert("RGBA")))
        except (UnidentifiedImageError, OSError, SyntaxError) as error:
            raise ValueError(f"{path} is no readable PNG ({error}): draw the figures again.") from None
    if pixels[0].shape != pixels[1].shape:
        return Figure("", "resized", 1.0)
    share = float((pixels[0] != pixels[1]).any(-1).mean())
    return Figure("", "different" if share else "identical", share)


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path} is not valid JSON ({error}): run the studies again, or compare another run."
        ) from None


def _from_page(path: Path) -> tuple[Any, Any]:
    try:
        found = RECORD.search(path.read_text(encoding="utf-8"))
        record = json.loads(found[1]) if found else None
    except (json.JSONDecodeError, UnicodeDecodeError):
        record = None
    if not isinstance(record, dict) or "claims" not in record:
        raise ValueError(f"{path} holds no record of a run: pass a report.html that policychord wrote.")
    return record["claims"], record.get("environment")


def _checked(claims: Any, path: Path) -> dict[str, dict[str, Any]]:
    if not isinstance(claims, list):
        raise ValueError(f"{path} holds a {type(claims).__name__} where a list of claims should be: {NOT_FOUND}")
    by_id = {}
    for k, claim in enumerate(claims):
        if not isinstance(claim, dict):
            raise ValueError(f"claim {k} in {path} is a {type(claim).__name__}: {NOT_FOUND}")
        for field, kind in CLAIM.items():
            if not isinstance(claim.get(field), kind):
                raise ValueError(f"claim {k} in {path} has no {field}: is it the claims.json of a run?")
        if claim["id"] in by_id:
            raise ValueError(f"{path} holds claim {claim['id']} twice: compare one run at a time.")
        by_id[claim["id"]] = claim
    return by_id


def _flat(value: Any, above: str = "") -> Iterator[tuple[str, Any]]:
    """Every single value with the way to it."""
    if isinstance(value, dict | list) and value:
        parts = value.items() if isinstance(value, dict) else enumerate(value, 1)
        for name, part in parts:
            yield from _flat(part, f"{above}{STEP}{name}" if above else str(name))
    else:
        yield above, value


def _moved(claim: str, a: dict[str, Any], b: dict[str, Any], rtol: float) -> Iterator[Moved]:
    one, other = dict(_flat(a)), dict(_flat(b))
    for name in [*one, *(n for n in other if n not in one)]:
        if name not in one or name not in other:
            yield Moved(claim, name, one.get(name), other.get(name), None, None)
            continue
        x, y = one[name], other[name]
        if x == y and type(x) is type(y):
            continue
        if _is_number(x) and _is_number(y):
            gaps = [_gap(x, y)]
        elif isinstance(x, str) and isinstance(y, str):
            (words, found), (others, theirs) = numbers_in(x), numbers_in(y)
            if words != others or len(found) != len(theirs):
                yield Moved(claim, name, x, y, None, None)
                continue
            gaps = [_gap(p, q) for p, q in zip(found, theirs, strict=True)]
        else:
            yield Moved(claim, name, x, y, None, None)
            continue
        difference, relative = max(gaps, key=lambda gap: gap[1])
        if relative > rtol:
            yield Moved(claim, name, x, y, *(g if math.isfinite(g) else None for g in (difference, relative)))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _gap(x: float, y: float) -> tuple[float, float]:
    """y - x, as it is and relative to the larger of both."""
    if x == y or (math.isnan(x) and math.isnan(y)):
        return 0.0, 0.0
    if not (math.isfinite(x) and math.isfinite(y)):
        return math.inf, math.inf
    return y - x, abs(y - x) / max(abs(x), abs(y))


def _figures(a: dict[str, Path], b: dict[str, Path]) -> list[Figure]:
    found = []
    for name in sorted(a | b):
        if name in a and name in b:
            found.append(same_pixels(a[name], b[name])._replace(name=name))
        else:
            found.append(Figure(name, "only in the first" if name in a else "only in the second", 1.0))
    return found


def _split(environment: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """An environment's values by kind; how long it took and with how many workers changes nothing."""

    def some(*names: str) -> dict[str, Any]:
        return {name: environment[name] for name in names if name in environment}

    chosen = some("quick", "data")
    for study, settings in dict(environment.get("settings") or {}).items():
        chosen |= dict(_flat(settings, study))
    seeds = some("seed") | {name: value for name, value in chosen.items() if name.endswith(f"{STEP}seed")}
    return {
        "settings": {name: value for name, value in chosen.items() if name not in seeds},
        "seeds": seeds,
        "versions": some("policychord", "python") | dict(environment.get("packages") or {}),
        "machine": some("platform", "processor", "cores", "memory_gib", "devices"),
    }


def _changes(a: dict[str, Any], b: dict[str, Any]) -> list[Change]:
    return [Change(name, a.get(name), b.get(name)) for name in a | b if a.get(name) != b.get(name)]


def _notes(which: str, run: Run) -> list[str]:
    lacks = []
    if run.environment is None:
        lacks.append(f"the {which} run has no environment.json: settings, seeds and versions were not compared.")
    if not run.figures:
        lacks.append(f"the {which} run has no figures beside it: figures were not compared.")
    return lacks
