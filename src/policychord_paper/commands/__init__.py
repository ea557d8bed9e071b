"""What the paper adds to the command line: its claims measured, two runs compared, its flocks and flights."""

import typer

from . import compare, flock, quadrotor, reproduce
from .app import app as ours


def add_commands(app: typer.Typer) -> None:
    """The entry point in the group `policychord.commands`."""
    app.registered_commands += ours.registered_commands
