"""Files of tracks: every format gives the same positions, and every broken file one sentence."""

import gc
import json

import numpy as np
import pytest
from benchmarks.attack import attack_tracks

from policychord.cli import app
from policychord.cli.options import Given, settle
from policychord.tracks.decisions import decide
from policychord.tracks.forces import ForceSettings
from policychord.tracks.motion import Smoothing, card_of, move
from policychord.tracks.reading import TrackError, parse_tracks, read_tracks
from policychord.tracks.settings import TrackPlan

FRAMES, COUNT = 12, 3
PLACES = np.random.default_rng(0).normal(size=(FRAMES, COUNT, 2)).cumsum(axis=0).round(3)
PLACES[4, 1] = np.nan


def write_long(path, header="trial,frame,id,x,y", separator=","):
    rows = [header.replace(",", separator)]
    for frame in range(FRAMES):
        for i in range(COUNT):
            x, y = PLACES[frame, i]
            if frame == 4 and i == 1:
                continue  # a gap is a row that is not there
            rows.append(separator.join(map(str, (0, frame, i, x, y))))
    path.write_text("\n".join(rows) + "\n")


def write_wide(path):
    path.parent.mkdir()
    header = "time," + ",".join(f"{axis}{i}" for i in range(1, COUNT + 1) for axis in "xy")
    body = np.column_stack([np.arange(FRAMES) / 25, PLACES.reshape(FRAMES, -1)])
    np.savetxt(path, body, delimiter=",", header=header, fmt="%.3f", comments="")
    (path.parent / "attributes.json").write_text(json.dumps({"frames_per_second": 25}))


def write_hdf5(path):
    import h5py

    with h5py.File(path, "w") as file:
        file.create_dataset("trajectories", data=PLACES)
        file.attrs["frames_per_second"] = 25.0
        file.attrs["body_length"] = 40.0
        file.attrs["identities_labels"] = ["1", "2", "queen"]
        file.attrs["length_unit"] = -1


def write_session(folder):
    """What idtracker.ai 6 leaves: all exports in one folder, the table in its own, and a long one beside attributes."""
    inside = folder / "trajectories"
    inside.mkdir(parents=True)
    write_hdf5(inside / "trajectories.h5")
    write_wide(inside / "trajectories_csv" / "trajectories.csv")
    rows = ["frame,time,individual,x,y,probability"]
    rows += [f"{k},{k / 25:.3f},{i},{x:.3f},{y:.3f},1.000e+00" for k, frame in enumerate(PLACES)
             for i, (x, y) in enumerate(frame)]  # fmt: skip
    (inside / "trajectories_tidy.csv").write_text("\n".join(rows) + "\n")


def write_netcdf(path, plural=False):
    import xarray as xr

    who = "individuals" if plural else "individual"
    both = PLACES.transpose(0, 2, 1)[..., None]
    both = np.concatenate([both - 1, both + 1], axis=-1)  # two keypoints around the place
    dims = ("time", "space", who, "keypoints" if plural else "keypoint")
    coords = {"time": np.arange(FRAMES) / 25, "space": ["x", "y"], who: ["a", "b", "c"]}
    xr.Dataset({"position": (dims, both)}, coords, {"fps": 25.0}).to_netcdf(path, engine="h5netcdf")


@pytest.fixture
def files(tmp_path):
    write_long(tmp_path / "long.csv")
    write_long(tmp_path / "other.tsv", "video,Frame,track_id,pos_x,pos_y", "\t")
    write_wide(tmp_path / "trajectories_csv" / "trajectories.csv")
    write_hdf5(tmp_path / "trajectories.h5")
    write_netcdf(tmp_path / "poses.nc")
    write_netcdf(tmp_path / "older.nc", plural=True)
    np.save(tmp_path / "plain.npy", PLACES)
    write_session(tmp_path / "session_a")
    return tmp_path


SESSION = ("session_a", "session_a/trajectories", "session_a/trajectories/trajectories_tidy.csv")
SAY_THEIR_RATE = ("trajectories_csv", "trajectories.h5", "poses.nc", "older.nc", *SESSION)


