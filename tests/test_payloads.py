"""A harmless payload in every file that a command reads back: none runs, each is refused or counts as missing.

`READERS` names every module that reads files. A module that begins to read some is noticed, and gets a payload here.
"""

import ast
import json
import os
import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xarray as xr
from benchmarks.frames import unpack

import policychord
from policychord import _files
from policychord.choices.data import TASKS, read_choices
from policychord.cli.options import Given, settle
from policychord.cli.results import read_results
from policychord.inference import Model, likelihood, real
from policychord.inference.learning import objectives
from policychord.runs import cache, fit, sweep
from policychord.runs.plan import SweepPlan, read_sweep_plan
from policychord.runs.policies import open_policies
from policychord.runs.store import read_settings, write_dataset
from policychord.studio.uploads import Upload
from policychord.studio.wire import Frame, pack, read_message
from policychord.tracks.reading import read_tracks
from policychord.tracks.settings import TrackPlan
from policychord_paper import compare

SOURCE = Path(policychord.__file__).parents[1]
PLAN = SweepPlan.model_validate(
    {"study": "flock", "episodes": 1, "settings": {"steps": 5}, "grid": {"eps": [0.1, 1.0]}}
)
BATCH = f"batches/{sweep.batches_of(PLAN)[0].id}.parquet"
ROWS = "subject,block,trial,choice,reward\n" + "".join(f"1,1,{k},{1 + k % 2},{k}\n" for k in range(1, 13))


class Payload:
    """A pickle of it makes a file when it is read."""

    def __init__(self, ran: Path):
        self.ran = ran

    def __reduce__(self):
        return Path.touch, (self.ran,)


class Attack(NamedTuple):
    """A payload in a file, and what a command does with the file."""

    plant: Callable[[Path, Path], Any]  # (folder, file that the payload makes)
    read: Callable[[Path], Any]  # (folder)


def pickled(name: str) -> Callable[[Path, Path], Any]:
    """A pickle in place of the file."""
    return lambda folder, ran: _file(folder / name).write_bytes(pickle.dumps(Payload(ran)))


def text(name: str, form: str) -> Callable[[Path, Path], Any]:
    """A text in which CODE is Python and PICKLE a pickle, as a careless reader would run them."""

    def plant(folder: Path, ran: Path) -> None:
        code = f"__import__('pathlib').Path('{ran}').touch()"
        _file(folder / name).write_text(form.replace("CODE", code).replace("PICKLE", pickle.dumps(Payload(ran)).hex()))

    return plant


def objects(name: str) -> Callable[[Path, Path], Any]:
    """Arrays of objects, which NumPy would unpickle."""

    def plant(folder: Path, ran: Path) -> None:
        bomb = np.array([Payload(ran)], dtype=object)
        with open(_file(folder / name), "wb") as file:
            np.savez(file, **{cache.STRUCTURE: bomb, "0": bomb})

    return plant


def array_of_objects(name: str) -> Callable[[Path, Path], Any]:
    """One such array by itself."""
    return lambda folder, ran: np.save(folder / name, np.array([Payload(ran)], dtype=object))


def foreign_type(folder: Path, ran: Path) -> None:
    """A Parquet file with a type that old versions of Arrow unpickle, and with objects as pandas stores them."""
    payload = pickle.dumps(Payload(ran))
    about = {b"ARROW:extension:name": b"arrow.py_extension_type", b"ARROW:extension:metadata": payload}
    columns = {"point": pa.array([0, 1]), "episode": pa.array([0, 0]), "eps": pa.array([0, 0])}
    fields = [pa.field(name, pa.int64(), metadata=about if name == "eps" else None) for name in columns]
    pandas = {"columns": [{"name": "eps", "pandas_type": "object", "numpy_type": "object", "metadata": None}],
              "index_columns": [], "column_indexes": [], "attributes": {"code": payload.hex()}}  # fmt: skip
    schema = pa.schema(fields, metadata={b"pandas": json.dumps(pandas).encode()})
    pq.write_table(pa.table(list(columns.values()), schema=schema), _file(folder / BATCH))


def zarr_array(**about: Any) -> Callable[[Path, Path], Any]:
    """A Zarr folder of the second format, whose codecs may unpickle."""

    def plant(folder: Path, ran: Path) -> None:
        known = {"zarr_format": 2, "shape": [1], "chunks": [1], "order": "C", "compressor": None, "filters": None}
        array = _file(folder / "data.zarr" / "x" / ".zarray").parent
        (array / ".zarray").write_text(json.dumps(known | about))
        (array / ".zattrs").write_text('{"_ARRAY_DIMENSIONS": ["t"]}')
        (array.parent / ".zgroup").write_text('{"zarr_format": 2}')
        (array / "0").write_bytes(pickle.dumps([Payload(ran), [1], "|O"]))

    return plant


