import pytest

from .browsing import browser, visit  # noqa: F401
from .serving import served


@pytest.fixture(scope="session")
def studio():
    yield from served()