@pytest.mark.parametrize("name", ["long.csv", "other.tsv", "plain.npy", *SAY_THEIR_RATE])
def test_every_format_gives_the_same_positions(files, name):
    rate = None if name in SAY_THEIR_RATE else 25.0
    found = read_tracks(files / name, rate=rate)
    assert found.rate == 25.0
    assert len(found.trials) == 1
    np.testing.assert_allclose(found.trials[0].position, PLACES, atol=1e-9)
    if (files / name).is_file():  # as it comes from a browser
        again = parse_tracks((files / name).read_bytes(), name, rate=rate)
        np.testing.assert_array_equal(again.trials[0].position, found.trials[0].position)
        assert again.trials[0].ids == found.trials[0].ids


def test_labels_of_individuals_are_kept(files):
    assert read_tracks(files / "trajectories.h5").trials[0].ids == ("1", "2", "queen")
    assert read_tracks(files / "poses.nc").trials[0].ids == ("a", "b", "c")


def test_several_files_are_trials_of_one(files):
    write_session(files / "session_b")
    found = read_tracks([files / "session_a", files / "session_b", files / "poses.nc"], unit="px")
    assert [trial.name for trial in found.trials] == ["session_a", "session_b", "poses"]
    assert any(note.startswith("session_a: idtracker.ai") for note in found.notes)
    poses = files / "poses.nc"
    for others, words in (((poses, poses), "named twice"), ((), "no file of tracks"),
                          ((poses, files / "trajectories.h5"), "lengths in px, but poses.nc")):  # fmt: skip
        with pytest.raises(TrackError, match=words):
            read_tracks(others)


def test_columns_scale_and_times(tmp_path):
    rows = ["seconds,who,east,north"] + [f"{0.1 * k:.1f},{i},{k},{i}" for k in range(6) for i in "ab"]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    with pytest.raises(TrackError, match="line 2: north is 'a'"):
        read_tracks(tmp_path / "t.csv", columns={"id": "who", "x": "east", "y": "north"})
    text = (tmp_path / "t.csv").read_text().replace(",a\n", ",0\n").replace(",b\n", ",1\n").removesuffix(",b") + ",1"
    (tmp_path / "t.csv").write_text(text)
    found = read_tracks(tmp_path / "t.csv", columns={"id": "who", "x": "east", "y": "north"}, scale=0.5, unit="m")
    assert found.unit == "m"
    assert found.rate == pytest.approx(10.0)
    np.testing.assert_allclose(found.trials[0].position[:, 0, 0], 0.5 * np.arange(6))


