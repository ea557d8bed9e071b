"""What pages tell people to type is there: commands and their options, targets of make, scripts. Their Python runs."""

import ast
import re
import subprocess
import sys
from collections import defaultdict
from typing import Any

import pytest
import typer
from typer.main import get_command

from policychord.cli import app, load_commands

from .pages import NEEDS, PAGES, ROOT, blocks, commands

load_commands()  # those of the paper too
USAGE: Any = typer.BadParameter.__base__
SEPARATOR = "-" * 9 + "\n"


def parse(words: list[str], in_full: bool = True, command: Any = None, parent: Any = None) -> None:
    """Read a command as the program would, without doing anything: unknown names, options and choices are errors."""
    command = get_command(app) if command is None else command
    context = typer.Context(command, info_name=command.name, parent=parent)
    given, left, _ = command.make_parser(context).parse_args(list(words))
    if hasattr(command, "commands"):
        if left:
            _, below, rest = command.resolve_command(context, left)
            parse(rest, in_full, below, context)
        return
    if left:
        raise USAGE(f"{command.name} takes no {left}")
    for param in command.get_params(context):
        value = given.get(param.name)
        # files that only a reader has, and what a shell fills in
        elsewhere = "$" in str(value) or (value and "Path" in str(getattr(param, "type_descriptor", "")))
        if not elsewhere and (value is not None or (param.required and in_full)):
            param.process_value(context, value)


@pytest.mark.parametrize(("program", "least"), [("policychord", 40), ("make", 15), ("python", 10)])
def test_there_is_something_to_check(program, least):
    assert sum(line.words[0] == program for line in commands()) >= least


def test_every_command_of_ours_can_be_given_as_it_stands():
    wrong = {}
    for place, words, in_full in commands():
        if words[0] == "policychord":
            try:
                parse(words[1:], in_full)
            except USAGE as error:
                wrong[place] = f"{' '.join(words)}: {error.format_message()}"
    assert wrong == {}


@pytest.mark.parametrize(
    "words",
    ["flok", "flock", "flock milling --bird 3", "flock soaring", "flock milling 7", "flock milling --boids x",
     "sweep again a", "choices fit a.csv --link cauchy", "reproduce --eps"],
)  # fmt: skip
def test_wrong_commands_are_noticed(words):
    with pytest.raises(USAGE):
        parse(words.split())


def test_targets_of_make_and_scripts_exist():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for place, words, _ in commands():
        if words[0] == "make":
            assert {word for word in words[1:] if "=" not in word} <= targets, place  # DATA=fetch is a variable
        if words[0] == "python" and words[1].endswith(".py"):
            assert (ROOT / words[1]).exists(), place


def test_python_runs_and_prints_what_the_page_shows():
    """Blocks of a page one after the other, as a reader would. Those of the README have a test of their own."""
    by_page = defaultdict(list)
    for block in blocks("python"):
        if block.code.startswith(NEEDS):
            ast.parse(block.code)
        elif block.page.name != "README.md":
            by_page[block.page].append(block)
    assert len(by_page) >= 2
    for page, parts in by_page.items():
        program = f'print("{SEPARATOR.strip()}")\n'.join(part.code for part in parts)
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert done.returncode == 0, f"{page.name}: {done.stderr}"
        printed = done.stdout.split(SEPARATOR)
        for part, said in zip(parts, printed, strict=True):
            assert part.printed is None or said == part.printed, part.place


def test_every_python_block_of_the_readme_shows_what_it_prints():
    readme = [block for block in blocks("python") if block.page.name == "README.md"]
    assert [block.place for block in readme if block.printed is None] == []


def test_code_is_marked_by_languages_that_are_checked():
    """A block under another name, such as `bash` or `py`, would escape these tests."""
    known = {"", "python", "sh", "text", "toml", "csv", "json", "bibtex", "math"}
    for page in PAGES:
        found = set(re.findall(r"^ *```([\w-]+)\s*$", page.read_text(), re.MULTILINE))
        assert found <= known, f"{page.name}: {found - known}"
