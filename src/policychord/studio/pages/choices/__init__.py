"""The page Choices."""

from .page import CHOICES

__all__ = ["CHOICES"]
