"""Tables of other programs: small files written by hand in their formats, and the positions that they mean."""

import numpy as np
import pytest

from policychord.tracks.foreign import projected
from policychord.tracks.reading import TrackError, parse_tracks, read_tracks

TRACKMATE = """LABEL,ID,TRACK_ID,QUALITY,POSITION_X,POSITION_Y,POSITION_Z,POSITION_T,FRAME
Label,Spot ID,Track ID,Quality,X,Y,Z,T,Frame
Label,Spot ID,Track ID,Quality,X,Y,Z,T,Frame
,,,(quality),(micron),(micron),(micron),(sec),
ID10,10,0,5.1,1.0,2.0,0,0.0,0
ID11,11,1,5.2,3.0,4.0,0,0.0,0
ID12,12,0,5.3,1.5,2.5,0,0.5,1
ID13,13,1,5.4,3.5,4.5,0,0.5,1
ID14,14,,0.1,9.0,9.0,0,0.5,1
ID15,15,0,5.5,2.0,3.0,0,1.0,2
ID16,16,1,5.6,4.0,5.0,0,1.0,2
"""
DEEPLABCUT = """scorer,DLC,DLC,DLC,DLC,DLC,DLC,DLC,DLC,DLC,DLC,DLC,DLC
individuals,a,a,a,a,a,a,b,b,b,b,b,b
bodyparts,nose,nose,nose,tail,tail,tail,nose,nose,nose,tail,tail,tail
coords,x,y,likelihood,x,y,likelihood,x,y,likelihood,x,y,likelihood
0,1,2,0.9,3,4,0.9,10,20,0.9,12,22,0.9
1,2,3,0.9,4,5,0.9,11,21,0.9,99,99,0.1
2,3,4,0.9,5,6,0.9,,,,,,
"""
SLEAP = """track,frame_idx,instance.score,head.x,head.y,head.score,tail.x,tail.y,tail.score
track_0,0,0.9,1,2,0.9,3,4,0.9
track_1,0,0.9,10,20,0.9,,,
track_0,1,0.9,2,3,0.9,4,5,0.9
track_1,1,0.9,11,21,0.9,13,23,0.9
,1,0.2,50,50,0.1,50,50,0.1
track_0,2,0.9,3,4,0.9,5,6,0.9
"""
PETRACK = """# PeTrack project: corridor.pet
# framerate: 25.00 fps
# id frame x/m y/m z/m
1 100 1.0 2.0 1.7
1 101 1.1 2.0 1.7
1 102 1.2 2.1 1.6
2 100 3.0 2.0 1.8
2 101 2.9 2.0 1.8
2 102 2.8 2.0 1.8
"""
MOVEBANK = """event-id,visible,timestamp,location-long,location-lat,individual-local-identifier,tag-local-identifier
1,true,2020-05-01 10:00:00.000,10.0000,50.0000,Ada,t1
2,true,2020-05-01 10:01:00.000,10.0010,50.0000,Ada,t1
3,true,2020-05-01 10:02:02.000,10.0020,50.0000,Ada,t1
4,false,2020-05-01 10:03:00.000,99.0000,50.0000,Ada,t1
5,true,2020-05-01 10:00:01.000,10.0000,50.0010,Bob,t2
6,true,2020-05-01 10:01:01.000,10.0000,50.0020,Bob,t2
7,true,2020-05-01 10:02:01.000,10.0000,50.0030,Bob,t2
"""


def parsed(text, name="tracks.csv", **options):
    return parse_tracks(text.encode(), name, **options)


def test_spots_of_trackmate_belong_to_tracks():
    found = parsed(TRACKMATE)
    trial = found.trials[0]
    assert (trial.ids, found.rate, found.unit) == (("0", "1"), 2.0, "micron")
    np.testing.assert_array_equal(trial.position[:, 0], [[1, 2], [1.5, 2.5], [2, 3]])
    assert any("1 detections belong to no track" in note for note in found.notes)


def test_likely_keypoints_of_deeplabcut_are_averaged():
    found = parsed(DEEPLABCUT, rate=30.0)
    trial = found.trials[0]
    assert trial.ids == ("a", "b")
    np.testing.assert_array_equal(trial.position[:, 0], [[2, 3], [3, 4], [4, 5]])
    np.testing.assert_array_equal(trial.position[:, 1], [[11, 21], [11, 21], [np.nan, np.nan]])


def test_tables_of_sleap():
    trial = parsed(SLEAP, rate=30.0).trials[0]
    assert trial.ids == ("track_0", "track_1")
    np.testing.assert_array_equal(trial.position[:, 0], [[2, 3], [3, 4], [4, 5]])
    np.testing.assert_array_equal(trial.position[:, 1], [[10, 20], [12, 22], [np.nan, np.nan]])


