"""The page Flight."""

from .page import FLIGHT

__all__ = ["FLIGHT"]
