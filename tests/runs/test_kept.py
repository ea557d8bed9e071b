"""The name under which a result is kept holds everything that it depends on."""

from pathlib import Path

import pytest
from pydantic import BaseModel

from policychord.runs.kept import MissingError, keep, load, place


class Told(BaseModel):
    seed: int = 0
    data: Path | None = None


def test_what_was_kept_is_what_is_loaded(tmp_path):
    keep(tmp_path / "a" / "b.pickle", {"x": 1})
    assert load(tmp_path / "a" / "b.pickle") == {"x": 1}


@pytest.mark.parametrize("content", [b"", b"\x80\x05nonsense", b"cnowhere\nthing\n."])
def test_what_cannot_be_read_is_missing(tmp_path, content):
    (tmp_path / "broken").write_bytes(content)
    with pytest.raises(MissingError):
        load(tmp_path / "broken")
    with pytest.raises(MissingError):
        load(tmp_path / "nowhere")


def test_study_step_settings_and_data_each_have_their_say(tmp_path):
    (tmp_path / "d.csv").write_text("1")
    folder = Told(data=tmp_path)
    places = [
        place(tmp_path, "flock", "a step", Told()), place(tmp_path, "bandit", "a step", Told()),
        place(tmp_path, "flock", "another step", Told()), place(tmp_path, "flock", "a step", Told(seed=1)),
        place(tmp_path, "flock", "a step", folder),
    ]  # fmt: skip
    (tmp_path / "d.csv").write_text("2")
    places.append(place(tmp_path, "flock", "a step", folder))
    assert len(set(places)) == len(places)
    assert place(tmp_path, "flock", "a step", Told()) == places[0]


def test_names_are_fit_for_files(tmp_path):
    path = place(tmp_path, "flock", "leaders 10%: a/b, c", Told())
    assert path.parent == tmp_path / ".work" / "flock"
    assert path.name.startswith("leaders-10-a-b-c-")
