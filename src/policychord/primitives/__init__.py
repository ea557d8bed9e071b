"""Primitives: reusable behaviours as distributions over an action set."""

from .base import AbstractPrimitive, Categorical, Draws, Table
from .columns import columns
from .gaussian import Gaussian
from .policy import Policy

__all__ = ["AbstractPrimitive", "Categorical", "Draws", "Gaussian", "Policy", "Table", "columns"]
