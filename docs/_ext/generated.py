"""Parts of pages that are made from the code and from records, and committed so that they can be read on a code host.

What stands between `<!-- generated: speed -->` and `<!-- end -->` is what the function of that name returns, in
Markdown. `python docs/_ext/generated.py` (`make tables`) writes these parts and the figures made from records. A test
compares the pages with the code; a build of the site makes the parts anew.
"""

import inspect
import json
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_origin

from docstrings import fields_of, summary
from pydantic import BaseModel
from pydantic_core import PydanticUndefined
from sphinx.application import Sphinx

if TYPE_CHECKING:
    from policychord_paper.compare import ClaimRecord

PART = re.compile(
    r"^(<!-- generated: (\w+)((?:[ \n][^\s>]+)*)[ \n]-->)\n(.*?)^(<!-- end -->)$", re.DOTALL | re.MULTILINE
)
AT_BUILD = ("commands",)  # too long to be committed: `--help` says the same
REMARK = re.compile(r"^(policychord\b.*?\S\s\s+)([^\s\\].*)$")  # words behind an example
DOCS = Path(__file__).parent.parent
RECORD = DOCS / "explanation" / "full_run.json"
VERDICTS = {"reproduced": "reproduced", "partly": "**partly**", "not reproduced": "**not reproduced**"}

# Words of rules that changed since the record was made, and nothing else of these rules. A new record needs none.
REWORDED = {"return within the radius `recovered` and": "return to within 0.25 m of the path and"}


# ------------------------------------------------------------- the command


def commands() -> str:
    """Every command of the real tree: what it is for, its arguments and options, and its examples."""
    from typer.main import get_command

    from policychord.cli import app, load_commands

    load_commands()  # those of the paper too
    return "\n".join(_pages(get_command(app), ["policychord"]))


def _pages(command: Any, path: list[str]) -> Iterator[str]:
    import typer

    context = typer.Context(command, info_name=path[-1])
    level = min(len(path) + (len(path) == 1), 3)
    yield f"{'#' * level} `{' '.join(path)}`\n"
    yield from _help(command.help or "")
    below = command.list_commands(context) if hasattr(command, "list_commands") else []
    params = [param for param in command.get_params(context) if not getattr(param, "hidden", False)]
    arguments = [param for param in params if param.param_type_name == "argument"]
    options = [param for param in params if param.param_type_name == "option" and "--help" not in param.opts]
    if not below:
        shown = [_placeholder(p) if p.required else f"[{_placeholder(p)}]" for p in arguments]
        yield f"```text\n{' '.join([*path, *shown, '[OPTIONS]'])}\n```\n"
    rows = [(f"`{_placeholder(p)}`", _meaning(p)) for p in arguments]
    rows += [(f"`{' '.join([_switches(p), p.metavar or '']).strip()}`", _meaning(p)) for p in options]
    if rows:
        yield "\n".join(["| | |", "|---|---|", *(f"| {name} | {_cell(words)} |" for name, words in rows)]) + "\n"
    yield from _foot(command.epilog or "")
    for name in below:
        yield from _pages(command.get_command(context, name), [*path, name])


def _placeholder(param: Any) -> str:
    return param.metavar or param.name.upper()


def _switches(param: Any) -> str:
    return " / ".join([", ".join(param.opts), *param.secondary_opts])


def _meaning(param: Any) -> str:
    words = _plain(param.help or "")
    said = "[default" in words or isinstance(param.default, bool) or param.default in (None, "")
    return words if said or callable(param.default) else f"{words} [default: {param.default}]"


def _help(words: str) -> Iterator[str]:
    for paragraph in inspect.cleandoc(_plain(words)).split("\n\n"):
        as_it_stands = "\n " in paragraph
        yield f"```text\n{paragraph}\n```\n" if as_it_stands else _escaped(paragraph.replace("\n", " ")) + "\n"