def broken(folder):
    """(file, what its sentence says) of each kind."""
    (folder / "empty.csv").write_text("")
    (folder / "header.csv").write_text("frame,id,x,y\n")
    (folder / "words.csv").write_text("frame,id,x,y\n0,0,1,2\n1,0,here,3\n2,0,1,1\n")
    (folder / "twice.csv").write_text("frame,id,x,y\n0,0,1,2\n0,0,1,3\n1,0,1,1\n2,0,2,2\n")
    (folder / "nameless.csv").write_text("a,b,c\n1,2,3\n")
    (folder / "uneven.csv").write_text("frame,id,x,y\n0,0,1,2\n1,0,1,2,3,4\n")
    (folder / "short.csv").write_text("frame,id,x,y\n0,0,1,2\n1,0\n2,0,1,1\n")
    (folder / "far.csv").write_text("frame,id,x,y\n0,0,1,2\n1,0,inf,2\n2,0,1,1\n")
    (folder / "two.csv").write_text("frame,id,x,y\n0,0,1,2\n1,0,1,2\n")
    (folder / "binary.csv").write_bytes(b"\x00\x01\x02" * 40)
    (folder / "latin.csv").write_bytes("frame,id,x,y\n0,\xe4,1,2\n".encode("latin-1"))
    np.save(folder / "objects.npy", np.array({"trajectories": PLACES}, dtype=object), allow_pickle=True)
    np.save(folder / "flat.npy", PLACES.reshape(FRAMES, -1))
    np.save(folder / "text.npy", np.full((4, 2, 2), "a"))
    (folder / "cut.npy").write_bytes((folder / "flat.npy").read_bytes()[:150])
    (folder / "header.npy").write_bytes((folder / "flat.npy").read_bytes().replace(b"(12, 6)", b"(12, 6("))
    (folder / "cut.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + b"0" * 50)
    (folder / "cut.nc").write_bytes(b"CDF\x01nonsense")
    (folder / "tracks.xlsx").write_bytes(b"PK")
    write_hdf5(folder / "other.h5")
    import h5py

    with h5py.File(folder / "other.h5", "a") as file:
        file.move("trajectories", "elsewhere")
        file["trajectories"] = h5py.ExternalLink("plain.h5", "trajectories")
    np.save(folder / "nowhere.npy", np.full((5, 2, 2), np.nan))
    return {
        "missing.csv": "does not exist", "empty.csv": "not a whole table", "header.csv": "no rows",
        "words.csv": "line 3: x is 'here', not a number", "twice.csv": "twice in frame 0",
        "nameless.csv": "no column for id", "uneven.csv": "not a whole table", "binary.csv": "not text",
        "short.csv": "line 3 has fewer cells", "far.csv": "infinite positions",
        "two.csv": "2 frames of 1 individuals",
        "latin.csv": "not UTF-8", "objects.npy": "idtrackerai_format", "flat.npy": "(frames, individuals, 2)",
        "text.npy": "numbers are needed", "cut.npy": "refused|whole .npy", "header.npy": "whole .npy",
        "cut.h5": "not a whole HDF5",
        "cut.nc": "not a whole netCDF", "tracks.xlsx": "ends with .xlsx", "other.h5": "no dataset 'trajectories'",
        "nowhere.npy": "no position that is a number",
    }  # fmt: skip


def test_broken_files_are_one_sentence_and_nothing_is_written(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    (tmp_path / "files").mkdir()
    monkeypatch.chdir(tmp_path)
    for name, words in broken(tmp_path / "files").items():
        with pytest.raises(TrackError) as said:
            read_tracks(tmp_path / "files" / name, rate=25.0)
        assert any(word in str(said.value) for word in words.split("|")), (name, str(said.value))
        assert "\n" not in str(said.value)
        assert str(said.value).endswith(".")
        for command in ("check", "fit", "film", "trials"):
            run = CliRunner().invoke(app, ["tracks", command, f"files/{name}", "--rate", "25", "--out", "out"])
            assert isinstance(run.exception, TrackError), (name, command, run.exception)
        assert not (tmp_path / "out").exists(), name


def test_whatever_is_wrong_with_a_file_or_its_settings_is_a_sentence():
    found = attack_tracks(150, seed=1)
    assert found.broken == []
    assert found.refused > 80


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"smoothing.window": 1e308}, "smoothing.window"),
        ({"smoothing.window": float("inf")}, "smoothing.window"),
        ({"smoothing.longest_gap": 1e308}, "smoothing.longest_gap"),
        ({"forces.every": 1e308}, "forces.every"),
        ({"forces.radii": [1.0, 2.0, float("inf")]}, "forces.radii"),
        ({"rate": float("inf")}, "rate"),
        ({"seconds": float("inf")}, "seconds"),
    ],
)
def test_settings_beyond_all_measure_are_named(settings, said):
    with pytest.raises(ValueError, match=said):
        settle(Given(TrackPlan, {name: (name, value) for name, value in settings.items()}))


@pytest.mark.parametrize("rate", [1e308, 1e-300])
def test_a_rate_beyond_all_measure_is_refused(tmp_path, rate):
    import h5py

    with pytest.raises(TrackError, match="rate"):
        parse_tracks(b"frame,id,x,y\n0,0,1,2\n1,0,1,2\n2,0,1,2", "t.csv", rate=rate)
    with h5py.File(tmp_path / "t.h5", "w") as file:
        file.create_dataset("trajectories", data=PLACES)
        file.attrs["frames_per_second"] = rate
    with pytest.raises(TrackError, match="frame rate"):
        read_tracks(tmp_path / "t.h5")


