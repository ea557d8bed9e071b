"""What the house looks like in numbers: files, lines, public names, long signatures, vague names.

python -m benchmarks.house                 # a table of the present tree
python -m benchmarks.house --tree OTHER    # of another checkout, to compare
"""

import argparse
import ast
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("policychord", "policychord_paper")
VAGUE = frozenset({"one", "found", "given", "told", "said", "well"})
MANY_ARGUMENTS = 8


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


def modules(tree: Path) -> list[Module]:
    """All source files of a checkout."""
    found = []
    for package in PACKAGES:
        for path in sorted((tree / "src" / package).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            found.append(Module(path.relative_to(tree / "src"), len(text.splitlines()), ast.parse(text)))
    return found


def functions(module: Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function and method, however deep."""
    return (node for node in ast.walk(module.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def arguments(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many arguments it takes, self not counted."""
    spec = function.args
    names = [a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"])) + (spec.vararg is not None) + (spec.kwarg is not None)


def public(module: Module) -> list[str]:
    """Functions and classes at the top level whose names do not begin with an underscore."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return [node.name for node in module.tree.body if isinstance(node, kinds) and not node.name.startswith("_")]


def bindings(module: Module) -> list[str]:
    """Every name that is bound: assigned, looped over, or taken as an argument."""
    stored = [n.id for n in ast.walk(module.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return stored + [node.arg for node in ast.walk(module.tree) if isinstance(node, ast.arg)]


def measure(tree: Path) -> dict:
    """All numbers of one checkout."""
    files = modules(tree)
    where: dict[str, set[Path]] = defaultdict(set)
    by_package: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for module in files:
        by_package[module.package][0] += 1
        by_package[module.package][1] += module.lines
        for name in public(module):
            where[name].add(module.path)
    lengths = sorted(f.end_lineno - f.lineno + 1 for m in files for f in functions(m) if f.end_lineno)
    bound = [name for module in files for name in bindings(module)]
    surface = sum(size for name, (_, size) in by_package.items() if name.endswith(("/cli", "/studio")))
    return {
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
        "names in several modules": sum(len(paths) > 1 for paths in where.values()),
        f"functions with {MANY_ARGUMENTS} or more arguments": sum(
            arguments(f) >= MANY_ARGUMENTS for m in files for f in functions(m)
        ),
        "share of vague bindings": round(sum(name in VAGUE for name in bound) / len(bound), 4),
        "packages (files, lines)": dict(sorted(by_package.items(), key=lambda item: -item[1][1])),
    }


def main() -> None:
    """Print the table and, if asked, write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tree", type=Path, default=ROOT, help="the checkout to measure")
    parser.add_argument("--out", type=Path, help="where to write the numbers as JSON")
    options = parser.parse_args()
    numbers = measure(options.tree)
    table = Table("measure", "value", title=str(options.tree.name))
    for name, value in numbers.items():
        if isinstance(value, dict):
            table.add_section()
            for package, (count, size) in value.items():
                table.add_row(package, f"{count:,} files, {size:,} lines")
        else:
            table.add_row(name, " / ".join(map(str, value)) if isinstance(value, list) else f"{value:,}")
    Console().print(table)
    if options.out:
        options.out.write_text(json.dumps(numbers, indent=2))


if __name__ == "__main__":
    main()
