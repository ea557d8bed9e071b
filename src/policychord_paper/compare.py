"""Two runs side by side: which verdicts, measured numbers and figures moved, and what was different beforehand."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import BaseModel, BeforeValidator, TypeAdapter, ValidationError

from policychord.wording import in_words

from .claim import Quantity, Verdict

RECORD = re.compile(r'<script type="application/json" id="record">(.*?)</script>', re.DOTALL)
NOT_FOUND = "pass a run's folder, its report.html or its claims.json."
NO_CLAIMS = (
    "policychord reproduce writes them. Runs of other commands (policychord quadrotor, flock, choices fit and so on) "
    "judge no claims: compare them by the tables that they print and write."
)
STEP = " / "  # on the way to a value inside others
TEXTS = ("statement", "paper", "reported", "rule")


def _quantities(measured: Any) -> Any:
    """Measured quantities. Version 0.1.0 wrote bare numbers, tables of them, and text, which is left out."""
    if not isinstance(measured, dict):
        return measured
    numbers: dict[str, Any] = {}
    for name, value in measured.items():
        if isinstance(value, dict) and "value" in value:
            numbers[name] = value
        else:
            numbers |= {path: [number] for path, number in _flat(value, name) if not isinstance(number, str)}
    return numbers


class ClaimRecord(BaseModel):
    """A claim as claims.json has it."""

    study: str = ""
    id: str
    statement: str
    paper: str
    reported: str
    measured: Annotated[dict[str, Quantity], BeforeValidator(_quantities)]
    rule: str
    holds: dict[str, bool] = {}
    verdict: Verdict


_CLAIMS = TypeAdapter(list[ClaimRecord])


class _Run(NamedTuple):
    """What is read of a run; without its environment or figures these are not compared."""

    claims: dict[str, ClaimRecord]  # by id
    environment: dict[str, Any] | None
    figures: dict[str, Path]  # "study/name" -> PNG
    texts: int  # measured values that are text, as version 0.1.0 wrote some


class _Change(NamedTuple):
    """A value that is not the same in both; None where a run does not have it."""

    name: str
    a: Any
    b: Any


class _MovedQuantity(NamedTuple):
    """A measured quantity that differs by more than the tolerance: its value, total, interval or unit."""

    claim: str
    name: str
    a: Quantity | None
    b: Quantity | None
    difference: float | None = None  # b - a, of the number that moved most
    relative: float | None = None  # of it, to the larger of both


class _Figure(NamedTuple):
    """A drawn figure: identical, different, resized, or in one run only."""

    name: str
    state: str
    share: float  # of pixels that differ


class RunComparison(NamedTuple):
    """Everything that is not the same."""

    claims: int  # in both runs
    verdicts: list[_Change]
    parts: list[_Change]  # of rules, that hold in one run only
    moved: list[_MovedQuantity]
    only_a: list[str]
    only_b: list[str]
    wording: list[_Change]
    figures: list[_Figure]
    settings: list[_Change]
    seeds: list[_Change]
    versions: list[_Change]
    machine: list[_Change]
    notes: list[str]  # what could not be compared


def compare(a: Path, b: Path, rtol: float = 1e-9) -> RunComparison:
    """What changed from run `a` to run `b`; numbers count as moved beyond the relative tolerance."""
    if not (math.isfinite(rtol) and rtol >= 0):
        raise ValueError(f"rtol = {rtol}: pass a tolerance of zero or more.")
    first, other = read_run(a), read_run(b)
    both = [name for name in first.claims if name in other.claims]
    pairs = [(name, first.claims[name], other.claims[name]) for name in both]
    before = _split(first.environment or {})
    after = _split(other.environment or {})
    known = first.environment is not None and other.environment is not None
    changed = {part: _changes(before[part], after[part]) if known else [] for part in before}
    return RunComparison(
        claims=len(both),
        verdicts=[_Change(name, x.verdict, y.verdict) for name, x, y in pairs if x.verdict != y.verdict],
        parts=[c._replace(name=f"{name} {c.name}") for name, x, y in pairs for c in _changes(x.holds, y.holds)],
        moved=[moved for name, x, y in pairs for moved in _moved(name, x.measured, y.measured, rtol)],
        only_a=[name for name in first.claims if name not in other.claims],
        only_b=[name for name in other.claims if name not in first.claims],
        wording=[
            _Change(f"{name} {text}", *texts)
            for name, x, y in pairs
            for text in TEXTS
            if len({*(texts := (getattr(x, text), getattr(y, text)))}) > 1
        ],
        figures=_figures(first.figures, other.figures) if first.figures and other.figures else [],
        **changed,
        notes=[*_notes("first", first), *_notes("second", other)],
    )


def read_run(path: Path) -> _Run:
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
        raise ValueError(f"{folder} holds neither claims.json nor report.html: {NO_CLAIMS}")
    if environment is not None and not isinstance(environment, dict):
        raise ValueError(f"environment.json in {folder} holds no names with values: run the studies again.")
    drawn = {str(png.relative_to(folder / "figures").with_suffix("")): png for png in folder.glob("figures/**/*.png")}
    by_id = _by_id(read_claims(claims, path), path)
    texts = sum(isinstance(value, str) for claim in claims for value in claim["measured"].values())
    return _Run(by_id, environment, dict(sorted(drawn.items())), texts)


def _compare_pixels(name: str, a: Path, b: Path) -> _Figure:
    """Two PNG files, pixel by pixel."""
    from PIL import Image, UnidentifiedImageError

    if a.read_bytes() == b.read_bytes():
        return _Figure(name, "identical", 0.0)
    pixels = []
    for path in (a, b):
        try:
            with Image.open(path) as image:
                pixels.append(np.asarray(image.convert("RGBA")))
        except (UnidentifiedImageError, OSError, SyntaxError) as error:
            raise ValueError(f"{path} is no readable PNG ({error}): draw the figures again.") from None
    if pixels[0].shape != pixels[1].shape:
        return _Figure(name, "resized", 1.0)
    share = float((pixels[0] != pixels[1]).any(-1).mean())
    return _Figure(name, "different" if share else "identical", share)


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # broken, not text, or nested without end
        raise ValueError(
            f"{path} is not valid JSON ({error}): run the studies again, or compare another run."
        ) from None


def _from_page(path: Path) -> tuple[Any, Any]:
    try:
        match = RECORD.search(path.read_text(encoding="utf-8"))
        record = json.loads(match[1]) if match else None
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict) or "claims" not in record:
        raise ValueError(f"{path} holds no record of a run: pass a report.html that policychord wrote.")
    return record["claims"], record.get("environment")


def read_claims(claims: Any, path: Path) -> list[ClaimRecord]:
    """Claims as a file has them, checked."""
    if not isinstance(claims, list):
        raise ValueError(f"{path} holds a {type(claims).__name__} where a list of claims should be: {NOT_FOUND}")
    try:
        return _CLAIMS.validate_python(claims)
    except ValidationError as error:
        raise ValueError(f"the claims in {path} are not of a known form ({in_words(error)}): {NOT_FOUND}") from None


def _by_id(records: list[ClaimRecord], path: Path) -> dict[str, ClaimRecord]:
    by_id = {record.id: record for record in records}
    if len(by_id) < len(records):
        twice = next(record.id for record in records if by_id[record.id] is not record)
        raise ValueError(f"{path} holds claim {twice} twice: compare one run at a time.")
    return by_id


def _flat(value: Any, above: str = "") -> Iterator[tuple[str, Any]]:
    """Every single value with the way to it."""
    if isinstance(value, dict | list) and value:
        parts = value.items() if isinstance(value, dict) else enumerate(value, 1)
        for name, part in parts:
            yield from _flat(part, f"{above}{STEP}{name}" if above else str(name))
    else:
        yield above, value


def _moved(claim: str, a: Mapping[str, Quantity], b: Mapping[str, Quantity], rtol: float) -> Iterator[_MovedQuantity]:
    for name in [*a, *(name for name in b if name not in a)]:
        x, y = a.get(name), b.get(name)
        before, other = _numbers(x), _numbers(y)
        if x is None or y is None or x.unit != y.unit or before.keys() != other.keys():
            yield _MovedQuantity(claim, name, x, y)
            continue
        gap = max((_gap(before[k], other[k]) for k in before), key=lambda gap: gap[1])
        if gap[1] > rtol:
            yield _MovedQuantity(claim, name, x, y, *(size if math.isfinite(size) else None for size in gap))


def _numbers(it: Quantity | None) -> dict[str, float]:
    """Every number of a quantity, by what it is."""
    if it is None:
        return {}
    low, high = it.interval or (None, None)
    numbers = {"value": it.value, "of": it.of, "low": low, "high": high}
    return {name: number for name, number in numbers.items() if number is not None}


def _gap(x: float, y: float) -> tuple[float, float]:
    """y - x, as it is and relative to the larger of both."""
    if x == y or (math.isnan(x) and math.isnan(y)):
        return 0.0, 0.0
    if not (math.isfinite(x) and math.isfinite(y)):
        return math.inf, math.inf
    return y - x, abs(y - x) / max(abs(x), abs(y))


def _figures(a: dict[str, Path], b: dict[str, Path]) -> list[_Figure]:
    return [
        _compare_pixels(name, a[name], b[name])
        if name in a and name in b
        else _Figure(name, "only in the first" if name in a else "only in the second", 1.0)
        for name in sorted(a | b)
    ]


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


def _changes(a: dict[str, Any], b: dict[str, Any]) -> list[_Change]:
    return [_Change(name, a.get(name), b.get(name)) for name in a | b if a.get(name) != b.get(name)]


def _notes(which: str, run: _Run) -> list[str]:
    lacks = []
    if run.environment is None:
        lacks.append(f"the {which} run has no environment.json: settings, seeds and versions were not compared.")
    if not run.figures:
        lacks.append(f"the {which} run has no figures in its folder: figures were not compared.")
    if run.texts:
        lacks.append(f"the {which} run is of version 0.1.0: {run.texts} values that are text were not compared.")
    return lacks
