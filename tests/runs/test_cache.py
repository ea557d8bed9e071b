"""Results on disk are data: they come back as they were, nothing in a file is executed, and all else is done again."""

import io
import json
import os
from pathlib import Path
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from benchmarks.attack import attack_results
from pydantic import BaseModel

from policychord import problem
from policychord.core.objective import Problem
from policychord.runs import cache
from policychord.runs.cache import MissingError, Result, forget_others, load_result, save_result, step_files
from policychord_paper import STUDIES, load_study
from policychord_paper.claim import Quantity

MODULE = "policychord.core.objective"


class Told(BaseModel):
    seed: int = 0
    data: Path | None = None


class Foreign(NamedTuple):
    x: int = 0


def same(one, two) -> bool:
    """Equal in kind, value and, for arrays, every bit."""
    if type(one) is not type(two):
        return False
    if isinstance(one, np.ndarray | np.generic):
        return one.dtype == two.dtype and one.shape == two.shape and one.tobytes() == two.tobytes()
    if isinstance(one, dict):
        return same(list(one), list(two)) and all(same(one[name], two[name]) for name in one)
    if isinstance(one, tuple | list):
        return len(one) == len(two) and all(map(same, one, two))
    return one == two or (one != one and two != two)


def back(path, value):
    save_result(path, "a step", Result(value, 1.25))
    found = load_result(path)
    assert found.seconds == 1.25
    return found.value


def test_what_was_saved_is_what_is_loaded(tmp_path, rng):
    value = {
        "numbers": [0.1 + 0.2, -0.0, float("nan"), float("inf"), 2**70, True, None, "text \N{SNOWMAN}"],
        ("a", 1, 2.5, None): {"nested": ((), [], {})},
        3: np.float32(0.5), "scalars": (np.int64(3), np.bool_(True), np.str_("x")),
        "arrays": [rng.normal(size=(2, 3)), np.asfortranarray(rng.normal(size=(2, 3))), np.zeros((0, 2), np.int8),
                   np.array(1.5), np.array(["a", "bc"]), np.arange(3) > 1],
        "record": Quantity(np.float64(1.0), interval=(0.0, 2.0)),
        "problem": problem(pi=np.eye(2), action_cost=np.zeros(2), eps=0.5),
    }  # fmt: skip
    found = back(tmp_path / "a" / "b.npz", value)
    assert same(found, value)
    assert isinstance(found["problem"], Problem)


def test_arrays_of_jax_come_back_as_numpy(tmp_path):
    found = back(tmp_path / "x.npz", jnp.arange(3.0))
    assert isinstance(found, np.ndarray)
    assert found.tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"a": [1, lambda: 0]}, r"\['a'\]\[1\] is a function"),
        (Quantity(Path("x")), r"\.value is a PosixPath"),
        ([Foreign()], r"\[0\] is a Foreign \(tests\.runs\.test_cache\)"),
        ({"x": np.array([object()])}, r"\['x'\] is an array of Python objects"),
        ({"t": pd.DataFrame()}, r"\['t'\] is a DataFrame"),
        ((Told(),), r"\[0\] is a Told"),
        ({1, 2}, "is a set"),
    ],
)
def test_what_is_not_data_is_refused_with_its_place(tmp_path, value, place):
    with pytest.raises(TypeError, match=f"the result of step 'a step'{place}" if place[0] != "i" else place):
        save_result(tmp_path / "x.npz", "a step", Result(value, 0.0))
    assert list(tmp_path.iterdir()) == []


def planted(path, value, **more):
    """A file of the right form with anything in it."""
    file, text = io.BytesIO(), json.dumps({"format": cache.FORMAT, "seconds": 1.0, "value": value} | more)
    np.savez(file, **{cache.STRUCTURE: np.frombuffer(text.encode(), np.uint8), "0": np.arange(2)})
    path.write_bytes(file.getvalue())


@pytest.mark.parametrize(
    "value",
    [
        {"record": "os:system", "fields": {}},
        {"record": "os:stat_result", "fields": {}},
        {"record": "policychord.__main__:main", "fields": {}},
        {"record": "policychord.runs.cache:Path", "fields": {}},
        {"record": "policychord.runs.cache:load_result", "fields": {}},
        {"record": "policychord.runs.cache:io.BytesIO", "fields": {}},
        {"record": "policychord.nowhere:Quantity", "fields": {}},
        {"record": "policychord_paper.compare:Quantity", "fields": {"value": 1.0}},
        {"record": 3, "fields": {}},
        {"array": 7},
        {"array": "../0"},
        {"pickle": "gASVAAAA"},
        {"tuple": 3},
        {"dict": [[[], 1]]},
        {},
        {"a": 1, "b": 2},
    ],
)
def test_a_file_with_anything_else_in_it_is_missing(tmp_path, value):
    planted(tmp_path / "x.npz", value)
    with pytest.raises(MissingError):
        load_result(tmp_path / "x.npz")


