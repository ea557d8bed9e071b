"""Primitives: reusable behaviours as distributions over an action set."""

from .base import AbstractPrimitive
from .columns import columns
from .gaussian import Gaussian
from .policy import Policy
from .table import Categorical, Table

__all__ = ["AbstractPrimitive", "Categorical", "Gaussian", "Policy", "Table", "columns"]