def read_fit_data(folder: Path) -> None:
    given = fit.FitPlan.model_validate({"family": "flock", "data": "data.zarr"})
    fit._observed(given, fit._design_of(given, None), folder)


def read_upload(folder: Path) -> None:
    from policychord.studio.pages.choices.state import read_upload
    from policychord.studio.pages.choices.view import ChoicesView

    read_upload(Upload("x.csv", (folder / "x.csv").read_bytes()), ChoicesView())


def read_wire(folder: Path) -> None:
    read_message((folder / "message").read_bytes().decode("latin-1"))


def read_learned(folder: Path) -> None:
    given = likelihood(Model("a", (real("a"),), lambda theta, unit: -(theta["a"] ** 2)), {"x": np.zeros(1)})
    objectives.read_optimum(folder / "x.npz", given)


def read_tracks_upload(folder: Path, name: str) -> None:
    """As the page of flocks takes a file; what is wrong with it is shown, not raised."""
    from policychord.studio.pages.tracks import TracksView, open_file

    if fault := open_file(Upload(name, (folder / name).read_bytes()), TracksView(rate=10.0)).fault:
        raise ValueError(fault)


def read_runs_of_fit(folder: Path) -> None:
    given = fit.FitPlan.model_validate({"family": "choices", "simulate": {}})
    fit._earlier(given, folder / fit.RECORD, 1)


def wide_tracks(folder: Path, ran: Path) -> None:
    """A table of tracks, and beside it attributes that are a pickle."""
    (folder / "t.csv").write_text("time,x1,y1\n" + "".join(f",{k},{k}\n" for k in range(5)))
    pickled("attributes.json")(folder, ran)


def opaque_tracks(folder: Path, ran: Path) -> None:
    """An HDF5 file whose numbers are a pickle, as bytes without a type and as text."""
    import h5py

    with h5py.File(folder / "t.h5", "w") as file:
        file["trajectories"] = np.full((4, 2, 2), np.void(pickle.dumps(Payload(ran))))
        file.attrs["frames_per_second"] = pickle.dumps(Payload(ran)).hex()


def read_track_file(folder: Path, kind: str) -> None:
    read_tracks(folder / f"t.{kind}", rate=10.0)


