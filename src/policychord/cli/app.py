"""The `policychord` command itself: its first page, options for all, and what people see when something goes wrong."""

import inspect
import os
import shlex
import sys
import traceback
import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .. import __version__
from .._plugins import COMMANDS, installed
from ..wording import Sources, in_words
from .interrupt import INTERRUPTED, interruptible, leave
from .output import aside, begin_command, fail, screen

__all__ = ["app", "load_commands", "main", "screen"]

# Where each command stands on the first page; one that another package adds names its panel itself.
PANELS = {
    "Analyse your data": ("choices", "tracks", "fit"),
    "Compose policies": ("agents", "studio", "flock", "quadrotor"),
    "The paper": ("reproduce", "compare"),
    "Many runs": ("sweep",),
    "This machine": ("doctor",),
}
# old names of commands and options, which work until the next version
RENAMED = {"bandit": "choices", "card": "check"}
RENAMED_OPTIONS = {"--workers": "--jobs"}
CLOSED_PIPE = 141  # what shells report of a program that writes to a closed pipe
_UsageError: Any = typer.BadParameter.__base__


class Pages(TyperGroup):
    """Commands in panels and in our order; flags and arguments show no type, which says nothing."""

    def list_commands(self, ctx: Any) -> list[str]:
        order = [name for names in PANELS.values() for name in names]
        return sorted(self.commands, key=lambda name: order.index(name) if name in order else len(order))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command: Any = self.commands.get(cmd_name)
        if command is not None:
            _quiet(command.get_params(ctx))
            if ctx.parent is None:  # below `policychord choices`, fit is one of its few commands
                panel = next((panel for panel, names in PANELS.items() if cmd_name in names), None)
                command.rich_help_panel = command.rich_help_panel or panel
            command.help = _flowing(command.help or "")
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        command = _today(self, args[0])
        words = [command, *(RENAMED_OPTIONS.get(word, word) for word in args[1:])]
        for old, now in zip(args, words, strict=True):
            if old != now:
                aside.print(f"policychord: {old} is now called {now}; the old name works until the next version.")
        return super().resolve_command(ctx, words)

    def get_params(self, ctx: Any) -> Any:
        return _quiet(super().get_params(ctx))


def _today(group: Any, name: str) -> str:
    """The name of a command today."""
    new = RENAMED.get(name, name)
    return new if new in group.commands and name not in group.commands else name


def _flowing(words: str) -> str:
    """Paragraphs without the line breaks of the source; one with an indented list in it stays as it is."""
    paragraphs = inspect.cleandoc(words).split("\n\n")
    return "\n\n".join(part if "\n " in part else part.replace("\n", " ") for part in paragraphs)


def _quiet(params: Any) -> Any:
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
        elif param.param_type_name == "argument":
            param.display_type_rich = lambda ctx: None
        if param.name == "show_completion":  # for those who know what they do, and they know its name
            param.hidden = True
    return params


