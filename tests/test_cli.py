"""The command as a user runs it: a process, its output and its exit code."""

import functools
import json
import signal
import subprocess
import sys

import pytest


def run(*words, **options):
    return subprocess.run(
        [sys.executable, "-m", "policychord", *words], capture_output=True, text=True, timeout=600, **options
    )


def test_help_and_version():
    page = run("--help")
    assert page.returncode == 0
    assert "reproduce" in page.stdout
    assert run("--version").stdout.startswith("policychord ")
    assert "--out" in run("reproduce", "--help").stdout


def test_reproduce_theory_writes_the_ledger_and_the_figures(tmp_path):
    done = run("reproduce", "theory", "--out", str(tmp_path / "theory"))
    assert done.returncode == 0, done.stderr
    claims = json.loads((tmp_path / "theory" / "claims.json").read_text())
    assert [claim["id"] for claim in claims] == [f"T{k}" for k in range(1, 13)]
    assert set(claims[0]) == {"id", "statement", "paper", "reported", "measured", "rule", "verdict"}
    assert [c["verdict"] for c in claims] == ["reproduced"] * 11 + ["not reproduced"]
    names = {path.name for path in (tmp_path / "theory" / "figures").iterdir()}
    assert len([n for n in names if n.endswith(".svg")]) == len([n for n in names if n.endswith(".png")]) == 4
    for claim in claims:
        assert claim["id"] in done.stdout
    assert "claims.json" in done.stdout


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["reproduce", "poetry"], 2, "poetry"),
        (["reproduce", "theory", "--seed", "-1"], 2, "seed"),
        (["reproduce", "theory", "--sead", "1"], 2, "sead"),
        (["sing"], 2, "sing"),
    ],
)
def test_bad_words_get_a_sentence_and_exit_code_2(words, code, said):
    answer = run(*words)
    assert answer.returncode == code
    assert said in answer.stderr
    assert "Traceback" not in answer.stderr


def test_ctrl_c_says_so_and_leaves_nothing_half_done(tmp_path):
    command = [sys.executable, "-m", "policychord", "reproduce", "theory", "--out", str(tmp_path / "theory")]
    # started from a background job, a process would inherit that Ctrl-C is ignored
    listen = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=listen) as process:
        assert "[1/" in process.stderr.readline()  # the work has begun
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert process.returncode == 130
    assert "interrupted" in rest
    assert "Traceback" not in rest
    assert not list((tmp_path / "theory").rglob("*.part"))


def test_a_folder_that_cannot_be_written_fails_at_once(tmp_path):
    (tmp_path / "file").write_text("")
    answer = run("reproduce", "theory", "--out", str(tmp_path / "file" / "below"))
    assert answer.returncode == 1
    assert "--out" in answer.stderr
    assert "Traceback" not in answer.stderr
