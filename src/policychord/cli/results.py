"""`show`, in every group that fits: what a fit found, once more, from its folder."""

import json as reader
from pathlib import Path
from typing import Annotated, Any

import typer

from . import options
from .agents import agents
from .choices import choices
from .output import Json, emit, table
from .tracks import tracks


def read_results(folder: Path) -> dict[str, Any]:
    """What a fit wrote, if it did."""
    from ..runs.page import RECORD
    from ..runs.store import check_text

    path = folder / RECORD
    check_text(path)
    try:
        record: dict[str, Any] = reader.loads(path.read_text(encoding="utf-8"))
        texts = [*record["columns"], *(cell for row in record["rows"] for cell in row), record["source"],
                 record["verdict"], *record["sentences"], *record["warnings"], record["again"]]  # fmt: skip
        if all(isinstance(text, str) for text in texts):
            return record
    except FileNotFoundError:
        raise ValueError(f"{folder} has no {RECORD}: name the folder that a fit wrote, its --out.") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise ValueError(f"{path} is not what a fit wrote: run the fit again.")


def _show_command(
    folder: Annotated[Path, typer.Argument(help="The folder of a fit.", metavar="DIR", exists=True, file_okay=False)],
    pdf: Annotated[bool, typer.Option("--pdf", help="Print the page as report.pdf, by Chromium or Chrome.")] = False,
    json: Json = False,
) -> None:
    """Print the table, the verdict and the warnings of a fit again, and the command that made them."""
    from ..runs.page import print_page

    record = read_results(folder)
    shown = table(record["source"], record["columns"], record["rows"], right=record["columns"][1:])
    notes = [record["verdict"], *record["sentences"], *(f"Warning: {line}" for line in record["warnings"])]
    page = folder / "report.html"
    printed = print_page(page) if pdf else None
    options.require(not pdf or printed is not None, "--pdf", "", "no browser was found; policychord doctor says more")
    again = [f"It was made by:\n  {record['again']}"] if record["again"] else []
    emit(json, {"results": record, "out": folder, "files": [printed or page], "notes": notes}, shown, *notes, *again,
         f"Next: open {printed or page}.")  # fmt: skip


for _name, _group in (("choices", choices), ("tracks", tracks), ("agents", agents)):
    _examples = (f"policychord {_name} show out/{_name}", f"policychord {_name} show out/{_name} --pdf")
    _group.command("show", short_help="What a fit found, again, from its folder.", epilog=options.examples(*_examples))(
        _show_command
    )
