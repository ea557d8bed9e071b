from policychord.cli import load_commands

from .command import here

load_commands()

__all__ = ["here"]
