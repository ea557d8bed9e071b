"""`policychord compare` as people read it: what moved in full, what only one run has in a line."""

import json

from policychord_paper.commands.compare import _spans


def run(folder, ids, settings):
    folder.mkdir()
    claims = [
        {
            "id": name,
            "statement": "",
            "paper": "",
            "reported": "",
            "measured": {"x": {"value": 1.0}},
            "rule": "",
            "verdict": "partly",
        }
        for name in ids
    ]
    (folder / "claims.json").write_text(json.dumps(claims))
    (folder / "environment.json").write_text(json.dumps({"settings": settings}))
    return folder


def test_a_part_beside_the_whole(here, tmp_path):
    flock = {f"setting_{k}": k for k in range(50)}
    whole = run(
        tmp_path / "whole", [f"{letter}{k}" for letter in "TF" for k in range(1, 12)],
        {"theory": {"problems": 240, "seed": 0}, "flock": flock},
    )  # fmt: skip
    part = run(tmp_path / "part", [f"T{k}" for k in range(1, 12)], {"theory": {"problems": 10, "seed": 0}})
    answer = here("compare", whole, part)
    assert answer.code == 0, answer.err
    lines = [" ".join(line.split()) for line in answer.out.splitlines()]
    assert "first claims F1 to F11; 50 settings of flock" in lines
    assert "theory / problems 240 10" in lines
    assert len(lines) < 20
    told = json.loads(here("compare", whole, part, "--json").out)  # programs get all of it
    assert len(told["results"]["settings"]) == 51


def test_claims_that_follow_each_other_are_one_word():
    assert _spans(["T1", "T2", "T3", "F8", "B1", "B2", "B10"]) == "T1 to T3, F8, B1 to B2, B10"