def _foot(words: str) -> Iterator[str]:
    """The title in bold, the commands below it, then what is said after them."""
    for paragraph in _plain(words).split("\n\n"):
        rows = paragraph.splitlines()
        lines = [REMARK.sub(r"\1# \2", row.removeprefix("  ")) for row in rows if row.startswith("  ")]
        if lines:
            yield f"{rows[0]}:\n\n```sh\n" + "\n".join(lines) + "\n```\n"
        elif paragraph.strip():
            yield _escaped(" ".join(rows)) + "\n"


def _plain(words: str) -> str:
    """Without the marks for colours on a terminal."""
    return re.sub(r"(?<!\\)\[/?[a-z ]*\]", "", words).replace("\\[", "[").replace("\\]", "]")


def _escaped(words: str) -> str:
    """Options as code, so that two dashes stay two."""
    return re.sub(r"(?<![\w`-])(--[a-z][\w-]*)", r"`\1`", words.replace("<", "&lt;").replace("*", "\\*"))


def _cell(words: str) -> str:
    return _escaped(" ".join(words.split()).replace("|", "\\|"))


# ------------------------------------------------------------- the Python API


def names(*entries: str) -> str:
    """A table of public names with their summaries; the site shows their parameters below it."""
    return _summaries(entries, "`{0}`")


def _summaries(entries: tuple[str, ...], link: str) -> str:
    paths = [entry.partition(":")[0] for entry in entries]
    rows = [f"| {link.format(path.rpartition('.')[2], path)} | {_cell(summary(public(path)))} |" for path in paths]
    return "\n".join(["| name | what it is |", "|---|---|", *rows]) + "\n"


def public(path: str) -> Any:
    """What an entry of the reference stands for; an error if there is no such name."""
    package, _, name = path.rpartition(".")
    return getattr(import_module(package), name)


def names_in_full(*entries: str) -> str:
    """The same table with links, then every name: parameters, what it returns and raises, its example."""
    rows = []
    for entry in entries:
        path, _, members = entry.partition(":")
        thing = public(path)
        kind = "function" if not isinstance(thing, type) else "exception" if issubclass(thing, Exception) else "class"
        rows.append(f".. auto{kind}:: {path}")
        if members:
            rows.append("   :members:" + ("" if members in ("all", "fields") else f" {members.replace(',', ', ')}"))
        if members == "fields":
            rows.append("   :undoc-members:")
    table = _summaries(entries, "{{py:obj}}`{0} <{1}>`")
    return f"{table}\n```{{eval-rst}}\n" + "\n".join(rows) + "\n```\n"


# ------------------------------------------------------------- settings


def settings(where: str) -> str:
    """A table of all settings of a model, `module:Class`: type, default, limits and what they are."""
    module, name = where.split(":")
    model: type[BaseModel] = getattr(import_module(module), name)
    comments = {field.name: field.comment for field in fields_of(model)}
    rows = ["| setting | type | default | what it is |", "|---|---|---|---|"]
    for key, field in model.model_fields.items():
        limits = ", ".join(_limit(rule) for rule in field.metadata if _limit(rule))
        words = "; ".join(part for part in (field.description, comments.get(key), limits) if part)
        default = "required" if field.default is PydanticUndefined else _value(field.default)
        rows.append(f"| `{key}` | {_type(field.annotation)} | {default} | {_cell(words)} |")
    return f"{_escaped((model.__doc__ or '').strip())}\n\n" + "\n".join(rows) + "\n"


def _limit(rule: Any) -> str:
    signs = {"gt": "more than", "ge": "at least", "lt": "less than", "le": "at most", "min_length": "at least"}
    return ", ".join(f"{words} {getattr(rule, sign):g}" for sign, words in signs.items() if hasattr(rule, sign))


def _value(value: Any) -> str:
    if isinstance(value, BaseModel):
        return ", ".join(f"`{name}` {_value(inner)}" for name, inner in value)
    if isinstance(value, tuple | list):
        return ", ".join(_value(inner) for inner in value) or "none"
    if isinstance(value, str):
        return f"`{value}`" if value else "none"
    return "none" if value is None or value == {} else str(value).lower() if isinstance(value, bool) else f"{value:g}"


