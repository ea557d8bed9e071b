"""What people see when something is wrong: one sentence, an exit code, and no traceback unless they ask."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from policychord.cli.app import _explained

from .command import process, run


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("sing", "No such command 'sing'"),
        ("flok milling", "Did you mean 'flock'?"),
        ("flock", "SCENARIO"),
        ("flock polarisation", "SCENARIO: 'polarisation' is not one of 'polarization', 'milling'"),
        ("flock milling --sede 1", "--sede"),
        ("flock milling --debug", "--debug comes before the command"),
        ("flock milling --eps -1", "--eps -1: must be at least 1e-09."),
        ("flock milling --eps nan", "--eps nan: must be a finite number."),
        ("flock milling --boids 2.5", "--boids '2.5': must be a whole number."),
        ("flock milling --seeds 0", "--seeds 0: must be at least 1."),
        ("flock milling --update later", "--update: 'later' is not one of 'synchronous', 'sequential'"),
        ("flock milling --settings nowhere.toml", "nowhere.toml"),
        ("quadrotor wings", "PAIR: 'wings' is not one of 'pd', 'lqr'"),
        ("quadrotor pd --gate open", "--gate: 'open' is not one of 'equilibrium', 'flow', 'circuit', 'one-step'"),
        ("quadrotor pd --eps inf", "--eps inf: must be at most 1e+09."),
        ("quadrotor pd --seeds 1", "--seeds 1: must be at least 2."),
        ("quadrotor pd --seed -1", "--seed -1: must be at least 0."),
        ("quadrotor pd --impulse 2", "--impulse 2: only the lqr pair is pushed; with pd leave it out."),
        ("choices fit nowhere.csv", "nowhere.csv does not exist"),
        ("choices fit c.csv --eps 0", "--eps 0: must be at least 1e-09."),
        ("choices fit c.csv --primitives exploit,sing", "--primitives 'sing': there are exploit,"),
        ("choices fit c.csv --experiment 2 --noise 3", "--noise 3: belongs to --experiment auto or custom"),
        ("choices simulate c.csv --subjects 0", "--subjects 0: must be at least 1."),
        ("choices simulate c.csv --seed -1", "--seed -1: must be at least 0."),
        ("reproduce poetry", "poetry"),
        ("reproduce flock --data .", "the flock study reads no data"),
    ],
)
def test_bad_input_gets_a_sentence_and_2(words, said, here, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answer = here(*words.split())
    assert answer.code == 2
    assert said in answer.err
    assert answer.err.startswith("policychord: ")
    assert "Traceback" not in answer.err
    assert answer.out == ""
    assert not list(tmp_path.iterdir())  # nothing was begun


@pytest.mark.parametrize(
    "words",
    [
        "sweep run PLAN", "fit PLAN", "flock milling --settings PLAN", "tracks check x.csv --settings PLAN",
        "choices fit PLAN", "tracks check PLAN",
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["pipe.toml", "device.toml", "folder.toml"])
def test_what_never_ends_is_refused_at_once(words, kind, here, tmp_path, monkeypatch):
    """A pipe into which nobody writes, and a device that never ends."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe.toml")
    os.symlink("/dev/zero", "device.toml")
    os.mkdir("folder.toml")
    answer = here(*words.replace("PLAN", kind).split())
    assert answer.code == 2
    assert kind in answer.err
    assert any(word in answer.err for word in ("pipe", "folder", "directory"))


def test_settings_of_gigabytes_are_refused_before_they_are_read(here, tmp_path):
    with open(tmp_path / "plan.toml", "wb") as file:
        file.truncate(10**12)  # takes no place on the disk
    answer = here("sweep", "run", tmp_path / "plan.toml")
    assert answer.code == 2
    assert "1,000,000,000,000 bytes" in answer.err


