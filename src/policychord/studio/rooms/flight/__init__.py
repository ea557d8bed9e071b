"""The room Flight."""

from .room import FLIGHT

__all__ = ["FLIGHT"]
