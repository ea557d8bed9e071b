"""Compiled kernels on disk: private, made once, and made again where they are damaged or gone."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from policychord import _files

pytestmark = pytest.mark.skipif(os.name == "nt", reason="modes, owners and XDG folders are those of Unix")

TINY = """
from numba import types
from policychord.core import _compile

def double(x):
    return 2.0 * x

if __name__ == "__main__":
    print(_compile.compile_entry(types.float64(types.float64), double)(21.0))
    print(_compile.private_folder(_compile._version()))
"""

THREADS = """
import threading, time
import jax, numpy as np
jax.config.update("jax_enable_x64", True)
from policychord import problem, solve
from policychord.core import _compile, _kernels, _native

calls = []
def counted(name, function):
    def call(*args, **kwargs):
        calls.append(name)
        time.sleep(0.05)  # long enough for the other threads to come
        return function(*args, **kwargs)
    return call
_kernels.compile_entry = counted("kernel", _kernels.compile_entry)
_native.compile_callback = counted("callback", _native.compile_callback)
jax.ffi.register_ffi_target = counted("target", jax.ffi.register_ffi_target)

p = problem(pi=[[0.9, 0.2], [0.1, 0.8]], action_cost=[0.0, 1.0], eps=0.1)
together, answers = threading.Barrier(8), [None] * 8
def work(k):
    together.wait()
    inside = jax.jit(lambda cost: solve(p._replace(action_cost=cost)).weights)
    answers[k] = solve(p).weights if k % 2 else np.asarray(inside(p.action_cost))
threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
assert sorted(calls) == ["callback", "kernel", "target"], calls
assert all(np.allclose(a, answers[0], atol=1e-14) for a in answers), answers
"""


def environment(tmp_path: Path, **changed: str) -> dict[str, str]:
    (tmp_path / "tmp").mkdir(exist_ok=True)
    return os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache"), "TMPDIR": str(tmp_path / "tmp")} | changed


@pytest.fixture
def tiny(tmp_path):
    """Compile a small function in a process of its own: what it said, and the folder of its cache."""
    script = tmp_path / "tiny.py"
    script.write_text(TINY)

    def run(**changed: str) -> tuple[str, Path]:
        done = subprocess.run(
            [sys.executable, script], env=environment(tmp_path, **changed), capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        answer, folder = done.stdout.split()
        assert answer == "42.0"
        assert stat.S_IMODE(Path(folder).stat().st_mode) == 0o700 or not Path(folder).is_relative_to(tmp_path / "cache")
        return done.stderr, Path(folder)

    return run


def test_it_says_that_it_compiles_only_when_it_does(tiny):
    said, folder = tiny()
    assert said.count("compiling the solver") == 1
    assert list(folder.glob("*.nbc"))
    assert tiny()[0] == ""


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize("content", [b"", b"garbage that is no pickle", None], ids=["empty", "garbage", "truncated"])
def test_a_damaged_file_is_made_again(tiny, suffix, content):
    _, folder = tiny()
    (path,) = folder.glob(f"*.{suffix}")
    path.write_bytes(path.read_bytes()[:-40] if content is None else content)
    said, _ = tiny()
    assert said.count("is damaged") == 1
    assert tiny()[0] == ""


def test_two_processes_compile_once(tmp_path):
    (tmp_path / "tiny.py").write_text(TINY)
    started = [
        subprocess.Popen(
            [sys.executable, tmp_path / "tiny.py"], env=environment(tmp_path), stdout=-1, stderr=-1, text=True
        )
        for _ in range(2)
    ]
    ended = [process.communicate(timeout=300) for process in started]
    assert [out.split()[0] for out, _ in ended] == ["42.0", "42.0"]
    assert sum(error.count("compiling") for _, error in ended) == 1


def test_without_a_home_the_cache_is_temporary_and_private(tiny, tmp_path):
    (tmp_path / "file").write_text("no folder")
    _, folder = tiny(XDG_CACHE_HOME=str(tmp_path / "file"), HOME=str(tmp_path / "missing"))
    assert folder.parent.parent == tmp_path / "tmp"
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    assert tiny(XDG_CACHE_HOME=str(tmp_path / "file"))[0] == ""  # the next process finds it


def test_a_cache_that_another_process_removed_is_made_again(tiny):
    _, folder = tiny()
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    assert "compiling" in tiny()[0]


def test_eight_threads_of_a_cold_process_compile_and_register_once():
    subprocess.run([sys.executable, "-c", THREADS], check=True, timeout=600)


@pytest.fixture
def roots(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(_files.tempfile, "gettempdir", lambda: str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    return tmp_path / "cache" / "policychord", tmp_path / "tmp"


def test_what_others_could_write_is_removed(roots):
    folder = _files.private_folder("kernels-x")
    assert folder == roots[0] / "kernels-x"
    (folder / "planted").write_text("code")
    assert (_files.private_folder("kernels-x") / "planted").exists()
    folder.chmod(0o770)
    assert not list(_files.private_folder("kernels-x").iterdir())
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.parent.chmod(0o755)  # as earlier versions left it: nobody else could write
    (folder / "ours").write_text("kept")
    assert (_files.private_folder("kernels-x") / "ours").exists()
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700


def test_a_folder_of_another_user_is_not_used(roots, monkeypatch):
    taken = _files.private_folder("kernels-x")
    me = os.getuid()
    monkeypatch.setattr(_files.os, "getuid", lambda: me + 1)
    folder = _files.private_folder("kernels-x")  # no folder belongs to this user, so one is made for the process
    assert not folder.is_relative_to(taken.parent)
    assert folder.is_dir()