@pytest.mark.parametrize(
    ("words", "command", "code"),
    [
        ("flock milling --eps -1", "flock", 2),
        ("choices fit nowhere.csv", "choices fit", 2),
        ("sweep run nowhere.toml", "sweep run", 2),
        ("sweep status .", "sweep status", 2),
        ("compare here there", "compare", 2),
        ("sing", "", 2),
        ("flock milling --out file/below", "flock", 1),
    ],
)
def test_a_program_gets_an_object_whatever_happens(words, command, code, here, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    answer = here(*words.split(), "--json")
    told = json.loads(answer.out)
    assert told == {"command": command, "error": told["error"], "code": code}
    assert answer.code == code
    assert answer.err == f"policychord: {told['error']}\n"


def test_debug_shows_where(here, monkeypatch):
    words = ("flock", "milling", "--eps", "-1")
    asked = here("--debug", *words)
    assert asked.code == 2
    assert "Traceback" in asked.err
    assert asked.err.endswith("--eps -1: must be at least 1e-09.\n")
    monkeypatch.setenv("POLICYCHORD_DEBUG", "1")
    assert "Traceback" in here(*words).err


def test_a_bug_is_called_one_and_says_how_to_find_it(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["policychord", "flock", "milling", "--out", "my results"])
    words, code = _explained(KeyError("weights"))
    assert code == 1
    assert "mistake in policychord" in words
    assert "KeyError" in words
    assert "policychord --debug flock milling --out 'my results'" in words


def test_missing_extras_and_memory_are_no_bugs():
    words, code = _explained(ModuleNotFoundError("No module named 'pandas'", name="pandas"))
    assert (code, "pip install 'policychord[studies]'" in words) == (1, True)
    assert "memory" in _explained(MemoryError())[0]
    assert "memory" in _explained(RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 80 bytes"))[0]


def test_xla_writes_no_errors_about_programs_that_it_loads(here, monkeypatch):
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    here("--debug", "doctor", "--json")
    assert "TF_CPP_MIN_LOG_LEVEL" not in os.environ
    here("doctor", "--json")
    assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "3"  # before JAX is loaded, and for workers too
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    here("doctor", "--json")
    assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "0"


def test_a_folder_that_cannot_be_written_fails_before_the_work(here, tmp_path):
    (tmp_path / "file").write_text("")
    answer = here("flock", "milling", "--out", tmp_path / "file" / "below")
    assert answer.code == 1
    assert "--out" in answer.err
    assert "Traceback" not in answer.err


def test_a_full_disk_leaves_nothing_half_written(tmp_path):
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))"
    answer = run("choices", "simulate", tmp_path / "choices.csv", "--subjects", "3", after=full)
    assert answer.code == 1
    assert "choices.csv" in answer.err
    assert "Traceback" not in answer.err
    assert not list(tmp_path.iterdir())


def test_ctrl_c_is_heard_while_compiled_code_runs(tmp_path):
    words = ("flock", "leaders", "--steps", 20_000, "--out", tmp_path / "out")
    with subprocess.Popen(process(*words), stderr=subprocess.PIPE, text=True) as flying:
        assert "[1/" in flying.stderr.readline()  # the work has begun
        flying.send_signal(signal.SIGINT)
        rest = flying.stderr.read()
    assert flying.returncode == 130
    assert rest.endswith("policychord: interrupted; no file was left half-written.\n")
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize("pause", [0.0, 0.2, 1.0])
def test_ctrl_c_twice_ends_at_once_and_quietly(tmp_path, pause):
    words = ("flock", "leaders", "--steps", 20_000, "--out", tmp_path / "out")
    with subprocess.Popen(process(*words), stderr=subprocess.PIPE, text=True) as flying:
        assert "[1/" in flying.stderr.readline()
        flying.send_signal(signal.SIGINT)
        time.sleep(pause)
        flying.send_signal(signal.SIGINT)
        said = flying.stderr.read()
    assert flying.returncode == 130
    assert said.count("policychord: interrupted") == 1
    assert "Traceback" not in said


@pytest.mark.parametrize("words", [("doctor",), ("doctor", "--json"), ("--help",), ("compare", "a", "b")])
def test_closed_streams_are_no_reason_to_complain(words):
    closed = subprocess.run(
        process(*words, after="import os, sys; sys.stdout = None; os.close(1)"), stderr=-1, text=True
    )
    assert closed.returncode == (2 if "compare" in words else 0)
    assert "Traceback" not in closed.stderr
    mute = subprocess.run(process(*words, after="import os, sys; sys.stderr = None; os.close(2)"), stdout=-1, text=True)
    assert mute.returncode == closed.returncode


@pytest.mark.parametrize("words", [("doctor",), ("doctor", "--json"), ("reproduce", "--help")])
def test_a_reader_that_leaves_early_ends_the_command_quietly(words):
    with subprocess.Popen(process(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as speaking:
        speaking.stdout.close()
        said = speaking.stderr.read()
    assert speaking.returncode == 141
    assert "Traceback" not in said
    assert "Exception ignored" not in said


def test_the_folder_of_choices_reaches_the_study_that_lends_them(tmp_path):
    """The theory study reads no table, but it takes gating problems of people's trials from the one that does."""
    from policychord.choices.data import as_table
    from policychord.choices.simulate import synthetic
    from policychord_paper.commands.reproduce import _chosen, _lenders

    for experiment in "12":
        as_table(synthetic(experiment, 3, blocks=2)).to_csv(tmp_path / f"data{experiment}.csv", index=False)
    lenders = {
        one.study.name: one.settings for one in _lenders(_chosen("theory", True, 0, tmp_path), True, 0, tmp_path)
    }
    assert lenders["bandit"].data == tmp_path


def test_old_names_work_for_a_version_and_say_the_new_one(here, tmp_path):
    answer = here("bandit", "fit", tmp_path / "none.csv", "--json")
    assert json.loads(answer.out)["command"] == "choices fit"
    assert answer.err.startswith("policychord: bandit is now called choices; the old name works until")
    assert here("tracks", "card", tmp_path / "none.csv").err.startswith("policychord: card is now called check;")
    assert "No such command 'card'" in here("card").err  # below tracks only