def test_the_analysis_file_of_sleap(tmp_path):
    import h5py

    tracks = np.arange(2 * 2 * 3 * 4, dtype=float).reshape(2, 2, 3, 4)  # (track, x and y, node, frame)
    tracks[1, :, 0, 2] = np.nan
    with h5py.File(tmp_path / "a.analysis.h5", "w") as file:
        file.create_dataset("tracks", data=tracks)
        file.create_dataset("track_occupancy", data=np.ones((4, 2)))
        file.create_dataset("track_names", data=[b"left", b"right"])
    found = read_tracks(tmp_path / "a.analysis.h5", rate=50.0)
    assert found.trials[0].ids == ("left", "right")
    assert found.trials[0].position.shape == (4, 2, 2)
    np.testing.assert_array_equal(found.trials[0].position[1, 0], [(1 + 5 + 9) / 3, (13 + 17 + 21) / 3])
    np.testing.assert_array_equal(found.trials[0].position[2, 1], [(30 + 34) / 2, (42 + 46) / 2])


@pytest.mark.parametrize("name", ["uni.txt", "uni.csv"])
def test_text_of_petrack_has_its_header_in_comments(name):
    found = parsed(PETRACK, name)
    assert (found.rate, found.unit, found.trials[0].ids) == (25.0, "m", ("1", "2"))
    np.testing.assert_array_equal(found.trials[0].position[:, 0], [[1, 2], [1.1, 2], [1.2, 2.1]])
    assert any("'z' is left out" in note for note in found.notes)
    with pytest.raises(TrackError, match="line 5: x is 'one'"):
        parsed(PETRACK.replace("1.1 2.0", "one 2.0"), name)


def test_fixes_of_movebank_are_metres_and_frames():
    found = parsed(MOVEBANK)
    trial = found.trials[0]
    assert (trial.ids, found.unit) == (("Ada", "Bob"), "m")
    assert found.rate == pytest.approx(1 / 60)
    assert trial.position.shape == (3, 2, 2)
    east, north = np.diff(trial.position[:, 0], axis=0)[0], np.diff(trial.position[:, 1], axis=0)[0]
    np.testing.assert_allclose(east, [111_195 * 0.001 * np.cos(np.radians(50.0005)), 0], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(north, [0, 111.195], rtol=1e-4, atol=1e-6)
    assert any("'tag-local-identifier' may be the identity" in note for note in found.notes)


def test_the_date_line_and_places_that_are_none():
    place, note = projected(np.array([179.999, -179.999]), np.array([80.0, 80.0]))
    assert np.linalg.norm(place[1] - place[0]) == pytest.approx(222.39 * np.cos(np.radians(80)), rel=1e-3)
    assert "wrong" not in note
    assert "wrong by up to" in projected(np.array([10.0, 11.0]), np.array([60.0, 62.0]))[1]
    with pytest.raises(ValueError, match="degrees"):
        projected(np.array([10.0]), np.array([5000.0]))


def test_a_file_for_each_animal_is_one_trial(tmp_path):
    for name, first in (("ant", 5), ("bee", 6)):
        rows = ["frame,x,y", *(f"{frame},{frame},{len(name)}" for frame in range(first, first + 4))]
        (tmp_path / f"{name}.csv").write_text("\n".join(rows) + "\n")
    found = read_tracks([tmp_path / "ant.csv", tmp_path / "bee.csv"], rate=10.0)
    (trial,) = found.trials
    assert trial.ids == ("ant", "bee")
    np.testing.assert_array_equal(trial.position[:, :, 0], [[5, np.nan], [6, 6], [7, 7], [8, 8], [np.nan, 9]])
    with pytest.raises(TrackError, match="no column for id"):
        read_tracks(tmp_path / "ant.csv", rate=10.0)
    (tmp_path / "cow.csv").write_text("frame,x,y,z\n0,1,2,3\n")
    with pytest.raises(TrackError, match="different columns"):
        read_tracks([tmp_path / "ant.csv", tmp_path / "cow.csv"], rate=10.0)


def test_what_may_have_been_guessed_wrongly_is_noted():
    rows = ["id,track_fixed,t,x,y", *(f"{k % 4},{k % 2},{40 * (k // 4)},{k},{-1 if k == 9 else k}" for k in range(40))]
    notes = " ".join(parsed("\n".join(rows), columns={"time": "t"}).notes)
    assert "identity" not in notes  # who names columns knows them
    notes = " ".join(parsed("\n".join(rows).replace(",t,", ",time,")).notes)
    assert "'track_fixed' may be the identity as well: --columns id=track_fixed" in notes
    assert "if they are milliseconds, pass --rate 25" in notes
    gone = ["frame,id,x,y", *(f"{k},{i},{-1 if k == 2 else k},{-1 if k == 2 else i}" for k in range(5) for i in "01")]
    found = parsed("\n".join(gone), rate=1.0)
    assert np.isnan(found.trials[0].position[2]).all()
    assert any("2 rows have x = y = -1" in note for note in found.notes)


def test_individuals_before_frames_are_doubted(tmp_path):
    np.save(tmp_path / "a.npy", np.random.default_rng(0).normal(size=(4, 20, 2)))
    assert "other way round" in read_tracks(tmp_path / "a.npy", rate=1.0).notes[0]
