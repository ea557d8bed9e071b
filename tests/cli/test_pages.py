"""Help pages fit a small window, show defaults and examples that are right, and load nothing heavy."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import policychord.cli
from policychord.cli import app, load_commands
from policychord.cli.app import PANELS, _flowing

from .command import run


def tree(command, path=()):
    """Every command with the words that lead to it."""
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from tree(inner, (*path, name))


load_commands()
COMMANDS = dict(tree(typer.main.get_command(app)))


def page(path, width=80):
    shown = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": str(width), "TERMINAL_WIDTH": ""})
    assert shown.exit_code == 0
    return shown.stdout


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_pages_fit_and_have_no_noise(path):
    text = page(path)
    assert max(map(len, text.splitlines())) <= 80
    for noise in ("<bool>", "<str>", "<int>", "<float>", "<path>", "…"):
        assert noise not in text
    # an option's name and what it takes stand in one piece
    for param in COMMANDS[path].params:
        if param.param_type_name == "option" and param.name != "show_completion":  # which is there, but not shown
            assert param.opts[-1] in text
            assert param.is_flag or param.metavar, f"{param.opts[-1]} shows a type instead of a word"
            assert (param.metavar or "") in text


@pytest.mark.parametrize("path", [path for path in COMMANDS if path], ids=" ".join)
def test_examples_name_options_that_exist(path):
    text = page(path, width=120)
    examples = re.findall(r"^ +policychord (.+?)\s*$", text.partition(" Examples")[2], re.MULTILINE)
    assert 2 <= len(examples) <= 3
    for example in examples:
        words = example.split()
        inner = max((p for p in COMMANDS if tuple(words[: len(p)]) == p), key=len)
        assert inner[: len(path)] == path, f"an example of {inner} on the page of {path}"
        known = {name for param in COMMANDS[inner].params for name in (*param.opts, *param.secondary_opts)}
        assert {word for word in words if word.startswith("--")} <= known


@pytest.mark.parametrize("path", [path for path, command in COMMANDS.items() if not hasattr(command, "commands")])
def test_every_command_serves_programs(path):
    assert "--json" in {name for param in COMMANDS[path].params for name in param.opts}


def test_the_first_page_has_every_command_in_a_panel_and_a_start():
    text = page(())
    assert {name for names in PANELS.values() for name in names} == {path[0] for path in COMMANDS if path}
    for word in (*PANELS, "Start here", "--install-completion", "--json"):
        assert word in text


def test_paragraphs_flow_and_lists_stay():
    text = "One\nsentence.\n\nAnother\none.\n\nA list:\n  a  first\n  b  second\nIts end."
    assert _flowing(text) == "One sentence.\n\nAnother one.\n\nA list:\n  a  first\n  b  second\nIts end."


def test_without_words_it_is_the_first_page():
    alone = run()
    assert alone.code == 0
    assert alone.out.split() == run("--help").out.split()


def test_help_loads_nothing_heavy():
    """Beyond what `import policychord` itself loads."""
    code = (
        "import sys, policychord; before = set(sys.modules)\n"
        "from typer.testing import CliRunner\n"
        "from policychord.cli import app, load_commands\n"
        "load_commands()\n"
        "for words in ([], ['flock'], ['choices', 'fit'], ['tracks', 'fit'], ['agents', 'fit'], ['quadrotor']):\n"
        "    assert CliRunner().invoke(app, [*words, '--help']).exit_code == 0\n"
        "heavy = {'jax', 'numpy', 'numba', 'scipy', 'matplotlib', 'pandas', 'xarray', 'statsmodels'}\n"
        "heavy &= set(sys.modules) - before\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("words", "place", "expected"),
    [
        ("policychord fl", 1, {"flock"}),
        ("policychord flock mi", 2, {"milling"}),
        ("policychord quadrotor pd --horizon ", 4, {"one-step", "cost-to-go"}),
    ],
)
def test_the_shell_completes_words(words, place, expected):
    asked = {"_POLICYCHORD_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(place)}
    answer = CliRunner().invoke(app, [], env=asked, prog_name="policychord")
    assert set(answer.stdout.split()) == expected


def test_every_command_ends_with_what_to_do_next():
    """In its own lines or in a function of its file that it calls; the studio runs until it is stopped."""
    folder = Path(policychord.cli.__file__).parent
    silent = []
    for path in sorted(folder.glob("*.py")):
        functions = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)]
        text = {node.name: ast.unparse(node) for node in functions}
        for node in functions:
            command = any(".command(" in ast.unparse(one) + "(" for one in node.decorator_list)
            called = [name for name in text if name != node.name and f"{name}(" in text[node.name]]
            deeper = [name for one in called for name in text if f"{name}(" in text[one]]
            texts = [text[name] for name in (node.name, *called, *deeper)]
            if command and not any("Next" in words or "tell(json" in words for words in texts):  # `tell` ends so
                silent.append(f"{path.stem} {node.name}")
    assert silent == ["studio _studio_command"]
