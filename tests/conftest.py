"""Tests run in float64, with every shape type checked while it runs, and with fixed seeds."""

import gc
import os
from importlib.metadata import version
from pathlib import Path

# Nearly all of the time is XLA's, which compiles thousands of programs that run once: without fusions it takes half of
# it. Unknown flags end the process, so only versions get this one that have it; processes that tests start inherit it.
if version("jaxlib").startswith(("0.8.", "0.9.", "0.10.")):
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_cpu_use_fusion_emitters=false"

import jaxtyping
from jaxtyping import install_import_hook

from . import shapes  # noqa: F401  (the second hook finds it by name)

with install_import_hook("policychord", "beartype.beartype"):
    pass

import jax
import numpy as np
import pytest
from hypothesis import settings

from policychord.core import _kernels
from policychord.runs.compiled import keep_programs

# these load when a test asks for them; processes that tests start run unchecked
install_import_hook(
    [*(f"policychord.{name}" for name in ("choices", "fitting", "gym", "learning", "stats")), "policychord_paper"],
    "tests.shapes.check",
)
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_disable_most_optimizations", True)  # half of what is left; numba's kernels are as ever
keep_programs()  # what another worker, or the last run, compiled is loaded
gc.set_threshold(100_000, 20, 50)  # tracing makes many objects that live on: to look at them all took a sixth of it
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")


MAPS = Path("/proc/self/maps")
MOST_MAPS = 20_000  # Linux gives a process 65,530 areas of memory, and XLA crashes when it gets no more


@pytest.fixture(autouse=True, scope="session")
def compiled_solver():
    """Else the first small problems on a machine were solved in Python, and rounded otherwise."""
    _kernels._kernel_for(False)


@pytest.fixture(autouse=True, scope="module")
def room_for_programs():
    """Every compiled program takes areas of memory; programs of the files before are dropped when they are many."""
    yield
    if MAPS.exists() and MAPS.read_bytes().count(b"\n") > MOST_MAPS:
        jax.clear_caches()
        gc.collect()


@pytest.fixture
def rng():
    return np.random.default_rng(20180725)


@pytest.fixture
def without_type_checks():
    """What a user meets, who runs without the type checker: the library's own complaints."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(autouse=True)
def own_environment():
    """The command sets variables for the processes that it starts; the next test's processes are none of them."""
    before = dict(os.environ)
    yield
    for name in os.environ.keys() - before.keys():
        del os.environ[name]
    os.environ.update(before)
