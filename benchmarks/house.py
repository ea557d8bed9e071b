"""What the house looks like in numbers: files, lines, public names, long signatures, vague names.

python -m benchmarks.house                     # a table of the present tree
python -m benchmarks.house --against OTHER     # with another checkout beside it: before and after
python -m benchmarks.house --walks             # also what each of the five walks enters; takes minutes
python -m benchmarks.house --tree OTHER        # of another checkout alone
"""

import argparse
import ast
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("policychord", "policychord_paper")
VAGUE = frozenset({"one", "found", "given", "told", "said", "well"})
MANY_ARGUMENTS = 8
# Run in a process of its own, which sees the sources of the checkout that is measured. The last line is the answer.
COUNT_EXPORTED = """
import importlib, json, pkgutil, sys
names = set()
for package in sys.argv[1:]:
    top = importlib.import_module(package)
    inside = [m.name for m in pkgutil.walk_packages(top.__path__, f"{package}.", onerror=lambda name: None)
              if m.ispkg or m.name.count(".") == 1]
    for name in [package, *inside]:
        if name.rpartition(".")[2].startswith("_"):
            continue
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue  # needs something that is not installed here
        names |= set(getattr(module, "__all__", ()))
print(json.dumps(len(names)))
"""
ENTER_WALKS = """
import json, sys
from benchmarks import walks
walks.SOURCES = (sys.argv[1],)
print(json.dumps({walk.name: walks.entered(walk.run) for walk in walks.WALKS}))
"""


class Module(NamedTuple):
    """One source file: where it belongs, how long it is, and its syntax."""

    path: Path  # in src
    lines: int
    tree: ast.Module

    @property
    def package(self) -> str:
        """The folder or file right inside the distribution's package."""
        first, second = self.path.parts[0], self.path.parts[1]
        return f"{first}/{second.removesuffix('.py')}"

    @property
    def private(self) -> bool:
        """Whether the module's own name begins with an underscore, and only one."""
        return self.path.name.startswith("_") and not self.path.name.startswith("__")


def modules(tree: Path) -> list[Module]:
    """All source files of a checkout."""
    files = []
    for package in PACKAGES:
        for path in sorted((tree / "src" / package).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            files.append(Module(path.relative_to(tree / "src"), len(text.splitlines()), ast.parse(text)))
    return files


def functions(module: Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function and method, however deep, without overloads: they declare what another one does."""
    nodes = (node for node in ast.walk(module.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return (node for node in nodes if not any(ast.unparse(mark) == "overload" for mark in node.decorator_list))


def arguments(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many arguments it takes, self not counted."""
    spec = function.args
    names = [a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"])) + (spec.vararg is not None) + (spec.kwarg is not None)


def public(module: Module) -> list[str]:
    """Functions and classes at the top level whose names do not begin with an underscore; overloads count once."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    names = (node.name for node in module.tree.body if isinstance(node, kinds))
    return list(dict.fromkeys(name for name in names if not name.startswith("_")))


def bindings(module: Module) -> list[str]:
    """Every name that is bound: assigned, looped over, or taken as an argument."""
    stored = [n.id for n in ast.walk(module.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return stored + [node.arg for node in ast.walk(module.tree) if isinstance(node, ast.arg)]


def repeated(files: list[Module]) -> int:
    """How many public names are defined in more than one of these modules."""
    where: dict[str, set[Path]] = defaultdict(set)
    for module in files:
        for name in public(module):
            where[name].add(module.path)
    return sum(len(paths) > 1 for paths in where.values())


def ask(tree: Path, program: str, *arguments: str) -> Any:
    """What a program prints last, as JSON, with a checkout's sources and our benchmarks to import from."""
    seen = os.environ | {"PYTHONPATH": os.pathsep.join([str(tree / "src"), str(ROOT)])}
    run = subprocess.run(
        [sys.executable, "-c", program, *arguments], env=seen, stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(run.stdout.splitlines()[-1])


def measure(tree: Path, walks: bool = False) -> dict[str, Any]:
    """All numbers of one checkout."""
    files = modules(tree)
    open_files = [module for module in files if not module.private]
    by_package: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for module in files:
        by_package[module.package][0] += 1
        by_package[module.package][1] += module.lines
    lengths = sorted(f.end_lineno - f.lineno + 1 for m in files for f in functions(m) if f.end_lineno)
    bound = [name for module in files for name in bindings(module)]
    surface = sum(size for name, (_, size) in by_package.items() if name.endswith(("/cli", "/studio")))
    numbers: dict[str, Any] = {
        "files": len(files),
        "lines": sum(module.lines for module in files),
        "lines of policychord without cli and studio": sum(
            module.lines for module in files if module.path.parts[0] == "policychord"
        )
        - surface,
        "functions": len(lengths),
        "function lines, median / 95% / max": [
            lengths[len(lengths) // 2],
            lengths[len(lengths) * 95 // 100],
            lengths[-1],
        ],
        "public definitions": sum(len(public(module)) for module in files),
        "public definitions, private modules left out": sum(len(public(module)) for module in open_files),
        "names in some __all__": ask(
            tree, COUNT_EXPORTED, *(name for name in PACKAGES if (tree / "src" / name).exists())
        ),
        "names in several modules": repeated(files),
        "names in several modules, private modules left out": repeated(open_files),
        f"functions with {MANY_ARGUMENTS} or more arguments": sum(
            arguments(f) >= MANY_ARGUMENTS for m in files for f in functions(m)
        ),
        "share of vague bindings": round(sum(name in VAGUE for name in bound) / len(bound), 4),
    }
    if walks:
        for name, entered in ask(tree, ENTER_WALKS, str(tree / "src")).items():
            numbers[f"walk {name}: files / functions / lines"] = entered
    numbers["packages (files, lines)"] = dict(sorted(by_package.items(), key=lambda item: -item[1][1]))
    return numbers


def text(value: Any) -> str:
    """A measure as it is printed; nothing where the other checkout alone has it."""
    if value is None:
        return ""
    return " / ".join(f"{part:,}" for part in value) if isinstance(value, list) else f"{value:,}"


def table_of(columns: dict[str, dict[str, Any]]) -> Table:
    """A row for each measure, then one for each package; a column for each checkout, by title."""
    table = Table("measure", *columns)
    for name in dict.fromkeys(name for numbers in columns.values() for name in numbers):
        values = [numbers.get(name) for numbers in columns.values()]
        if not any(isinstance(value, dict) for value in values):
            table.add_row(name, *map(text, values))
            continue
        table.add_section()
        for package in dict.fromkeys(package for sizes in values for package in sizes or ()):
            sizes = [(value or {}).get(package) for value in values]
            table.add_row(package, *(f"{size[0]:,} files, {size[1]:,} lines" if size else "" for size in sizes))
    return table


def main() -> None:
    """Print the table and, if asked, write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tree", type=Path, default=ROOT, help="the checkout to measure")
    parser.add_argument("--against", type=Path, help="an earlier checkout, to stand before it in the same table")
    parser.add_argument("--walks", action="store_true", help="run the five walks and count what they enter")
    parser.add_argument("--out", type=Path, help="where to write the numbers as JSON")
    options = parser.parse_args()
    trees = {"before": options.against, "after": options.tree} if options.against else {"value": options.tree}
    columns = {title: measure(tree.resolve(), options.walks) for title, tree in trees.items()}
    Console().print(table_of(columns))
    if options.out:
        options.out.write_text(json.dumps(columns if options.against else columns["value"], indent=2))


if __name__ == "__main__":
    main()
