"""What the five walks gave when they were frozen, they still give."""

import json

import pytest
from benchmarks.walks import GOLDEN, WALKS, differences


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.name)
def test_a_walk_gives_what_was_frozen(walk, tmp_path):
    golden = json.loads((GOLDEN / f"{walk.name}.json").read_text(encoding="utf-8"))
    present = json.loads(json.dumps(walk.run(tmp_path / "out")))
    assert not list(differences(golden, present, walk.tolerance))


def test_a_difference_is_seen():
    golden = {"a": [1.0, 2.0], "b": {"verdict": "partly"}, "c": float("nan")}
    assert not list(differences(golden, {"a": [1.0, 2.0 + 1e-12], "b": {"verdict": "partly"}, "c": float("nan")}, 1e-9))
    for other in (
        {"a": [1.0, 2.0 + 1e-6], "b": {"verdict": "partly"}, "c": float("nan")},
        {"a": [1.0, 2.0], "b": {"verdict": "reproduced"}, "c": float("nan")},
        {"a": [1.0], "b": {"verdict": "partly"}, "c": float("nan")},
        {"a": [1.0, 2.0], "b": {}, "c": 0.0},
    ):
        assert len(list(differences(golden, other, 1e-9))) >= 1