@pytest.mark.parametrize(("far", "scale"), [(1e300, 1.0), (2e8, 1.0), (1.0, 2e8), (1.0, 1e300)])
def test_positions_beyond_all_measure_are_refused(far, scale):
    """At 1e9 are those who are not there: nobody else may come near."""
    rows = "\n".join(f"{k},0,{far},{k}" for k in range(5))
    with pytest.raises(TrackError, match=r"scale|1e\+08"):
        parse_tracks(f"frame,id,x,y\n{rows}".encode(), "t.csv", rate=10.0, scale=scale)


def test_names_from_a_file_are_no_markup():
    rows = "\n".join(f"=1+1|<b>,{k},\x1b[31m$\\frac{{x$,{k},{k * k}" for k in range(5))
    found = parse_tracks(f"trial,frame,id,x,y\n{rows}".encode(), "t<i>.csv", rate=10.0, unit="$x")
    shown = [found.source, found.unit, found.trials[0].name, *found.trials[0].ids]
    assert shown == ["t_i_.csv", "_x", "=1+1__b_", "__31m__frac{x_"]
    with pytest.raises(TrackError, match="no individual"):
        decide(move(found, Smoothing(window=0.3)), ForceSettings(leave_out=("b",)))
    twice = "\n".join(f"{k},{name},{k},{k * k}" for k in range(5) for name in ("a$", "a|"))
    with pytest.raises(TrackError, match="two individuals"):
        parse_tracks(f"frame,id,x,y\n{twice}".encode(), "t.csv", rate=10.0)


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_a_cut_netcdf_file_leaves_no_trace_of_the_library(files):
    whole = (files / "poses.nc").read_bytes()
    for length in (20, 600, len(whole) - 100):
        (files / "cut.nc").write_bytes(whole[:length])
        with pytest.raises(TrackError, match="not a whole netCDF"):
            read_tracks(files / "cut.nc")
        gc.collect()


def soft_to_external(file, name, secret):
    """The attack that worked: bytes of another file, inside a group, reached by a soft link."""
    import h5py

    inner = file.create_group("deep").create_dataset("x", shape=(1,), dtype="f8", external=[(str(secret), 0, 8)])
    assert inner[0] == 25.0
    file[name] = h5py.SoftLink("/deep/x")


def hard_to_external(file, name, secret):
    file.create_group("deep").create_dataset("x", shape=(1,), dtype="f8", external=[(str(secret), 0, 8)])
    file[name] = file["deep/x"]


def virtual(file, name, secret):
    import h5py

    layout = h5py.VirtualLayout(shape=(1,), dtype="f8")
    layout[:] = h5py.VirtualSource(str(secret.with_suffix(".h5")), "x", shape=(1,))
    file.create_group("a/b").create_virtual_dataset("c", layout)
    file[name] = 25.0


def external_link(file, name, secret):
    import h5py

    file.create_group("a")["b"] = h5py.ExternalLink(str(secret.with_suffix(".h5")), "x")


def reference(file, name, secret):
    import h5py

    file[name] = np.array([file.ref], dtype=h5py.ref_dtype)


def region(file, name, secret):
    import h5py

    file["plain"] = np.zeros(3)
    file.attrs.create(name, file["plain"].regionref[:1], dtype=h5py.regionref_dtype)


def circle_of_soft_links(file, name, secret):
    import h5py

    file["a"], file["b"] = h5py.SoftLink("/b"), h5py.SoftLink("/a")


def structured(file, name, secret):
    file[name] = np.zeros(2, dtype=[("a", "f8"), ("b", "i4")])


LINKS = {soft_to_external: "deep|link to another place", hard_to_external: "lies in another file",
         virtual: "lies in another file", external_link: "lies in another file", reference: "neither numbers nor text",
         region: "neither numbers nor text", circle_of_soft_links: "link to another place",
         structured: "neither numbers nor text"}  # fmt: skip


