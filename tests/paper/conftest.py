from policychord.cli import load_commands

from ..cli.command import here

__all__ = ["here"]

load_commands()
