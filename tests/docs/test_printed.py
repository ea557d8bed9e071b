"""The comparison of what a page shows with what its cells print: rounding passes, anything else does not."""

import sys

import pytest

from .pages import ROOT

sys.path.insert(0, str(ROOT / "docs" / "_ext"))
from printed import same

SHOWN = "gap 2e-19, weight 0.123 of 40 boids\nreturn -146.3 ± 90"


@pytest.mark.parametrize(
    "printed",
    [SHOWN, SHOWN.replace("2e-19", "7e-21"), SHOWN.replace("0.123", "0.124"), SHOWN.replace("-146.3", " -146.2")],
)
def test_rounding_and_columns_pass(printed):
    assert same(SHOWN, printed)


@pytest.mark.parametrize(
    ("old", "new"),
    [("2e-19", "5e-5"), ("0.123", "0.133"), ("40", "43"), ("boids", "birds"), ("-146.3", "146.3"), ("± 90", "")],
)
def test_another_number_or_word_does_not(old, new):
    assert not same(SHOWN, SHOWN.replace(old, new))