def _type(kind: Any) -> str:
    from types import UnionType
    from typing import Annotated, Literal, Union

    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return " or ".join(f"`{choice}`" for choice in inner)
    if origin is Annotated:
        return _type(inner[0])
    if origin in (Union, UnionType):
        return " or ".join(_type(part) for part in inner if part is not type(None))
    if origin in (tuple, list):
        parts = [part for part in inner if part is not Ellipsis]
        same = len(set(map(str, parts))) == 1
        count = "" if Ellipsis in inner or origin is list else f"{len(parts)} "
        each = _type(parts[0]) if "`" in _type(parts[0]) or "text" in _type(parts[0]) else f"{_type(parts[0])}s"
        return f"list of {count}{each}" if same else f"list of {', '.join(_type(part) for part in parts)}"
    if origin is dict:
        return "table"
    names = {"int": "whole number", "float": "number", "bool": "true or false", "str": "text", "Path": "folder"}
    return names.get(kind.__name__, f"`{kind.__name__}`") if isinstance(kind, type) else "value"


def metrics(study: str) -> str:
    """What a sweep of a study can keep of every episode."""
    from policychord.runs.plan import episodes_of

    offered = episodes_of(study)
    rows = [f"| `{name}` | {_cell(words)} |" for name, words in offered.metrics.items()]
    return "\n".join(["| metric | what it is |", "|---|---|", *rows]) + "\n"


def told(study: str) -> str:
    """What a plan may name in [settings], [grid] and [random.over]."""
    from policychord.runs.plan import episodes_of

    rows = ["| name | default | what it is |", "|---|---|---|"]
    for setting in episodes_of(study).known_settings:
        choices = " or ".join(f"`{choice}`" for choice in setting.choices)
        fixed = "" if setting.varies else "only in `[settings]`"
        words = "; ".join(part for part in (_cell(setting.meaning), choices, fixed) if part)
        rows.append(f"| `{setting.name}` | {_value(setting.default)} | {words} |")
    return "\n".join(rows) + "\n"


# ------------------------------------------------------------- claims


def claims(study: str) -> str:
    """The claims of a study with the verdicts of the recorded run; the report has the rules and numbers."""
    from policychord_paper import load_study
    from policychord_paper.claim import rule_text

    record = {claim.id: claim for claim in _recorded() if claim.study == study}
    rows = ["| | claim | verdict |", "|---|---|---|"]
    for claim in load_study(study).claims:
        found = record.get(claim.id)
        if found is None or found.rule != rule_text(claim.rule):  # judged by another rule
            verdict = "not recorded yet"
        else:
            verdict = VERDICTS[found.verdict] + _parts(found.holds)
        rows.append(f"| **{claim.id}** | {_cell(claim.statement)} ({claim.paper}) | {verdict} |")
    return "\n".join(rows) + "\n"


def _parts(holds: dict[str, bool]) -> str:
    """Which parts of a rule do not hold, where only some do."""
    lacking = [part for part, it_holds in holds.items() if not it_holds]
    return f" (not: {_cell(', '.join(lacking))})" if 0 < len(lacking) < len(holds) else ""


