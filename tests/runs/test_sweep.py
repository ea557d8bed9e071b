"""Sweeps: nothing lost, nothing doubled, and the same bits wherever they were computed."""

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest
import xarray as xr

from policychord.runs import engine, sweep
from policychord.runs.engine import dask_cluster, processes
from policychord.runs.plan import SweepPlan, batches_of, compute

PLAN = SweepPlan.model_validate(
    {
        "study": "flock", "episodes": 3, "batch": 4, "trajectories": 1,
        "settings": {"scenario": "polarization", "boids": 4, "steps": 6}, "grid": {"eps": [0.1, 1.0, 10.0]},
    }
)  # fmt: skip


def heard(batch):
    return None


def run(out, workers=1, watch=heard):
    sweep.open_sweep(PLAN, out)
    todo = sweep.missing(PLAN, out)
    with processes(workers, out / "log.txt") as pool:
        sweep.run_batches(PLAN, out, pool, workers, todo, watch)
    return sweep.results(PLAN, out).table


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    out = tmp_path_factory.mktemp("sweep")
    return out, run(out)


def same(one, two):
    pd.testing.assert_frame_equal(one, two, check_exact=True)


def test_every_episode_of_every_point_has_its_line(done):
    out, table = done
    assert list(zip(table.point, table.episode, strict=True)) == [(p, e) for p in range(3) for e in range(3)]
    assert table.groupby("point").eps.unique().map(list).to_dict() == {0: [0.1], 1: [1.0], 2: [10.0]}
    assert table.polarization.between(0, 1).all()
    assert table.polarization.nunique() == 9
    assert sweep.sweep_status(PLAN, out) == (3, 3, 9, 9, 0, ())


def test_dask_changes_no_bit(done, tmp_path):
    sweep.open_sweep(PLAN, tmp_path)
    with dask_cluster(None, 2) as cluster:
        sweep.run_batches(PLAN, tmp_path, cluster.pool, cluster.workers, sweep.missing(PLAN, tmp_path), heard)
        assert cluster.workers == 2
        assert cluster.dashboard.startswith("http")
    same(sweep.results(PLAN, tmp_path).table, done[1])


def test_shards_together_are_the_whole_and_share_nothing(tmp_path):
    whole = sweep.missing(PLAN, tmp_path)
    shards = [sweep.missing(PLAN, tmp_path, slice(number, None, 2)) for number in (0, 1)]
    assert [len(shard) for shard in shards] == [2, 1]
    assert sorted(batch.id for shard in shards for batch in shard) == sorted(batch.id for batch in whole)


@pytest.mark.thorough
def test_a_restart_does_what_is_missing_with_any_number_of_workers_and_changes_no_bit(done, tmp_path):
    shutil.copytree(done[0], tmp_path, dirs_exist_ok=True)
    lost = {batch.id for batch in batches_of(PLAN)[1:]}
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "batches").iterdir()}
    for name in lost:
        (tmp_path / "batches" / f"{name}.parquet").unlink()
    computed = []
    same(run(tmp_path, 2, watch=lambda batch: computed.append(batch.id)), done[1])
    assert sorted(computed) == sorted(lost)
    after = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "batches").iterdir()}
    assert {name for name in before if before[name] != after[name]} == {f"{name}.parquet" for name in lost}


def test_an_episode_run_again_is_the_episode_of_the_sweep_bit_for_bit(done, tmp_path):
    _, table = done
    # in a process like the workers', as the command does it
    with processes(1, tmp_path / "log.txt") as pool:
        found = pool.submit(sweep.rerun_episode, PLAN, 1, 2, tmp_path).result()
    line = table[(table.point == 1) & (table.episode == 2)].iloc[0]
    assert found.metrics == {name: line[name] for name in found.metrics}
    assert {path.name for path in found.files} == {"data.zarr", "episode.json", "episode.svg", "episode.png"}
    assert json.loads((tmp_path / "episode.json").read_text())["settings"]["eps"] == 1.0
    assert xr.open_zarr(tmp_path / "data.zarr").episode.values.tolist() == [2]

    assert sweep.differing(PLAN, done[0], 1, 2, found) == ["Bit for bit what the sweep found."]
    other = found._replace(metrics=found.metrics | {"milling": 0.5})
    assert "The sweep had found milling = " in sweep.differing(PLAN, done[0], 1, 2, other)[0]


