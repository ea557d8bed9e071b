"""Files are written whole or not at all, and failures say what to do."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.layout_engine import ConstrainedLayoutEngine

from policychord import _files
from policychord.drawing import blank
from policychord.runs import store
from policychord.runs.store import _StoreError, note_earlier, prepare, save_figure, write_json, write_text


class Broken:
    """Something that cannot be drawn to the end."""

    def savefig(self, target, **_):
        Path(target).write_text("half a fig")
        raise OSError(28, "No space left on device")


def test_json_takes_numpy_and_is_whole(tmp_path):
    path = write_json(tmp_path / "deep" / "claims.json", [{"x": np.float64(0.1), "n": np.int64(3), "v": np.arange(2)}])
    assert json.loads(path.read_text()) == [{"x": 0.1, "n": 3, "v": [0, 1]}]
    assert os.listdir(path.parent) == ["claims.json"]


def test_a_failed_write_keeps_the_old_file_and_no_scraps(tmp_path):
    old = tmp_path / "plot.svg"
    old.write_text("the old figure")
    with pytest.raises(_StoreError, match=r"plot\.svg.*No space left.*--out"):
        save_figure(tmp_path / "plot", Broken())
    assert old.read_text() == "the old figure"
    assert os.listdir(tmp_path) == ["plot.svg"]


def test_what_killed_processes_left_half_written_is_removed_by_the_next_command(tmp_path):
    """Not what a living process writes, nor what was written just now, nor anything that we have not made."""
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    (tmp_path / "batches").mkdir()
    kept = tmp_path / "precious.txt"
    kept.write_text("precious")

    def left(where, pid=gone.pid, token="0" * 16):
        path = where / f".policychord-{pid}-{token}.part"
        path.write_text("half a ta")
        os.utime(path, (0, 0))
        return path

    ours = [left(tmp_path), left(tmp_path / "batches"), left(tmp_path, token="1" * 16)]
    others = [left(tmp_path, os.getpid()), left(tmp_path, token="short"), tmp_path / f".film.mkv.{gone.pid}.part",
              tmp_path / f".policychord-{gone.pid}-{'a' * 16}.part", tmp_path / "a.part", kept]  # fmt: skip
    others[2].write_text("somebody else's")
    os.utime(others[2], (0, 0))
    others[3].symlink_to(kept)
    os.utime(others[3], (0, 0), follow_symlinks=False)
    others[4].mkdir()
    folder = tmp_path / f".policychord-{gone.pid}-{'b' * 16}.part"
    folder.mkdir()
    os.utime(folder, (0, 0))
    new = left(tmp_path, token="c" * 16)
    os.utime(new)
    prepare(tmp_path)
    assert not [path for path in ours if path.exists()]
    assert all(path.exists() for path in (*others, folder, new))


def test_a_file_is_never_written_through_a_link_that_waits_for_it(tmp_path, monkeypatch):
    """Names cannot be guessed; and where one was, what stands there is not opened."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for name in (f".a.txt.{os.getpid()}.part", f".probe-{os.getpid()}", f".policychord-{os.getpid()}-{'0' * 16}.part"):
        (tmp_path / name).symlink_to(victim)
    prepare(tmp_path)
    write_text(tmp_path / "a.txt", "new")
    monkeypatch.setattr(_files.secrets, "token_hex", lambda count: "0" * 16)
    with pytest.raises(_StoreError, match="could not write"):
        write_text(tmp_path / "a.txt", "newer")
    assert (victim.read_text(), (tmp_path / "a.txt").read_text()) == ("precious", "new")


def test_a_figure_is_laid_out_once_for_both_files(tmp_path, monkeypatch):
    made, execute = [], ConstrainedLayoutEngine.execute
    monkeypatch.setattr(ConstrainedLayoutEngine, "execute", lambda self, figure: made.append(execute(self, figure)))
    figure = blank(3, 2)
    figure.subplots().set_ylabel("a label\nof two lines")
    assert all(path.stat().st_size > 1000 for path in save_figure(tmp_path / "plot", figure))
    assert len(made) == 1


def test_a_folder_that_is_a_file_is_refused_before_the_work(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(_StoreError, match=r"cannot write to .*taken.*--out"):
        prepare(tmp_path / "taken")


def test_files_of_an_earlier_run_are_mentioned(tmp_path):
    (tmp_path / ".hidden").write_text("")
    assert note_earlier(tmp_path) == []
    (tmp_path / "table.json").write_text("")
    (note,) = note_earlier(tmp_path)
    assert str(tmp_path) in note
    assert "--out" in note


def test_a_full_disk_is_told_in_words(tmp_path):
    """A real full file system, where this process may mount one."""
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", tmp_path], capture_output=True)
    if mount.returncode:
        pytest.skip("mounting a small file system needs rights this user does not have")
    try:
        kept = write_json(tmp_path / "small.json", [1, 2])
        with pytest.raises(_StoreError, match=r"large\.json.*free some space"):
            write_json(tmp_path / "large.json", list(range(100_000)))
        assert json.loads(kept.read_text()) == [1, 2]
        assert os.listdir(tmp_path) == ["small.json"]
    finally:
        subprocess.run(["umount", tmp_path], check=True)


@pytest.mark.parametrize("known", [True, False])
def test_on_windows_no_signal_asks_whether_a_process_lives(known, monkeypatch):
    """Signal 0 is Ctrl-C there. Where psutil is missing, nobody knows, and what may be in use stays."""
    monkeypatch.setattr(
        store, "os", SimpleNamespace(name="nt", kill=lambda *_: pytest.fail("a process was interrupted"))
    )
    monkeypatch.setitem(sys.modules, "psutil", SimpleNamespace(pid_exists=lambda pid: pid == 7) if known else None)
    assert [store.is_alive(7), store.is_alive(8)] == [True, not known]