def tally() -> str:
    """How the recorded run ended, and where it ran; claims whose rules changed since then are not counted."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    current = _current()
    verdicts = list(current.values())
    counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in VERDICTS)
    where, missing = record["environment"], _made() - len(verdicts)
    took = f", in {where['seconds'] / 60:.0f} minutes on {where['cores']} cores" if "seconds" in where else ""
    those = "1 more claim has a rule" if missing == 1 else f"{missing} more claims have rules"
    later = f" {those} newer than this record." if missing else ""
    return (
        f"**{len(verdicts)} claims: {counts}.** Recorded on {where['started'][:10]} with policychord "
        f"{where['policychord']}, Python {where['python']}, seed {where['seed']}, {where['data']}{took}.{later}\n"
    )


def _current() -> dict[str, str]:
    """Verdicts of the record that the present rules gave, by claim."""
    from policychord_paper import STUDIES, load_study
    from policychord_paper.claim import rule_text

    rules = {claim.id: rule_text(claim.rule) for study in STUDIES for claim in load_study(study).claims}
    return {claim.id: claim.verdict for claim in _recorded() if rules.get(claim.id) == claim.rule}


def _made() -> int:
    from policychord_paper import STUDIES, load_study

    return sum(len(load_study(study).claims) for study in STUDIES)


def factors() -> str:
    """What moves the released PD gate's delta: the record of `python -m benchmarks.pd_gate`."""
    found = json.loads((RECORD.parent / "pd_gate.json").read_text(encoding="utf-8"))
    rows = ["| flown | delta (95% interval) | p | median, gate | median, PID |", "|---|---|---|---|---|"]
    for name, one in found.items():
        delta = f"{one['delta']:.3f} ({one['low']:.3f} to {one['high']:.3f})"
        rows.append(f"| {name} | {delta} | {one['p']:.1g} | {one['gate']:.1f} | {one['PID']:.1f} |")
    beside = [one for name, one in found.items() if name.startswith(("as in", "rounding"))]
    span = {key: (min(one[key] for one in beside), max(one[key] for one in beside)) for key in beside[0]}
    interval = f"{span['low'][0]:.3f} to {span['high'][1]:.3f}"
    said = (
        f"Starts that differ by 1e-15 m ({len(beside)} times {beside[0]['seeds']} seeds) move delta between "
        f"{span['delta'][0]:.3f} and {span['delta'][1]:.3f}, p between {span['p'][0]:.1g} and {span['p'][1]:.1g}, the "
        f"gate's median between {span['gate'][0]:.2f} and {span['gate'][1]:.2f} and PID's between {span['PID'][0]:.2f} "
        f"and {span['PID'][1]:.2f}. The interval of delta that includes rounding is {interval}."
    )
    return "\n".join(rows) + f"\n\n{said}\n"


def behaviour(part: str) -> str:
    """Tables of what fits recover: the record of `python -m benchmarks.fit`."""
    rows = json.loads((RECORD.parent / "behaviour.json").read_text(encoding="utf-8"))[part]
    columns, line = {
        "recovery": (
            ["agent", "free", "decisions", "experiments", "profile interval of eps holds the truth",
             "interval from the curvature", "bias of ln eps", "its sd"],
            lambda one: [one["family"], ", ".join(one["free"]), f"{one['decisions']:,}", str(one["repeats"]),
                         f"{one['share']:.3f} ({one['low']:.3f} to {one['high']:.3f})", f"{one['wald']:.3f}",
                         f"{one['bias']:+.2f} ± {one['error']:.2f}", f"{one['sd']:.2f}"],
        ),
        "planted": (
            ["models", "trials a person", "cohorts", "error, together", "error, fitting first", "gain (95% interval)",
             "won, lost", "truth within 2 sd, together", "fitting first"],
            lambda one: [", ".join(one["models"]), str(one["trials"]), str(one["cohorts"]), f"{one['together']:.3f}",
                         f"{one['first']:.3f}", f"{one['gain']:+.3f} ({one['low']:+.3f} to {one['high']:+.3f})",
                         f"{one['won']}, {one['lost']}",
                         *("{:.2f} ({:.2f} to {:.2f})".format(*one[key]) for key in ("held", "held_first"))],
        ),
        "folds": (
            ["experiment", "trials are divided by", "composed, own coefficients and prior", "Hybrid with a lapse",
             "composed adds"],
            lambda one: [one["experiment"], one["division"], *(_ranged(one, name) for name in one["ends"]),
                         f"{one['gain']:+.4f} ± {one['error']:.4f}"],
        ),
    }[part]  # fmt: skip
    lines = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    lines += [f"| {' | '.join(line(one))} |" for one in rows.values()]
    days = sorted({one["date"] for one in rows.values()})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    return "\n".join(lines) + f"\n\n(Recorded on {when}.)\n"


def learning(part: str, *options: str) -> str:
    """A part of the record of `python -m benchmarks.learning`."""
    _find_benchmarks()
    from benchmarks import learning_record

    return learning_record.part(part, *options)