@pytest.mark.parametrize("inside", ["frames_per_second", "body_length", "confidence"])
@pytest.mark.parametrize("kind", ["h5", "nc"])
@pytest.mark.parametrize("plant", LINKS, ids=lambda plant: plant.__name__)
def test_nothing_but_plain_datasets_of_the_file_itself_is_read(files, kind, plant, inside):
    import h5py

    name = {"h5": "trajectories.h5", "nc": "poses.nc"}[kind]
    secret = files / "secret.bin"
    secret.write_bytes(np.array([25.0]).tobytes())
    with h5py.File(files / "secret.h5", "w") as file:
        file["x"] = [25.0]
    with h5py.File(files / name, "a") as file:
        file.attrs.pop(inside, None)
        if inside in file:
            del file[inside]
        plant(file, inside, secret)
    with pytest.raises(TrackError, match=LINKS[plant]) as said:
        read_tracks(files / name)
    assert "25" not in str(said.value).replace(str(files), "")
    with pytest.raises(TrackError, match=LINKS[plant]):
        parse_tracks((files / name).read_bytes(), name)


@pytest.mark.parametrize("kind", ["h5", "nc"])
def test_groups_that_hold_each_other_end_the_walk(files, kind):
    import h5py

    name = {"h5": "trajectories.h5", "nc": "poses.nc"}[kind]
    with h5py.File(files / name, "a") as file:
        group = file.create_group("a").create_group("b")
        group["up"] = file["a"]
    assert read_tracks(files / name).rate == 25.0


def never_written(file, name):
    """Numbers that were never written take no place in a file, and all their place in memory."""
    file.create_dataset(name, shape=(10**9,), chunks=(1000,), dtype="f8")


def packed(file, name):
    """3 million zeros in some kilobytes."""
    file.create_dataset(name, data=np.zeros((1_500_000, 2)), compression="gzip")


def long_entry(file, name):
    """One entry, as a number would be, of 2 GB."""
    file.create_dataset(name, shape=(1,), dtype="S2000000000", chunks=(1,))


def long_attribute(file, name):
    file.create_group("g", track_order=True).attrs.create(name, np.zeros(20_000))


def many_groups(file, name):
    for k in range(10_001):
        file.create_group(f"g/{k}")


@pytest.mark.parametrize("kind", ["h5", "nc"])
@pytest.mark.parametrize("plant", [never_written, packed, long_entry, long_attribute, many_groups])
def test_a_small_file_does_not_unpack_to_much(files, kind, plant):
    import h5py

    name = {"h5": "trajectories.h5", "nc": "poses.nc"}[kind]
    with h5py.File(files / name, "a") as file:
        file.attrs.pop("body_length", None)
        plant(file, "body_length")
    with pytest.raises(TrackError, match="more than"):
        read_tracks(files / name)


def test_an_array_of_the_wrong_shape_is_refused_before_it_is_read(tmp_path, monkeypatch):
    import h5py

    with h5py.File(tmp_path / "t.h5", "w") as file:
        file["trajectories"] = np.zeros((5, 4))
    monkeypatch.setattr(h5py.Dataset, "__getitem__", lambda *_: pytest.fail("it was read"))
    with pytest.raises(TrackError, match=r"\(frames, individuals, 2\) is needed"):
        read_tracks(tmp_path / "t.h5")


def test_short_trials_are_left_out_and_counted(tmp_path):
    rows = ["trial,frame,id,x,y", "a,0,0,1,2", *(f"b,{k},0,{k},1" for k in range(5))]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    found = read_tracks(tmp_path / "t.csv", rate=1.0)
    assert [trial.name for trial in found.trials] == ["b"]
    assert any("1 of 2 trials" in note for note in found.notes)


