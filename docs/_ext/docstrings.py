"""Our docstrings and signatures on the site: plain text made safe for Sphinx, types as the source spells them."""

import ast
import importlib
import inspect
import re
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util import logging

# What the reference must show: every public name of these modules.
PACKAGES = (
    "policychord",
    "policychord.actions",
    "policychord.primitives",
    "policychord.models",
    "policychord.agent",
    "policychord.population",
    "policychord.loops",
    "policychord.worlds",
    "policychord.worlds.flock",
    "policychord.worlds.quadrotor",
    "policychord.gym",
    "policychord.inference",
    "policychord.inference.learning",
    "policychord.effect_size",
    "policychord.choices",
    "policychord.tracks",
    "policychord.runs",
    "policychord.drawing",
    "policychord.cli",
)
SECTIONS = ("Args", "Returns", "Raises", "Example")  # of a docstring, as Google's convention has them
_log = logging.getLogger(__name__)


class Field(NamedTuple):
    """A line of a record in the source: a name, its type, its default and the comment behind it."""

    name: str
    type: str
    default: str
    comment: str


def fields_of(cls: type) -> list[Field]:
    """The fields that a class declares, with the comment at the end of each line."""
    node, lines = _source(cls)
    if not isinstance(node, ast.ClassDef):
        return []
    found = []
    for part in node.body:
        if not isinstance(part, ast.AnnAssign) or not isinstance(part.target, ast.Name):
            continue
        default = "" if part.value is None else ast.unparse(_default(part.value))
        code, _, comment = lines[(part.end_lineno or part.lineno) - 1].partition("  # ")
        found.append(Field(part.target.id, ast.unparse(part.annotation), default, comment.strip() if code else ""))
    return found


def _default(value: ast.expr) -> ast.expr:
    """What a setting is unless given: of pydantic's `Field` the default alone."""
    if isinstance(value, ast.Call) and getattr(value.func, "id", "") == "Field":
        return next((part.value for part in value.keywords if part.arg == "default"), ast.Constant(...))
    return value


@cache
def _parsed(path: Path) -> tuple[ast.Module, list[str]]:
    text = path.read_text(encoding="utf-8")
    return ast.parse(text), text.splitlines()


def _source(thing: Any) -> tuple[ast.AST | None, list[str]]:
    """Where a function or class is written down, found by its name; overloads stand before what they describe."""
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", "")
    if not (module or "").startswith("policychord"):
        return None, []
    tree, lines = _parsed(Path(inspect.getsourcefile(importlib.import_module(module)) or ""))
    node: ast.AST | None = tree
    for part in name.split("."):
        inner = getattr(node, "body", [])
        node = next((child for child in reversed(inner) if getattr(child, "name", None) == part), None)
    return node, lines


def signature(thing: Any) -> str | None:
    """The arguments as the source has them: `Weights` says more than the union of two arrays that it stands for."""
    node, _ = _source(thing)
    if isinstance(node, ast.FunctionDef):
        return _arguments(node)
    if not isinstance(node, ast.ClassDef):
        return None
    own = [part for part in node.body if isinstance(part, ast.FunctionDef) and part.name == "__init__"]
    if own:
        return _arguments(own[0])
    given = [field for field in fields_of(thing) if not re.search("ClassVar|AbstractVar", field.type)]
    words = (f"{f.name}: {f.type}" + (f" = {f.default}" if f.default else "") for f in given)
    return f"({', '.join(words)})"


def _arguments(node: ast.FunctionDef) -> str:
    given = node.args
    by_place, either = given.posonlyargs, given.args
    first = [*by_place, *either][:1]
    if first and first[0].arg in ("self", "cls"):
        by_place, either = (by_place[1:], either) if by_place else (by_place, either[1:])
        given = ast.arguments(by_place, either, given.vararg, given.kwonlyargs, given.kw_defaults, given.kwarg,
                              given.defaults)  # fmt: skip
    return f"({ast.unparse(given)})"


def in_rst(lines: list[str]) -> list[str]:
    """Plain text with `code` in it as reStructuredText: equations stay as they stand, signs mean themselves."""
    written: list[str] = []
    for paragraph in "\n".join(lines).strip("\n").split("\n\n"):
        rows = paragraph.split("\n")
        if all(row.startswith("    ") or "   " in row.strip() for row in rows):
            written += ["::", "", *(f"    {row}" for row in rows), ""]
        else:
            written += [*map(_inline, _joined_code(rows)), ""]
    return written


def _joined_code(rows: list[str]) -> list[str]:
    """A piece of code that runs over the end of a line stays in one line."""
    joined: list[str] = []
    for row in rows:
        if joined and joined[-1].count("`") % 2:
            joined[-1] += " " + row.strip()
        else:
            joined.append(row)
    return joined


def _inline(row: str) -> str:
    parts = row.split("`")
    parts[::2] = [re.sub(r"([*|\\]|_(?!\w))", r"\\\1", part) for part in parts[::2]]
    return "``".join(parts)


def summary(thing: Any) -> str:
    """The first line of a docstring, which is one sentence."""
    return (inspect.getdoc(thing) or "").partition("\n\n")[0].partition("\n")[0]


def sections(lines: list[str]) -> dict[str, list[str]]:
    """A docstring in Google's convention, by section; what stands before the first one is under the empty name."""
    found: dict[str, list[str]] = {"": []}
    name = ""
    for line in lines:
        if line.endswith(":") and line[:-1] in SECTIONS:
            name = line[:-1]
            found[name] = []
        else:
            found[name].append(line)
    return {key: inspect.cleandoc("\n".join(rows)).splitlines() for key, rows in found.items()}