TRACKS = ("npy", "h5", "nc", "csv")
RECORD = '<script type="application/json" id="record">{"claims": [{"id": "CODE", "measured": "PICKLE"}]}</script>'
PICKLE_CODEC = {"id": "pickle"}
ATTACKS = {
    "result of a step: pickle": Attack(pickled("x.npz"), lambda at: cache.load_result(at / "x.npz")),
    "result of a step: objects": Attack(objects("x.npz"), lambda at: cache.load_result(at / "x.npz")),
    "batch of a sweep: pickle": Attack(pickled(BATCH), lambda at: sweep.results(PLAN, at)),
    "batch of a sweep: foreign type": Attack(foreign_type, lambda at: sweep.results(PLAN, at)),
    "plan: pickle": Attack(pickled("plan.toml"), lambda at: read_sweep_plan(at / "plan.toml")),
    "plan: code": Attack(
        text("plan.toml", 'study = "flock"\nepisodes = "CODE"\n'), lambda at: read_sweep_plan(at / "plan.toml")
    ),
    "plan as JSON: code": Attack(
        text("plan.json", '{"study": "CODE", "py/reduce": "PICKLE"}'), lambda at: read_sweep_plan(at / "plan.json")
    ),
    "settings: pickle": Attack(pickled("s.toml"), lambda at: read_settings(at / "s.toml")),
    "settings as JSON: pickle": Attack(pickled("s.json"), lambda at: read_settings(at / "s.json")),
    "plan of a fit: pickle": Attack(pickled("fit.toml"), lambda at: fit.read_fit_plan(at / "fit.toml")),
    "plan of a fit: its own code": Attack(
        text("fit.toml", 'family = "python"\n'), lambda at: fit._design_of(fit.read_fit_plan(at / "fit.toml"), None)
    ),
    "data of a fit: objects": Attack(
        zarr_array(dtype="|O", filters=[PICKLE_CODEC], fill_value=None), read_fit_data
    ),
    "data of a fit: filter": Attack(zarr_array(dtype="<f8", filters=[PICKLE_CODEC], fill_value=0.0), read_fit_data),
    "data of a fit: compressor": Attack(
        zarr_array(dtype="<f8", compressor=PICKLE_CODEC, fill_value=0.0), read_fit_data
    ),
    "claims: pickle": Attack(pickled("claims.json"), compare.read_run),
    "claims: code": Attack(text("claims.json", '[{"id": "CODE", "measured": {"x": "PICKLE"}}]'), compare.read_run),
    "report: pickle": Attack(pickled("report.html"), lambda at: compare.read_run(at / "report.html")),
    "report: code": Attack(text("report.html", RECORD), lambda at: compare.read_run(at / "report.html")),
    "figure: pickle": Attack(
        pickled("a.png"), lambda at: compare._compare_pixels("a", at / "a.png", Path(__file__).parent / "__init__.py")
    ),
    "table: pickle": Attack(pickled("x.csv"), lambda at: read_choices(at / "x.csv", TASKS["2"])),
    "table: code": Attack(
        text("x.csv", ROWS.replace(",7\n", ",CODE\n")), lambda at: read_choices(at / "x.csv", TASKS["2"])
    ),
    **{
        f"tracks: pickle as {kind}": Attack(pickled(f"t.{kind}"), partial(read_track_file, kind=kind))
        for kind in TRACKS
    },
    "tracks: objects": Attack(array_of_objects("t.npy"), partial(read_track_file, kind="npy")),
    "tracks: bytes in HDF5": Attack(opaque_tracks, partial(read_track_file, kind="h5")),
    "attributes of tracks: pickle": Attack(wide_tracks, lambda at: read_tracks(at / "t.csv")),
    "tracks to the studio: objects": Attack(array_of_objects("t.npy"), partial(read_tracks_upload, name="t.npy")),
    "tracks to the studio: bytes in HDF5": Attack(opaque_tracks, partial(read_tracks_upload, name="t.h5")),
    **{
        f"tracks to the studio: pickle as {kind}": Attack(
            pickled(f"t.{kind}"), partial(read_tracks_upload, name=f"t.{kind}")
        )
        for kind in TRACKS
    },
    "optimum of a fit: pickle": Attack(pickled(fit.RECORD), read_runs_of_fit),
    "optimum of a fit: code": Attack(
        text(fit.RECORD, '{"plan": "CODE", "optimum": {"z": "PICKLE"}}'), read_runs_of_fit
    ),
    "environment of a run: pickle": Attack(
        lambda at, ran: ((at / "claims.json").write_text("[]"), pickled("environment.json")(at, ran)), compare.read_run
    ),
    "plan of tracks: pickle": Attack(pickled("t.toml"), lambda at: settle(Given(TrackPlan, {}, at / "t.toml"))),
    "results of a fit: pickle": Attack(pickled("results.json"), lambda at: read_results(at)),
    "policies: pickle": Attack(pickled("p.csv"), lambda at: open_policies(at / "p.csv")),
    "results of learning: pickle": Attack(pickled("x.npz"), read_learned),
    "results of learning: objects": Attack(objects("x.npz"), read_learned),
    "sidecar: pickle": Attack(
        lambda at, ran: ((at / "x.csv").write_text(ROWS), pickled("x.json")(at, ran)),
        lambda at: read_choices(at / "x.csv", TASKS["2"]),
    ),
    "upload: pickle": Attack(pickled("x.csv"), read_upload),
    "message: pickle": Attack(pickled("message"), read_wire),
}  # fmt: skip

# What is read elsewhere: nothing that anybody could send.
HARMLESS = {
    "policychord/cli/app.py": "entry points of installed packages, which are code",
    "policychord/runs/plan.py": "entry points of installed packages, which are code",
    "policychord/runs/page.py": "templates, and figures that the same run drew: bytes into a page",
    "policychord/runs/versions.py": "the source of installed packages, to be hashed",
    "policychord/cli/output.py": "writes to the null device",
    "policychord/core/_compile.py": "its own source; caches in a folder of the user alone, below",
    "policychord/core/_native.py": "a header of an installed package",
    "policychord/runs/compiled.py": "/proc; programs in a folder of the user alone, below",
    "policychord/runs/doctor.py": "/proc and /sys",
    "policychord/runs/engine.py": "writes a log",
    "policychord_paper/report.py": "templates, and figures that the same run drew: bytes into a page",
    "policychord/studio/parser.py": "/proc",
    "policychord/studio/server.py": "its own pages; writes a link",
}
READERS = {
    "policychord/choices/tables.py": ("table: pickle", "sidecar: pickle", "upload: pickle"),
    "policychord/_files.py": ("result of a step: pickle", "result of a step: objects", "results of learning: pickle"),
    "policychord/inference/learning/objectives.py": ("results of learning: pickle", "results of learning: objects"),
    "policychord/runs/cache.py": ("result of a step: pickle", "result of a step: objects"),
    "policychord_paper/compare.py": (
        "claims: pickle",
        "environment of a run: pickle",
        "report: pickle",
        "figure: pickle",
    ),
    "policychord/runs/fit.py": ("plan of a fit: pickle", "data of a fit: objects", "optimum of a fit: pickle"),
    "policychord/runs/store.py": (
        "plan: pickle",
        "plan: code",
        "settings: pickle",
        "settings as JSON: pickle",
        "plan of tracks: pickle",
        "plan of a fit: pickle",
    ),
    "policychord/tracks/reading.py": (
        *(f"tracks: pickle as {kind}" for kind in TRACKS),
        "tracks: objects",
        "tracks: bytes in HDF5",
        "attributes of tracks: pickle",
        *(f"tracks to the studio: pickle as {kind}" for kind in TRACKS),
    ),
    "policychord/cli/results.py": ("results of a fit: pickle",),
    "policychord/runs/policies.py": ("policies: pickle",),
    "policychord/runs/sweep.py": ("batch of a sweep: pickle", "batch of a sweep: foreign type"),
    "policychord/studio/wire.py": ("message: pickle",),
}
READING = {"open", "fdopen", "read_text", "read_bytes", "load", "loads", "open_zarr", "open_dataset", "open_datatree",
           "open_groups", "read_csv", "read_table", "read_parquet", "read_json", "read_excel", "read_hdf",
           "read_feather", "imread", "fromfile", "memmap", "loadtxt", "genfromtxt", "loadmat", "ZipFile", "File",
           "netcdf_file", "urlopen", "urlretrieve"}  # fmt: skip