def test_an_episode_that_is_not_there_is_said(tmp_path):
    with pytest.raises(ValueError, match="points are 0 to 2, episodes 0 to 2"):
        sweep.rerun_episode(PLAN, 3, 0, tmp_path)


def test_whole_trajectories_are_kept_of_as_many_episodes_as_wanted(done):
    folders = sorted((done[0] / "trajectories").iterdir())
    assert [path.name.rpartition("-")[0] for path in folders] == ["point-0", "point-1", "point-2"]
    assert xr.open_zarr(folders[1]).episode.values.tolist() == [0]


def test_another_plan_is_not_mixed_in(done):
    other = PLAN.model_copy(update={"episodes": 4, "seed": 2})
    with pytest.raises(ValueError, match=r"another plan \(they differ in episodes, seed\)"):
        sweep.open_sweep(other, done[0])


def test_ids_change_with_whatever_results_depend_on():
    def ids(**changes):
        return {batch.id for batch in batches_of(PLAN.model_copy(update=changes))}

    variants = [ids(), ids(seed=1), ids(settings=PLAN.settings | {"steps": 7}), ids(metrics=("milling",))]
    assert len(set.union(*variants)) == sum(map(len, variants))
    assert ids() == ids()


def test_small_points_share_a_batch_and_large_ones_are_cut():
    def sizes(episodes, batch):
        plan = PLAN.model_copy(update={"episodes": episodes, "batch": batch})
        return [[(part.point, part.first, part.size) for part in batch.spans] for batch in batches_of(plan)]

    assert sizes(2, 4) == [[(0, 0, 2), (1, 0, 2)], [(2, 0, 2)]]
    assert sizes(5, 4)[:2] == [[(0, 0, 4)], [(0, 4, 1)]]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"study": "bandit"}, "sweeps are for flock and quadrotor"),
        ({"metrics": ("polarisation",)}, "'polarisation' is none of flock"),
        (
            {"settings": {"scenario": "polarization", "boidz": 3}},
            "boidz is no setting of the flock: did you mean boids",
        ),
        ({"grid": {"eps": [0.1, -1.0]}}, "eps"),
        ({"settings": {"scenario": "polarization", "grid": 3000}}, "grid"),
        ({"study": "quadrotor", "settings": {"points": 3000}}, "points"),
    ],
)
def test_a_plan_that_cannot_work_is_refused_before_anything_is_written(tmp_path, changes, words):
    with pytest.raises(ValueError, match=words):
        sweep.open_sweep(PLAN.model_copy(update=changes), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_results_of_an_older_version_can_still_be_read(done, monkeypatch):
    monkeypatch.setattr(sweep, "_version_of", lambda plan: "a newer one")
    table, notes = sweep.results(PLAN, done[0])
    same(table, done[1])
    assert notes == ["These episodes were computed by another version of the code or of its packages."]


def test_batches_of_two_versions_are_not_mixed(done, tmp_path, monkeypatch):
    shutil.copytree(done[0], tmp_path, dirs_exist_ok=True)
    files = sorted((tmp_path / "batches").iterdir())
    older = pd.read_parquet(tmp_path / "batches" / f"{batches_of(PLAN)[0].id}.parquet")
    older.attrs["code"] = "an older one"
    older.to_parquet(tmp_path / "batches" / f"{batches_of(PLAN, 'an older one')[0].id}.parquet")
    same(sweep.results(PLAN, tmp_path).table, done[1])
    assert sweep.sweep_status(PLAN, tmp_path).outdated == 1
    monkeypatch.setattr(sweep, "_version_of", lambda plan: "a newer one")
    same(sweep.results(PLAN, tmp_path).table, done[1])  # of the one that made most
    for file in files:
        file.unlink()
    table, notes = sweep.results(PLAN, tmp_path)
    assert len(table) == len(older)
    assert len(notes) == 2


@pytest.mark.parametrize("content", [b"", b"PAR", b"PAR1 and then nothing"])
def test_a_batch_that_was_cut_short_is_missing(done, tmp_path, content):
    shutil.copytree(done[0], tmp_path, dirs_exist_ok=True)
    broken = batches_of(PLAN)[1]
    (tmp_path / "batches" / f"{broken.id}.parquet").write_bytes(content)
    assert sweep.missing(PLAN, tmp_path) == [broken]
    assert sweep.sweep_status(PLAN, tmp_path).done == 2
    assert len(sweep.results(PLAN, tmp_path).table) < len(done[1])


def test_files_that_the_plan_does_not_name_are_named_and_do_not_count(done, tmp_path):
    shutil.copytree(done[0], tmp_path, dirs_exist_ok=True)
    folder = tmp_path / "batches"
    whole = folder / f"{batches_of(PLAN)[0].id}.parquet"
    shutil.copy(whole, folder / f"{whole.stem} (copy).parquet")
    shutil.copy(whole, folder / "0123456789abcdef.parquet")  # looks like a batch
    (folder / "foreign.parquet").write_bytes(b"PAR1, or so it says, PAR1")
    os.mkfifo(folder / "pipe.parquet")
    (folder / f".policychord-1-{'0' * 16}.part").write_bytes(b"")  # being written
    found = sweep.sweep_status(PLAN, tmp_path)
    assert (found.done, found.done_episodes, found.outdated) == (3, 9, 0)
    assert found.stray == tuple(sorted(["0123456789abcdef.parquet", f"{whole.stem} (copy).parquet", "foreign.parquet",
                                        "pipe.parquet"]))  # fmt: skip
    table, notes = sweep.results(PLAN, tmp_path)
    same(table, done[1])
    (note,) = notes
    assert all(name in note for name in ("0123456789abcdef.parquet", "1 more", "Not counted"))


def test_a_batch_that_is_no_batch_is_an_error(done, tmp_path):
    shutil.copytree(done[0], tmp_path, dirs_exist_ok=True)
    one, two = (tmp_path / "batches" / f"{batch.id}.parquet" for batch in batches_of(PLAN)[:2])
    shutil.copy(two, one)
    with pytest.raises(ValueError, match=r"does not hold the 3 episodes of its batch: remove it"):
        sweep.results(PLAN, tmp_path)
    one.write_bytes(b"PAR1, or so it says, PAR1")
    with pytest.raises(ValueError, match=r"cannot be read .* remove it"):
        sweep.results(PLAN, tmp_path)
    pd.DataFrame({"x": [1]}).to_parquet(one)
    with pytest.raises(ValueError, match=r"is no batch of this sweep \(no episode, eps, point\)"):
        sweep.results(PLAN, tmp_path)


def test_a_pipe_in_place_of_a_batch_is_a_batch_that_is_missing(tmp_path):
    (tmp_path / "batches").mkdir()
    for batch, make in zip(batches_of(PLAN), (os.mkfifo, os.mkdir), strict=False):
        make(tmp_path / "batches" / f"{batch.id}.parquet")
    assert sweep.sweep_status(PLAN, tmp_path).done == 0
    assert len(sweep.missing(PLAN, tmp_path)) == 3
    with pytest.raises(ValueError, match="no finished batch"):
        sweep.results(PLAN, tmp_path)


@pytest.mark.parametrize("text", ["", "[1]", "{", '{"study": "flock"}', "[" * 100_000])
def test_a_broken_plan_in_a_folder_is_named(tmp_path, text):
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(ValueError, match=r"plan\.json.*Restore it, or begin in another folder"):
        sweep.load_plan(tmp_path)


def test_a_worker_with_other_code_is_refused(tmp_path, monkeypatch):
    sweep.open_sweep(PLAN, tmp_path)
    versions = iter(["the program's"])
    monkeypatch.setattr(engine, "code_version", lambda *modules: next(versions, "the worker's"))
    with pytest.raises(ValueError, match="another version of policychord"), ThreadPoolExecutor(1) as pool:
        sweep.run_batches(PLAN, tmp_path, pool, 1, sweep.missing(PLAN, tmp_path), heard)


@pytest.mark.thorough
def test_metrics_are_those_that_the_plan_wants():
    plan = PLAN.model_copy(update={"metrics": ("milling",), "trajectories": 0})
    computed = compute(plan, batches_of(plan)[0])
    assert list(computed.table.columns) == ["point", "episode", "eps", "milling"]
    assert computed.trajectories == {}
