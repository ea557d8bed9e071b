"""The room Choices."""

from .room import CHOICES

__all__ = ["CHOICES"]
