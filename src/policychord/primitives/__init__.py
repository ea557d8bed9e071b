"""Primitives: reusable behaviours as distributions over an action set."""

from .base import AbstractPrimitive, Draws
from .columns import columns
from .gaussian import Gaussian
from .policy import Policy
from .table import Categorical, Table

__all__ = ["AbstractPrimitive", "Categorical", "Draws", "Gaussian", "Policy", "Table", "columns"]
