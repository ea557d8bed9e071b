"""Tests run in float64, with every shape type checked while it runs, and with fixed seeds."""

from jaxtyping import install_import_hook

with install_import_hook("policychord", "beartype.beartype"):
    import policychord  # noqa: F401

import jax
import numpy as np
import pytest
from hypothesis import settings

jax.config.update("jax_enable_x64", True)
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")


@pytest.fixture
def rng():
    return np.random.default_rng(20180725)