def test_another_format_is_missing(tmp_path):
    planted(tmp_path / "x.npz", 1)
    assert load_result(tmp_path / "x.npz").value == 1
    planted(tmp_path / "x.npz", 1, format=cache.FORMAT + 1)
    with pytest.raises(MissingError):
        load_result(tmp_path / "x.npz")


class Payload:
    """What a pickle would run when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize("form", ["pickle", "npy", "npz"])
def test_code_in_a_file_is_not_run(tmp_path, form):
    import pickle

    file, ran = tmp_path / "x.npz", tmp_path / "ran"
    bomb = np.array([Payload(ran)], dtype=object)
    if form == "pickle":
        file.write_bytes(pickle.dumps(Payload(ran)))
    else:
        with open(file, "wb") as open_file:
            np.save(open_file, bomb) if form == "npy" else np.savez(open_file, **{cache.STRUCTURE: bomb, "0": bomb})
    with pytest.raises(MissingError):
        load_result(file)
    assert not ran.exists()


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04nonsense", b"\x93NUMPY\x01\x00", b"cnowhere\nthing\n."])
def test_what_cannot_be_read_is_missing(tmp_path, content):
    (tmp_path / "broken").write_bytes(content)
    with pytest.raises(MissingError):
        load_result(tmp_path / "broken")
    with pytest.raises(MissingError):
        load_result(tmp_path / "nowhere")


def test_study_step_settings_and_data_each_have_their_say(tmp_path):
    def place(study="flock", step="a step", settings=Told()):  # noqa: B008
        return step_files(tmp_path, study, {step: [MODULE]}, settings)[step]

    (tmp_path / "d.csv").write_text("1")
    folder = Told(data=tmp_path)
    found = [place(), place("bandit"), place(step="another step"), place(settings=Told(seed=1)), place(settings=folder)]
    (tmp_path / "d.csv").write_text("2")
    found.append(place(settings=folder))
    assert len(set(found)) == len(found)
    assert place() == found[0]


def test_data_are_read_once_for_all_steps(tmp_path, monkeypatch):
    (tmp_path / "d.csv").write_text("1")
    read, inner = [], Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: (read.append(path), inner(path))[1])
    step_files(tmp_path, "flock", {str(k): [MODULE] for k in range(20)}, Told(data=tmp_path))
    assert read.count(tmp_path / "d.csv") == 1


def test_names_are_fit_for_files(tmp_path):
    path = step_files(tmp_path, "flock", {"leaders 10%: a/b, c": [MODULE]}, Told())["leaders 10%: a/b, c"]
    assert path.parent == tmp_path / ".work" / "flock"
    assert path.name.startswith("leaders-10-a-b-c-")


# The least that still does every step of a study. A new study needs a line only if its quick run is long.
TINY = {
    "theory": {"problems": 6, "judged": 2, "circuits": 1, "stability_draws": 20, "horizon": 2.0},
    "flock": {"seeds": 1, "goal_seeds": 1, "temperature_seeds": 1, "shorten": 0.005},
    "bandit": {"subjects": 6, "blocks": 2, "splits": 1, "recovery_cohorts": 1, "temperatures": (0.01, 0.1)},
    "quadrotor": {"seeds": 2, "control_seeds": 2, "steps": 3, "resamples": 100, "temperatures": (0.05, 0.5)},
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", STUDIES)
def test_results_of_every_study_survive(name, tmp_path):
    study = load_study(name)
    settings = study.settings(quick=True).model_copy(update=TINY.get(name, {}))
    for step, work in study.experiments(settings).items():
        value = work()
        save_result(tmp_path / "x.npz", step, Result(value, 0.0))
        assert same(load_result(tmp_path / "x.npz").value, value), step


def test_damaged_results_of_every_kind_are_refused_or_made_again():
    found = attack_results(100, seed=1)
    assert found.broken == []
    assert found.refused > 70


def test_a_file_that_unpacks_to_more_than_it_has_is_missing(tmp_path):
    """Ours are not packed: 1.5 MB that unpack to 3 GB are somebody else's, and never unpacked."""
    save_result(tmp_path / "x.npz", "step", Result({"a": np.zeros(100_000)}, 1.0))
    with np.load(tmp_path / "x.npz") as ours:
        np.savez_compressed(tmp_path / "bomb.npz", **ours)
    with pytest.raises(MissingError) as refused:
        load_result(tmp_path / "bomb.npz")
    assert "not packed" in str(refused.value.__cause__)


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir])
def test_a_pipe_or_a_folder_in_place_of_a_result_is_missing_and_stays(tmp_path, make):
    place = tmp_path / ".work" / "toy" / "x.npz"
    place.parent.mkdir(parents=True)
    make(place)
    with pytest.raises(MissingError):
        load_result(place)
    forget_others(tmp_path, "toy", [])
    assert place.exists() == (make is Path.mkdir)
