"""`policychord reproduce` as a user runs it: once for programs, and again, with nothing left to do, for people."""

import json
from pathlib import Path

from .command import run


def test_reproduce_theory(tmp_path):
    out = tmp_path / "theory"
    done = run("reproduce", "theory", "--out", out, "--json")
    assert done.code == 0, done.err
    record = json.loads(done.out)
    claims = json.loads((out / "claims.json").read_text())
    assert record["results"] == claims
    assert [claim["id"] for claim in claims] == [f"T{k}" for k in range(1, 13)]
    assert [claim["verdict"] for claim in claims] == ["reproduced"] * 11 + ["not reproduced"]
    assert {"report.html", "claims.json", "environment.json"} <= {Path(file).name for file in record["files"]}
    assert all(Path(file).is_file() for file in record["files"])
    assert not list(out.rglob("*.part"))
    again = run("reproduce", "theory", "--out", out)
    assert again.code == 0, again.err
    for word in (*(claim["id"] for claim in claims), "11 reproduced", "1 not reproduced", "report.html"):
        assert word in again.out
    assert json.loads((out / "claims.json").read_text()) == claims
