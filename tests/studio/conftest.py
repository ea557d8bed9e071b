import pytest

from .serving import served


@pytest.fixture(scope="session")
def studio():
    yield from served()
