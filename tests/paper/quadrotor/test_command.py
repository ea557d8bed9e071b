"""`policychord quadrotor` as a user runs it."""

import json
import subprocess
import sys


def run(*words):
    command = [sys.executable, "-m", "policychord", "quadrotor", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


def test_it_prints_the_table_and_writes_what_it_says(tmp_path):
    done = run("lqr", "--seeds", "3", "--gate", "prior", "--out", str(tmp_path / "new"), "--seed", "2")
    assert done.returncode == 0, done.stderr
    for word in ("baseline", "stabilise", "track", "composed", "delta", "table.json", "Next:"):
        assert word in done.stdout
    kept = json.loads((tmp_path / "new" / "table.json").read_text())
    assert [row["name"] for row in kept["controllers"]] == ["baseline", "stabilise", "track", "composed", "fixed 50/50"]
    assert kept["settings"]["composition"]["gate"] == "prior"
    assert kept["settings"]["disturbance"] == "centre"  # our default outside replication
    assert kept["controllers"][3]["stabilising"] == 0.5
    assert {path.name for path in (tmp_path / "new" / "figures").iterdir()} == {
        "flights.png", "flights.svg", "costs.png", "costs.svg"
    }  # fmt: skip
    assert "Warning" not in done.stderr
