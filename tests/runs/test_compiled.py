"""Compiled programs are machine code: they are loaded only from a folder that nobody else can write."""

import os

import jax
import pytest

from policychord.runs import compiled


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where programs would be kept, and where JAX is told to keep them."""
    told = {}
    monkeypatch.setattr(jax.config, "update", told.__setitem__)
    monkeypatch.setattr(compiled, "user_cache_path", lambda *name, **how: tmp_path / "cache")
    return compiled.programs_folder(), told


def test_the_folder_is_made_for_its_user_alone(folder):
    path, told = folder
    compiled.keep_programs()
    assert told["jax_compilation_cache_dir"] == str(path)
    assert path.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="folders have no such owners here")
@pytest.mark.parametrize("shared", ["it", "parent"])
def test_a_folder_that_others_can_write_is_not_used(folder, shared):
    path, told = folder
    path.mkdir(parents=True, mode=0o700)
    (path if shared == "it" else path.parent).chmod(0o777)
    compiled.keep_programs()
    assert told == {}


def test_files_that_vanish_meanwhile_are_no_error(folder, monkeypatch):
    path, _ = folder
    path.mkdir(parents=True)
    (path / "a").write_bytes(b"12345")
    os.symlink(path / "gone", path / "b")
    assert [(file.name, fact.st_size) for file, fact in compiled.facts_of(path.iterdir())] == [("a", 5)]
    monkeypatch.setattr(compiled, "KEPT_BYTES", 3)
    compiled.keep_programs()
    assert not (path / "a").exists()