def measured(where: str, name: str) -> str:
    """A table that a benchmark kept beside a page, and below it the command and the day that made it."""
    table = json.loads((RECORD.parents[1] / where).read_text(encoding="utf-8"))[name]
    formats = list(table["columns"].values())
    note = f" {table['note']}" if "note" in table else ""  # what was not measured by that run
    rows = [f"| {' | '.join(table['columns'])} |", f"|{'---|' * len(formats)}"]
    for row in table["rows"]:
        cells = [_measured_cell(value, how) for value, how in zip(row, formats, strict=True)]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + f"\n\nMade by `{table['command']}` on {table['date']} with {table['versions']}.{note}\n"


def _measured_cell(value: Any, how: str) -> str:
    return "" if value is None else str(value) if isinstance(value, str) else format(value, how)


def _ranged(one: dict[str, Any], name: str) -> str:
    """A score, with the range over several draws of the folds."""
    ends = "" if one["draws"] == 1 else " ({:.4f} to {:.4f} in {} draws)".format(*one["ends"][name], one["draws"])
    return f"{one[name]:.4f}{ends}"


def speed() -> str:
    """The record of `make bench`: microseconds of CPU time on one thread, and ratios."""
    _find_benchmarks()
    from benchmarks.record import all_lines, recorded

    version, kept = list(recorded().items())[-1]
    return f"Microseconds of CPU time on one thread, version {version}.\n\n{all_lines(kept)}"


def composition(part: str) -> str:
    """A part of the page on when composition pays: the record of `python -m benchmarks.composition`."""
    import composition as page

    return page.PARTS[part]()


def _find_benchmarks() -> None:
    """They are no part of the package."""
    if (root := str(RECORD.parents[2])) not in sys.path:
        sys.path.insert(0, root)


def _recorded() -> "list[ClaimRecord]":
    from policychord_paper.compare import read_claims

    claims = json.loads(RECORD.read_text(encoding="utf-8"))["claims"]
    for claim in claims:
        for before, now in REWORDED.items():
            claim["rule"] = claim["rule"].replace(before, now)
    return read_claims(claims, RECORD)


# -------------------------------------------------------------

MAKERS = {
    maker.__name__: maker
    for maker in (
        commands,
        names,
        settings,
        metrics,
        told,
        claims,
        tally,
        factors,
        behaviour,
        learning,
        measured,
        composition,
        speed,
    )
}


def part(name: str, options: str) -> str:
    """What stands between the two marks."""
    return MAKERS[name](*options.split()).strip("\n")


def pages() -> list[Path]:
    """Every page that may have such parts: the site, the README and the record of the benchmarks."""
    return sorted([*DOCS.rglob("*.md"), DOCS.parent / "README.md", DOCS.parent / "benchmarks" / "RECORD.md"])


def written(text: str) -> str:
    """A page with its parts made anew, where they are committed."""

    def renew(found: re.Match[str]) -> str:
        made = "" if found[2] in AT_BUILD else f"\n{part(found[2], found[3])}\n\n"
        return f"{found[1]}\n{made}{found[5]}"

    return PART.sub(renew, text)


def _fill(app: Sphinx, page: str, source: list[str]) -> None:
    filled = PART.sub(_in_site, source[0])
    source[0] = filled.replace("(../../benchmarks/RECORD.md", "(/contribute/record.md")  # where the site has it


def _in_site(found: re.Match[str]) -> str:
    return names_in_full(*found[3].split()) if found[2] == "names" else part(found[2], found[3])


def _always(app: Sphinx, env: Any, added: set[str], changed: set[str], removed: set[str]) -> list[str]:
    """Pages with such parts are read at every build: the code may have changed where the page has not."""
    return [page for page in env.found_docs if PART.search(Path(env.doc2path(page)).read_text(encoding="utf-8"))]


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", _fill)
    app.connect("env-get-outdated", _always)
    return {"version": "1", "parallel_read_safe": True}


def main() -> None:
    """Write the parts of all pages, and the figure that is drawn from a record."""
    import composition as page

    page.save_figure()
    for path in pages():
        text = path.read_text(encoding="utf-8")
        if (renewed := written(text)) != text:
            path.write_text(renewed, encoding="utf-8")
            print(f"Wrote {path}.")


if __name__ == "__main__":
    main()
