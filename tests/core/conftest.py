"""Fixtures for the tests of the core."""

import jaxtyping
import pytest


@pytest.fixture
def without_type_checks():
    """What a user meets, who runs without the type checker: the library's own complaints."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
