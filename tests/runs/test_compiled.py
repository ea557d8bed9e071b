"""Compiled programs are machine code: they are loaded only from a folder that nobody else can write."""

import os

import jax
import pytest

from policychord import _files
from policychord.runs import compiled


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where programs are kept, and where JAX is told to keep them."""
    told = {}
    monkeypatch.setattr(jax.config, "update", told.__setitem__)
    monkeypatch.setattr(_files, "user_cache_path", lambda *name, **how: tmp_path / "cache")
    return compiled.programs_folder(), told


def test_the_folder_is_made_for_its_user_alone(folder):
    path, told = folder
    compiled.keep_programs()
    assert told["jax_compilation_cache_dir"] == str(path)
    assert path.stat().st_mode & 0o777 == path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="folders have no such owners here")
def test_what_others_could_have_put_there_is_never_loaded(folder):
    path, told = folder
    (path / "planted").write_bytes(b"code")
    path.chmod(0o777)
    compiled.keep_programs()
    assert told["jax_compilation_cache_dir"] == str(path)
    assert not list(path.iterdir())
    assert path.stat().st_mode & 0o777 == 0o700


def test_the_oldest_go_first_and_files_that_vanish_meanwhile_are_no_error(folder, monkeypatch):
    path, _ = folder
    for age in range(4):
        (path / f"program-{age}").write_bytes(bytes(10))
        os.utime(path / f"program-{age}", (1e9 - age, 1e9 - age))
    os.symlink(path / "gone", path / "link")
    assert {fact.st_size for _, fact in compiled.facts_of(path.iterdir())} == {10}
    monkeypatch.setattr(compiled, "KEPT_BYTES", 25)
    compiled.keep_programs()
    assert sorted(file.name for file, _ in compiled.facts_of(path.iterdir())) == ["program-0", "program-1"]