def test_a_table_is_refused_by_its_size_before_it_is_read(tmp_path):
    with open(tmp_path / "t.csv", "wb") as file:
        file.truncate(10**9)  # takes no place on the disk
    with pytest.raises(TrackError, match=r"1,000,000,000 bytes: a table may have 200,000,000. Split it"):
        read_tracks(tmp_path / "t.csv", rate=1.0)
    (tmp_path / "t.csv").write_bytes(b"," * 100_000)
    with pytest.raises(TrackError, match="more than 20,000 columns"):
        read_tracks(tmp_path / "t.csv", rate=1.0)


def test_rows_of_trials_may_come_in_any_order():
    rows = [f"{trial},{frame},{i},{trial * 100 + frame},1" for frame in range(4) for trial in (2, 1, 3) for i in "ab"]
    found = parse_tracks("\n".join(["trial,frame,id,x,y", *rows]).encode(), "t.csv", rate=1.0)
    assert [trial.name for trial in found.trials] == ["2", "1", "3"]
    for trial in found.trials:
        np.testing.assert_array_equal(trial.position[:, 1, 0], int(trial.name) * 100 + np.arange(4))


def test_many_trials_are_looked_through_once():
    """16,000 trials took 71 s, because the whole table was compared with the name of each."""
    made = "".join(f"{k},{f},0,{f},{k % 9}\n" for k in range(16_000) for f in range(3))
    assert len(parse_tracks(f"trial,t,id,x,y\n{made}".encode(), "t.csv", rate=10.0).trials) == 16_000
    more = "".join(f"{k},0,0,1,1\n" for k in range(20_001))
    with pytest.raises(TrackError, match="20,001 trials, more than 20,000"):
        parse_tracks(f"trial,t,id,x,y\n{more}".encode(), "t.csv", rate=10.0)


def test_a_file_without_a_rate_says_so(files):
    with pytest.raises(TrackError, match="--rate HZ"):
        read_tracks(files / "long.csv")


def test_smoothing_is_exact_on_parabolas_and_causal_smoothing_sees_no_future(files):
    found = read_tracks(files / "plain.npy", rate=10.0)
    time = np.arange(40) / 10.0
    curve = np.stack([time**2, 3 - time], axis=-1)[:, None]
    tracks = found._replace(trials=(found.trials[0]._replace(ids=("0",), position=curve),))
    for causal in (False, True):
        moved = move(tracks, Smoothing(window=0.5, causal=causal)).trials[0]
        there = np.isfinite(moved.velocity[:, 0, 0])
        assert there.sum() == (36 if causal else 40)
        np.testing.assert_allclose(moved.velocity[there, 0], np.stack([2 * time, -np.ones(40)], -1)[there], atol=1e-9)
        np.testing.assert_allclose(moved.acceleration[there, 0, 0], 2.0, atol=1e-7)
    later = curve.copy()
    later[20:] += 5.0
    other = tracks._replace(trials=(tracks.trials[0]._replace(position=later),))
    a, b = (move(one, Smoothing(window=0.5, causal=True)).trials[0].velocity[:20] for one in (tracks, other))
    np.testing.assert_array_equal(a, b)


def test_short_gaps_are_filled_and_long_ones_split_a_track(files):
    place = np.stack([np.arange(30.0), np.zeros(30)], axis=-1)[:, None]
    place[5:7] = np.nan
    place[15:22] = np.nan
    found = read_tracks(files / "plain.npy", rate=10.0)
    tracks = found._replace(trials=(found.trials[0]._replace(ids=("0",), position=place),))
    motion = move(tracks, Smoothing(window=0.3, longest_gap=0.2))
    assert (motion.gaps, motion.filled, motion.dropped) == (2, 2, 0)
    there = np.isfinite(motion.trials[0].velocity[:, 0, 0])
    assert there.tolist() == [True] * 15 + [False] * 7 + [True] * 8
    np.testing.assert_allclose(motion.trials[0].velocity[there, 0, 0], 10.0)
    card = card_of(tracks, motion)
    assert card.missing == pytest.approx(9 / 30)
    assert np.isnan(card.polarization[0])  # one animal alone has no order
    assert "nothing is smoothed: --smooth 0.5" in card.notes[0]
    assert "100% of the steps go on exactly" in card.notes[1]