OURS = {"read_table"}  # names of our own functions, whose callers hand over bytes


def _file(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


@pytest.mark.parametrize("name", ATTACKS)
def test_a_payload_does_not_run(tmp_path, name):
    folder, ran = tmp_path / "sent", tmp_path / "ran"
    folder.mkdir()
    ATTACKS[name].plant(folder, ran)
    if name == "batch of a sweep: foreign type":  # its numbers are read, the type is not looked up
        assert ATTACKS[name].read(folder).table.eps.tolist() == [0, 0]
    else:
        with pytest.raises((ValueError, cache.MissingError), match=r"\w"):  # refused with a sentence, or done again
            ATTACKS[name].read(folder)
    assert not ran.exists()


def test_the_payload_would_run(tmp_path):
    pickle.loads(pickle.dumps(Payload(tmp_path / "ran")))
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["kernels-x", "programs-x"])
def test_machine_code_that_others_could_have_planted_is_not_there_any_more(tmp_path, monkeypatch, name):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = _files.private_folder(name)
    folder.chmod(0o777)
    (folder / "kernel.nbi").write_bytes(pickle.dumps(Payload(tmp_path / "ran")))
    assert not list(_files.private_folder(name).iterdir())
    assert os.stat(folder).st_mode & 0o077 == 0


def reads(path: Path) -> bool:
    """Whether a module calls anything that reads a file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in READING and not (name in OURS and isinstance(node.func, ast.Name)):
                return True
    return False


def test_every_module_that_reads_files_has_a_payload_or_a_reason():
    found = {path.relative_to(SOURCE).as_posix() for path in SOURCE.glob("policychord*/**/*.py") if reads(path)}
    new = found - set(READERS) - set(HARMLESS)
    assert not new, f"{sorted(new)} read files: plant a payload in them here, or say why nobody can"
    gone = (set(READERS) | set(HARMLESS)) - found
    assert not gone, f"{sorted(gone)} read no file any more"
    for names in READERS.values():
        assert set(names) <= set(ATTACKS)


def test_what_a_reader_accepts_is_what_was_written(tmp_path):
    """The attacks are refused for what they are: files of ours pass through the same functions."""
    cache.save_result(tmp_path / "x.npz", "step", cache.Result({"a": np.arange(3)}, 1.0))
    assert cache.load_result(tmp_path / "x.npz").value["a"].tolist() == [0, 1, 2]
    (tmp_path / "x.csv").write_text(ROWS)
    assert len(read_choices(tmp_path / "x.csv", TASKS["2"]).choice) == 12
    table = pd.DataFrame({"point": [0, 1], "episode": [0, 0], "eps": [0.1, 1.0], "milling": [0.5, 0.5]})
    sweep._keep(tmp_path, sweep.batches_of(PLAN)[0], sweep.Computed(table, {}), sweep._version_of(PLAN))
    assert sweep.results(PLAN, tmp_path).table.milling.tolist() == [0.5, 0.5]
    write_dataset(tmp_path / "data.zarr", xr.Dataset({"x": ("t", [1.0])}))
    with pytest.raises((ValueError, KeyError)) as refused:  # opened, and then found to be no flight of a flock
        read_fit_data(tmp_path)
    assert "no readable Zarr folder" not in str(refused.value)
    sent = Frame("x", {"kind": "x"}, {"a": np.arange(3.0)})
    assert unpack(pack(sent)).arrays["a"].tolist() == [0.0, 1.0, 2.0]
