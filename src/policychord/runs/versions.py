"""The version of the code that a result depends on: the modules that its step uses, and the packages that compute.

A module uses what it imports, wherever in the file, from packages of this distribution and of those that extend it.
What a changed comment, docstring, help text or page has in it changes no result; what a changed kernel does discards
all that used it.
"""

import ast
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec, resolve_name
from pathlib import Path

from .._plugins import COMMANDS, EPISODES, installed

PACKAGES = ("jax", "jaxlib", "numba", "numpy", "scipy", "matplotlib")


@cache
def our_packages() -> frozenset[str]:
    """This package and those that extend it by an entry point: code that the command runs anyway."""
    points = (point for group in (COMMANDS, EPISODES) for point in installed(group).values())
    return frozenset({__package__.split(".")[0], *(point.module.split(".")[0] for point in points)})


@cache
def code_version(*modules: str) -> str:
    """Changes with the code that these modules use, and with the packages that compute."""
    digest = hashlib.sha256()
    for name in sorted(_used_by(modules)):
        digest.update(f"{name}\0{_code_of(name)}\0".encode())
    for name in PACKAGES:
        digest.update(f"{name}=={version(name)}".encode())
    return digest.hexdigest()


def _used_by(modules: Iterable[str]) -> set[str]:
    """These modules and all that they import, directly or not, from our packages."""
    used: set[str] = set()
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name not in used and _source(name) is not None:
            used.add(name)
            waiting += _imports(name)
    return used


@cache
def _source(module: str) -> Path | None:
    """The file of a module of our packages; None for any other name."""
    if module.split(".")[0] not in our_packages():
        return None
    try:
        spec = find_spec(module)
    except ModuleNotFoundError:
        return None
    return Path(spec.origin) if spec is not None and spec.origin else None


@cache
def _tree(module: str) -> ast.Module:
    source = _source(module)
    assert source is not None
    return ast.parse(source.read_text(encoding="utf-8"))


@cache
def _imports(module: str) -> tuple[str, ...]:
    """What a module imports when it runs; of a package that loads its names when asked, only the names asked for."""
    waiting = [node for node in _running(_tree(module)) if isinstance(node, ast.Import | ast.ImportFrom)]
    return tuple(name for node in waiting for name in _targets(module, node))


def _running(node: ast.AST) -> Iterator[ast.AST]:
    """Every part of a file, without what only type checkers read."""
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING"):
            yield child
            yield from _running(child)


def _targets(module: str, node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    package = _absolute(module, node)
    yield package
    for alias in node.names:
        yield _home(package, alias.name) or f"{package}.{alias.name}"


def _absolute(module: str, node: ast.ImportFrom) -> str:
    """The module that is imported from, by its whole name."""
    source = _source(module)
    package = module if source is not None and source.name == "__init__.py" else module.rpartition(".")[0]
    return resolve_name("." * node.level + (node.module or ""), package)


def _home(package: str, name: str) -> str | None:
    """Where a package that loads its names when asked has this one from: what it tells type checkers."""
    if _source(package) is None:
        return None
    for node in ast.walk(_tree(package)):
        if isinstance(node, ast.ImportFrom) and any((alias.asname or alias.name) == name for alias in node.names):
            source = _absolute(package, node)
            return source if _source(source) is not None and node.module else f"{source}.{name}"
    return None


@cache
def _code_of(module: str) -> str:
    """What a source file does, without its comments, layout and docstrings."""
    tree = _tree(module)  # nobody else asks for its docstrings
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = node.body[ast.get_docstring(node, clean=False) is not None :]
    return ast.dump(tree)