def items(rows: list[str]) -> dict[str, str]:
    """`name: text` in a section, where further lines of a text are indented."""
    found: dict[str, str] = {}
    for row in rows:
        start = re.match(r"([*\w., ]+): +(\S.*)$", row)
        if start:
            found[start[1]] = start[2]
        elif found:
            found[[*found][-1]] += " " + row.strip()
    return found


def parameters(thing: Any) -> dict[str, tuple[str, str]]:
    """(type, default and comment in the source) of every argument of a function, or field of a record."""
    node, _ = _source(thing)
    if isinstance(node, ast.ClassDef) and not _builds_itself(thing):
        fields = [field for field in fields_of(thing) if not re.search("ClassVar|AbstractVar", field.type)]
        return {field.name: (field.type, field.comment) for field in fields}
    if isinstance(node, ast.ClassDef):
        node = next(part for part in node.body if getattr(part, "name", "") == "__init__")
    if not isinstance(node, ast.FunctionDef):
        return {}
    given = node.args
    every = [*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg]
    stars = {id(given.vararg): "*", id(given.kwarg): "**"}
    return {
        stars.get(id(one), "") + one.arg: (ast.unparse(one.annotation) if one.annotation else "", "")
        for one in every
        if one is not None and one.arg not in ("self", "cls")
    }


def _docstring(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    _shown(app).add((getattr(thing, "__module__", ""), getattr(thing, "__qualname__", name)))
    parts = sections(lines)
    lines[:] = in_rst(parts[""])
    if what in ("class", "exception", "function", "method"):
        lines += _field_list(what, thing, parts)
    if "Example" in parts:
        lines += ["", ".. code-block:: pycon", "", *(f"   {row}" for row in parts["Example"]), ""]


def _field_list(what: str, thing: Any, parts: dict[str, list[str]]) -> list[str]:
    """What Sphinx sets as lists of parameters, of what is returned and of what is raised."""
    texts = items(parts.get("Args", []))
    rows = []
    for name, (kind, comment) in parameters(thing).items():
        text = texts.pop(name, "") or next((texts[key] for key in texts if name in key.split(", ")), "") or comment
        starred = name.replace("*", "\\*")
        rows += [f":param {starred}: {_inline(text)}".rstrip(), *([f":type {starred}: ``{kind}``"] if kind else [])]
    node, _ = _source(thing)
    back = ast.unparse(node.returns) if isinstance(node, ast.FunctionDef) and node.returns else "None"
    if "Returns" in parts:
        rows.append(f":returns: {_inline(' '.join(parts['Returns']))}")
    if what in ("function", "method") and back != "None":
        rows.append(f":rtype: ``{back}``")
    rows += [f":raises {error}: {_inline(text)}" for error, text in items(parts.get("Raises", [])).items()]
    return [*rows, ""]


def _builds_itself(thing: type) -> bool:
    """Whether a class has a constructor of its own: then its fields are its own business."""
    node, _ = _source(thing)
    return any(getattr(part, "name", "") == "__init__" for part in getattr(node, "body", []))


def _signature(app: Sphinx, what: str, name: str, thing: Any, options: Any, given: str, returns: str) -> Any:
    found = signature(thing) if what in ("class", "function", "method") else None
    if found is None:
        return None
    node, _ = _source(thing)
    back = ast.unparse(node.returns) if isinstance(node, ast.FunctionDef) and node.returns else ""
    return found, back


def _skip(app: Sphinx, what: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    """A method that has nothing to say of its own is explained where it is abstract; fields are in the signature."""
    if type(thing).__name__ == "_tuplegetter":
        return True
    written = thing.fget if isinstance(thing, property) else thing
    node, _ = _source(written)
    if isinstance(node, ast.FunctionDef):
        return not ast.get_docstring(node) or None
    return None


def _shown(app: Sphinx) -> set[tuple[str, str]]:
    if not hasattr(app, "shown_names"):
        app.shown_names = set()  # type: ignore[attr-defined]
    return app.shown_names  # type: ignore[attr-defined]


def public_names(module: ModuleType) -> list[str]:
    """What a module offers: what it lists, or else what it defines."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    mine = {name: value for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__}
    return [name for name, value in mine.items() if not name.startswith("_") and hasattr(value, "__qualname__")]


def _link_within_package(app: Sphinx, page: nodes.document) -> None:
    """A type in a signature is first looked for in the package of that signature: two packages have a `Comparison`."""
    for heading in page.findall(addnodes.desc_signature):
        for link in heading.findall(addnodes.pending_xref):
            if link.get("refdomain") == "py" and not link.get("py:module"):
                link["py:module"] = heading.get("module")


def _nobody_forgotten(app: Sphinx, env: Any) -> None:
    shown = _shown(app)
    if not shown:  # pages were not read anew
        return
    for package in PACKAGES:
        module = importlib.import_module(package)
        offered = {name: getattr(module, name) for name in public_names(module)}
        written = {name: x for name, x in offered.items() if isinstance(x, type) or inspect.isfunction(x)}
        missing = sorted(n for n, thing in written.items() if (thing.__module__, thing.__qualname__) not in shown)
        if missing:
            _log.warning("docs/reference/api does not show %s of %s", ", ".join(missing), package)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("autodoc-process-docstring", _docstring)
    app.connect("autodoc-process-signature", _signature)
    app.connect("autodoc-skip-member", _skip)
    app.connect("doctree-read", _link_within_package)
    app.connect("env-updated", _nobody_forgotten)
    return {"version": "1", "parallel_read_safe": False}
