"""What the paper adds to the command line: its claims measured, two runs compared, its flocks and flights."""

import typer

from .compare import add_compare
from .flock import add_flock
from .quadrotor import add_quadrotor
from .reproduce import add_reproduce


def add_commands(app: typer.Typer) -> None:
    """The entry point in the group `policychord.commands`."""
    for add in (add_reproduce, add_compare, add_flock, add_quadrotor):
        add(app)