app = typer.Typer(
    cls=Pages,
    help="Policychord composes behaviours. At every step it finds the mixture of policies that best fits what is good, "
    "and proves how close to optimal the mixture is.",
    epilog="""[bold]Start here[/]
  policychord choices fit choices.csv  I have choices: which model?
  policychord tracks fit fish.csv      I have tracks: which forces?
  policychord agents fit policies.csv  I have policies: which weights?
  policychord studio                   see all of it in the browser
  policychord reproduce                I want the paper: its claims, 4 minutes
  policychord doctor                   is everything there that is needed?
No data yet?  choices simulate,  tracks simulate  and  agents simulate  write some.

Every command explains itself with --help, and takes --json for programs.
Tab completion for your shell:  policychord --install-completion""",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


class _Told:
    """The values of the options for all."""

    debug = False


def _version(wanted: bool) -> None:
    if wanted:
        print(f"policychord {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[
        bool, typer.Option("--debug", envvar="POLICYCHORD_DEBUG", help="Show where an error comes from.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    _Told.debug = debug
    if not debug:
        warnings.showwarning = _warn
    # Certificates are honest in float64 only; programs decide this, and this is the program. The variable reaches
    # JAX without loading it, and every process that a command starts.
    os.environ["JAX_ENABLE_X64"] = "1"
    # Fits multiply matrices of some thousand rows. Threads of OpenBLAS wait for each other there with a busy processor:
    # the same fit took thirty times as much processor time.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if not debug:
        # Whenever XLA loads a compiled program, it writes an error of 2,000 characters for each of LLVM's tuning flags,
        # which it takes for instructions that the processor lacks (openxla/xla issue 44565). The program is used all
        # the same, and its folder belongs to this processor alone. Failures of XLA still raise.
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if "jax" in sys.modules:
        sys.modules["jax"].config.update("jax_enable_x64", True)


_loaded: set[str] = set()


def load_commands() -> None:
    """Let every installed package add its commands, once. One that cannot be loaded is one line of output."""
    for name, point in installed(COMMANDS).items():
        if name in _loaded:
            continue
        _loaded.add(name)
        commands, groups = list(app.registered_commands), list(app.registered_groups)
        try:
            point.load()(app)
            typer.main.get_command(app)  # what it added is looked at only here
        except (Exception, SystemExit) as error:  # whatever a package of others does wrong, our commands stay
            app.registered_commands[:], app.registered_groups[:] = commands, groups
            aside.print(
                f"policychord: the commands of {name!r} ({point.value}) are missing: {type(error).__name__}: {error}",
                markup=False,
                soft_wrap=True,
            )


def main() -> None:
    """Run the command. Exit code 0: done, 1: failed, 2: bad input, 130: interrupted, 141: the output was closed."""
    _Told.debug = False
    load_commands()
    begin_command(_command(sys.argv[1:]))
    try:
        with interruptible():
            code = app(standalone_mode=False) or 0
            sys.stdout.flush()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except (BrokenPipeError, SystemExit) as end:  # `| head -1`: typer and rich turn most of these into exits with 1
        if getattr(end, "code", 1) != 1:
            raise
        os._exit(CLOSED_PIPE)
    except Exception as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # the page is on the screen already
            sys.exit(0)
        if _Told.debug:
            traceback.print_exc()
        words, code = _explained(error, _Told.debug)
        fail(words, code)
    if code == INTERRUPTED:
        leave()
    sys.exit(code)


def _command(words: list[str]) -> str:
    """The command that was asked for, such as `choices fit`."""
    inner: Any = typer.main.get_command(app)
    commands = []
    for word in words:
        if word.startswith("-"):
            continue
        word = _today(inner, word) if hasattr(inner, "commands") else word
        inner = getattr(inner, "commands", {}).get(word)
        if inner is None:
            break
        commands.append(word)
    return " ".join(commands)


def _explained(error: Exception, debug: bool = False) -> tuple[str, int]:
    """A sentence for people, and the exit code."""
    if isinstance(error, _UsageError):
        page = f"\nTry  {error.ctx.command_path} --help" if error.ctx else ""
        return _wrong_option(error) + page, 2
    if isinstance(error, ValueError):
        if hasattr(error, "errors"):
            return in_words(error), 2  # type: ignore[arg-type]
        return str(error), 2
    if isinstance(error, OSError):
        what = error.strerror or str(error)
        return what if error.filename is None else f"{error.filename}: {what}.", 1
    if isinstance(error, ModuleNotFoundError) and not (error.name or "").startswith("policychord"):
        return f"{error.name} is not installed: pip install 'policychord[studies]'  (policychord doctor shows more)", 1
    if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error):
        return "there is not enough memory for this: ask for fewer seeds, steps or boids.", 1
    again = shlex.join(["policychord", "--debug", *sys.argv[1:]])
    where = "see above" if debug else f"to see where, run  {again}"
    return f"this is a mistake in policychord, not yours: {type(error).__name__}: {error} ({where})", 1


def _wrong_option(error: Any) -> str:
    """The sentence about an option or argument: in our words where the parser had others."""
    if getattr(error, "option_name", "") == "--debug":
        return "--debug comes before the command: policychord --debug ..."
    param, cause = getattr(error, "param", None), error.__cause__
    if param is None or not hasattr(cause, "errors"):
        return error.format_message()
    name = param.opts[0] if param.param_type_name == "option" else param.metavar or param.name.upper()
    words = in_words(cause, sources=Sources({"": name}))
    return words if words.startswith(name) else f"{name}: {words}"


def _warn(message: Any, *where: Any, **more: Any) -> None:
    aside.print(f"policychord: {message}", markup=False, soft_wrap=True)
