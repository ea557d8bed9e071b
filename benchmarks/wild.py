"""What is sent to break things: messages, tables, plans and files of tracks, links and bombs.

Every generator takes a `random.Random` and nothing else, so that a number names the case.
"""

import io
import json
import math
import random
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

LONG = "9" * 400
DEEP = {"deep": "[" * 20_000, "long": '{"set": ' + "9" * 5000 + "}"}  # sent in place of these words
ODD = (*DEEP, '{"do": "harm"}', "", '{"set": {"eps": NaN}}')
ACTS = {
    "flight": ("moment", "push", "forget"), "flock": ("file", "boids"),
    "choices": ("file", "cohort", "report", "recovery", "ppc"),
}  # fmt: skip
Random = random.Random


def text(rng: Random, longest: int) -> str:
    """Any characters but surrogates, which no socket carries."""
    codes = (
        rng.choice((rng.randrange(32, 127), rng.randrange(0xD800), rng.randrange(0xE000, 0x110000)))
        for _ in range(rng.randrange(longest))
    )
    return "".join(map(chr, codes))


def value(rng: Random, depth: int = 0) -> Any:
    """Anything that JSON can hold."""
    kind = rng.randrange(5 if depth > 2 else 7)
    if kind == 5:
        return [value(rng, depth + 1) for _ in range(rng.randrange(4))]
    if kind == 6:
        return {text(rng, 8): value(rng, depth + 1) for _ in range(rng.randrange(4))}
    return (
        None,
        rng.random() < 0.5,
        rng.randrange(-(2**70), 2**70),
        rng.choice((0.5, -1e300, float("inf"), rng.gauss(0, 9))),
        text(rng, 8),
    )[kind]


def message(rng: Random, names: list[str]) -> str:
    """Text, JSON, settings with values of any kind."""
    kind = rng.randrange(4)
    if kind == 0:
        return text(rng, 60)
    if kind == 1:
        return json.dumps(value(rng))
    if kind == 2:
        return json.dumps({"set": {rng.choice(names): value(rng) for _ in range(rng.randrange(1, 4))}})
    sent = rng.choice(ODD)
    return DEEP.get(sent, sent)


def wild(rng: Random, names: list[str], acts: tuple[str, ...]) -> str:
    """A message that is nearly right, or not at all."""
    number = rng.choice(("0", "1", "-1", "3", "0.5", "1e-9", "-0.0", "1e15", "1e308", "1e309", "-7e400", "NaN", LONG))
    given = rng.choice((number, number, number, f'"{number}"', "null", "true", "[]", "{}", f"[{number}, 1]",
                        f"[{number}, {number}]", json.dumps(text(rng, 12)), json.dumps(value(rng))))  # fmt: skip
    kind = rng.randrange(4)
    if kind == 0:
        return message(rng, names)
    if kind == 1 and acts:
        return f'{{"act": {{"{rng.choice(acts)}": {given}}}}}'
    return f'{{"set": {{"{rng.choice(names)}": {given}}}}}'


# ------------------------------------------------------------------------------- tables of choices

CELLS = ("", "nan", "inf", "-1", "0", "3", "1e400", "1e13", "0x10", "1_000", "=1+1", "@x", "$\\frac{x$", "<b>",
         "\x1b[31m",
         "\x00", '"', '""', "1;2", "\u0661", LONG, "Ann", "None", "true", " 1 ", "1.0000001")  # fmt: skip


def table(rng: Random) -> bytes:
    """A table of choices with a few things wrong: cells, columns, rows, bytes."""
    names = ["subject", "block", "trial", "choice", "reward", "RT", "source"]
    rows = [[str(s), str(b), str(t), str(1 + rng.randrange(2)), f"{rng.gauss(0, 9):.2f}", "400", "mine"]
            for s in (1, 2) for b in (1, 2) for t in range(1, 7)]  # fmt: skip
    return _broken_table(rng, [names, *rows])


def _broken_table(rng: Random, rows: list[list[str]]) -> bytes:
    for _ in range(rng.randrange(4)):
        at = rng.randrange(len(rows))
        kind = rng.randrange(7)
        if kind <= 2 and rows[at]:
            rows[at][rng.randrange(len(rows[at]))] = rng.choice((*CELLS, text(rng, 9)))
        elif kind == 3:
            rows[at] = rows[at][: rng.randrange(len(rows[at]) + 1)]
        elif kind == 4:
            rows[at] = rows[at] + [rng.choice(CELLS)] * rng.randrange(1, 40)
        elif kind == 5:
            rows.insert(at, list(rng.choice(rows)))
        elif len(rows) > 1:
            del rows[at]
    end, between = rng.choice(("\n", "\n", "\r\n", "\r")), rng.choice(",,,,,,,;\t|")
    content = end.join(between.join(row) for row in rows).encode()
    if rng.randrange(12) == 0:
        return content.decode().encode(rng.choice(("utf-16", "utf-32", "utf-7")))
    return damaged(rng, content) if rng.randrange(6) == 0 else content


def damaged(rng: Random, content: bytes) -> bytes:
    """Bytes that were cut off, put in between, or changed."""
    kind, at = rng.randrange(3), rng.randrange(len(content) + 1)
    if kind == 0:
        return content[:at]
    if kind == 1:
        return content[:at] + rng.randbytes(rng.randrange(1, 30)) + content[at:]
    changed = bytearray(content)
    for _ in range(rng.randrange(1, 9) if changed else 0):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


# ------------------------------------------------------------------------------- plans

NUMBERS = ("0", "1", "-1", "2", "0.5", "1e-9", "1e9", "1e308", "1000000000", LONG, "nan", "inf", "true", '""', '"x"',
           "[]", "{}", "[1, 2]", '["a", 1]', "[0.5, 0.2, 0.3]", "1979-05-27", "{ low = 0, high = 1 }",
           "{ low = 1, high = 0, points = 3 }", "{ low = 0.1, high = 1.0, points = 1000000000 }",
           '{ low = 0, high = 1, points = 3, scale = "log" }', "{ low = nan, high = inf, points = 2 }",
           "{ low = 0.1, high = 1.0, points = 3, scale = 1 }", "{ mean = 0, sd = 1 }")  # fmt: skip
Lines = dict[str, str]


def plan(rng: Random) -> str:
    """A plan of a sweep, with a few things wrong."""
    lines = {
        "study": '"flock"', "episodes": "3", "seed": "1", "batch": "10", "metrics": '["milling"]', "trajectories": "0",
    }  # fmt: skip
    tables = {"settings": {"scenario": '"milling"', "steps": "5"}, "grid": {"eps": "[0.1, 1.0]", "boids": "[4, 5]"}}
    if rng.random() < 0.3:
        del tables["grid"]
        tables["random"] = {"points": "4", "over.eps": "{ low = 0.1, high = 1.0 }", "design": '"sobol"'}
    return _broken_plan(rng, lines, tables)


OF_FAMILIES = {"bandit": ("variance", "trials"), "flock": ("boids", "steps", "collision"), "quadrotor": ("points",)}


def fit_plan(rng: Random) -> str:
    """A plan of a fit, with a few things wrong."""
    family = rng.choice(list(OF_FAMILIES))
    lines = {"family": f'"{family}"', "free": '["eps"]', "starts": "2", "method": '"map"', "seed": "1"}
    tables: dict[str, Lines] = {"fixed": {}, "options": {}, "prior": {"eps": "{ mean = 0.0, sd = 1.0 }"},
                                "simulate": {"decisions": "40", "theta": "{ eps = 0.5 }"},
                                "recover": {"repeats": "2", "profiles": '["ln eps"]'}}  # fmt: skip
    wrong = rng.randrange(5)
    if wrong == 0:
        tables["options"][rng.choice(OF_FAMILIES[family])] = rng.choice((*NUMBERS, "[1e308, -1]", "[4.0]"))
    elif wrong == 1:
        tables["fixed"][rng.choice(("prior", "coef", "scale", "sd", "precision"))] = rng.choice(NUMBERS)
    elif wrong == 2:
        given = f"{{ {rng.choice(('eps', 'prior', 'coef', 'sd'))} = {rng.choice(NUMBERS[:12])} }}"
        tables["simulate"]["theta"] = given
    elif wrong == 3:
        del tables["simulate"]
        lines["data"] = rng.choice(('"mine.csv"', '"data.zarr"', '"."', '"/dev/null"', '"nowhere.csv"', '""', "7"))
    return _broken_plan(rng, lines, tables, most=2 if wrong == 4 else 0)


def tracks_plan(rng: Random) -> str:
    """Settings of a fit of tracks, with a few things wrong."""
    lines = {"rate": "10.0", "scale": "1.0", "unit": '"m"', "most": "200", "starts": "1", "seconds": "1.0"}
    tables = {"smoothing": {"window": "0.3", "order": "2", "causal": "false", "longest_gap": "0.2"},
              "forces": {"every": "0.2", "radii": "[1.0, 2.0, 3.0]", "nearest": "3", "vision_angle": "320.0",
                         "leave_out": '["0"]'}}  # fmt: skip
    return _broken_plan(rng, lines, tables)


def _broken_plan(rng: Random, lines: Lines, tables: dict[str, Lines], most: int = 3) -> str:
    for _ in range(rng.randrange(1, most + 1) if most else 0):
        where = rng.choice([lines, *tables.values()])
        name = rng.choice([*where, json.dumps(text(rng, 6)), "grid", "settings", "a.b.c"])
        where[name] = rng.choice((*NUMBERS, json.dumps(text(rng, 8)), json.dumps(value(rng, 2))))
        if rng.random() < 0.2:
            where.pop(rng.choice(list(where)))
    written = [f"{name} = {given}" for name, given in lines.items()]
    for name, content in tables.items():
        written += [f"[{name}]", *(f"{key} = {given}" for key, given in content.items())]
    if rng.random() < 0.05:
        written.append("x = " + "[" * 5000)
    if rng.random() < 0.1:
        written = written[: rng.randrange(len(written))]
    return "\n".join(written)


# ------------------------------------------------------------------------------- files of tracks

FRAMES, GROUP = 12, 3


def tracks(rng: Random) -> tuple[str, bytes]:
    """(name, content) of a file of tracks with a few things wrong: numbers, shapes, labels, bytes."""
    name, make = rng.choice(tuple(FILES.items()))
    content = make(rng)
    return name, damaged(rng, content) if rng.random() < 0.3 else content


def places(rng: Random) -> np.ndarray:
    """Positions (frame, individual, 2) with gaps, and perhaps with numbers, a type or a shape that nobody expects."""
    walk = np.random.default_rng(rng.randrange(2**32)).normal(size=(FRAMES, GROUP, 2)).cumsum(axis=0).round(3)
    walk[4, 1] = np.nan
    for _ in range(rng.randrange(3)):
        at = (rng.randrange(FRAMES), rng.randrange(GROUP), rng.randrange(2))
        walk[at] = rng.choice((0.0, -1.0, 1e300, -1e308, math.inf, math.nan, 5e-324, 1e15))
    kind = rng.randrange(16)
    if kind == 0:
        return rng.choice((walk.ravel(), walk[0], walk[..., 0], walk[:2], walk[:0], walk[:, :0], walk[:, :1],
                           walk[..., None], np.array(1.0), walk.transpose(2, 0, 1)))  # fmt: skip
    if kind == 1:
        kept = np.clip(np.nan_to_num(walk), -99, 99)
        return kept.astype(rng.choice(("?", "i1", "c16", "S3", "U4", "M8[s]", ">f8", "f2")))
    if kind == 2:
        return np.full_like(walk, rng.choice((0.0, math.nan, math.inf, 1e308)))
    return walk


def _long_table(rng: Random) -> bytes:
    walk = np.random.default_rng(rng.randrange(2**32)).normal(size=(FRAMES, GROUP, 2)).cumsum(axis=0).round(3)
    rows = [["0", str(k), str(i), *map(str, walk[k, i])] for k in range(FRAMES) for i in range(GROUP)]
    return _broken_table(rng, [["trial", rng.choice(("frame", "frame", "time")), "id", "x", "y"], *rows])


def _wide_table(rng: Random) -> bytes:
    walk = np.random.default_rng(rng.randrange(2**32)).normal(size=(FRAMES, 2 * GROUP)).cumsum(axis=0).round(3)
    rows = [[str(k / 25), *map(str, row)] for k, row in enumerate(walk)]
    return _broken_table(rng, [["time", *(f"{axis}{i}" for i in range(1, GROUP + 1) for axis in "xy")], *rows])


def _array(rng: Random) -> bytes:
    file = io.BytesIO()
    np.save(file, places(rng), allow_pickle=False)
    return file.getvalue()


def attribute(rng: Random) -> Any:
    """A number of frames a second, or something else that a file can hold."""
    return rng.choice((25.0, 25.0, 25.0, 25, 0.0, -1.0, math.nan, math.inf, 1e-300, 1e308, "25", "", text(rng, 8),
                       np.array([25.0, 30.0]), np.array([], float)))  # fmt: skip


def _hdf5(rng: Random) -> bytes:
    import h5py

    file = io.BytesIO()
    with h5py.File(file, "w") as held:
        name, given = rng.choice(("trajectories",) * 9 + ("tracks",)), places(rng)
        kind = rng.randrange(12)
        if kind == 0:
            held.create_group(name)
        elif kind == 1:  # as large as nobody has written it
            held.create_dataset(
                name, shape=rng.choice(((10**12,), (10**9, 3, 2), (3, 10**12))), dtype="f8", chunks=True
            )
        elif kind == 2:
            held[name] = rng.choice((h5py.ExternalLink("other.h5", "x"), h5py.SoftLink("/nowhere")))
        else:
            held.create_dataset(name, data=given.astype("S") if given.dtype.kind in "UM" else given)
        held.attrs["frames_per_second"] = attribute(rng)
        held.attrs["identities_labels"] = rng.choice((["1", "2", "queen"], ["a"], 7, ["a", "a", "a"], ["\x1b[31m"] * 3))
        if rng.random() < 0.2:
            held["length_unit"] = h5py.ExternalLink("/dev/zero", "x")
    return file.getvalue()


def _netcdf(rng: Random) -> bytes:
    import xarray as xr

    walk = places(rng)
    walk = walk if walk.ndim == 3 and walk.dtype.kind in "iufb" else np.nan_to_num(_plain(rng))
    walk = walk.astype(float)
    dims = ["time", "individual", "space"]
    if rng.random() < 0.2:
        dims[rng.randrange(3)] = rng.choice(("individuals", "keypoint", "t", "x"))
    coords: Mapping[str, Any] = {
        "time": np.arange(walk.shape[0]) / 25,
        "space": ["x", "y"],
        "individual": ["a", "b", "c"],
    }
    sizes = dict(zip(dims, walk.shape, strict=True))
    coords = {name: given for name, given in coords.items() if sizes.get(name) == len(given) and rng.random() < 0.8}
    if "space" in coords and rng.random() < 0.2:
        coords["space"] = rng.choice((["x", "z"], ["x", "x"], ["\x1b[31m", "y"]))
    given = xr.Dataset({rng.choice(("position",) * 9 + ("pose",)): (dims, walk)}, coords)
    given.attrs |= {
        "fps": attribute(rng),
        "time_unit": rng.choice(("seconds", "frames", 3)),
        "space_unit": text(rng, 30),
    }
    return bytes(given.to_netcdf(engine=rng.choice(("scipy", "h5netcdf"))))


def _plain(rng: Random) -> np.ndarray:
    return np.random.default_rng(rng.randrange(2**32)).normal(size=(FRAMES, GROUP, 2)).cumsum(axis=0)


FILES: dict[str, Callable[[Random], bytes]] = {
    "long.csv": _long_table, "wide.csv": _wide_table, "plain.npy": _array, "trajectories.h5": _hdf5,
    "poses.nc": _netcdf,
}  # fmt: skip


@cache
def good_tracks() -> bytes:
    """A table of eight individuals that can be fitted: 400 frames at 10 Hz."""
    rng = np.random.default_rng(0)
    turn = rng.normal(size=(400, 8)).cumsum(axis=0) * 0.1
    place = np.cumsum(0.1 * np.stack([np.cos(turn), np.sin(turn)], axis=-1), axis=0) + rng.normal(size=(8, 2))
    rows = [f"{k / 10},{i},{x:.3f},{y:.3f}" for k, frame in enumerate(place) for i, (x, y) in enumerate(frame)]
    return "\n".join(["time,id,x,y", *rows]).encode()


# ------------------------------------------------------------------------------- links and bombs

SECRET = np.linspace(0.123456, 0.654321, 72)  # numbers in a file of somebody else
File = tuple[str, bytes]


def _held(make: Callable[[Any], Any]) -> bytes:
    """An HDF5 file with tracks, to which something is done."""
    import h5py

    file = io.BytesIO()
    with h5py.File(file, "w") as held:
        held["trajectories"] = _plain(Random(0))
        held.attrs["frames_per_second"] = 25.0
        make(held)
    return file.getvalue()


def _poses(make: Callable[[Any], Any]) -> bytes:
    """A netCDF file with tracks, to which something is done."""
    import h5py
    import xarray as xr

    coords = {"space": ["x", "y"], "individual": ["a", "b", "c"]}
    walk = xr.Dataset({"position": (("time", "individual", "space"), _plain(Random(0)))}, coords, {"fps": 25.0})
    file = io.BytesIO(bytes(walk.to_netcdf(engine="h5netcdf")))
    with h5py.File(file, "a") as held:
        make(held)
    return file.getvalue()


def links(secret: str) -> dict[str, File]:
    """Files of tracks that refer to `secret` (its numbers) and to secret.h5 (as x), each in another way."""
    import h5py

    where = [(secret, 0, SECRET.nbytes)]
    shape = (FRAMES, GROUP, 2)

    def of_netcdf(held: Any, given: Any) -> None:
        """Stands where the positions stood, on the same axes."""
        for axis, name in enumerate(("time", "individual", "space")):
            if name in held:
                given.dims[axis].attach_scale(held[name])
        del held["position"]
        held["position"] = h5py.SoftLink(given.name)

    def virtual(held: Any, name: str) -> Any:
        layout = h5py.VirtualLayout(shape=shape, dtype="f8")
        layout[:] = h5py.VirtualSource(f"{secret}.h5", "x", shape=shape)
        return held.create_group("deep").create_virtual_dataset(name, layout)

    def outside(held: Any, name: str) -> Any:
        return held.create_group("deep").create_dataset(name, shape=shape, dtype="f8", external=where)

    def rate(held: Any) -> None:
        held.create_group("deep").create_dataset("x", shape=(1,), dtype="f8", external=[(secret, 0, 8)])
        del held.attrs["frames_per_second"]
        held["frames_per_second"] = h5py.SoftLink("/deep/x")

    def referred(held: Any) -> None:
        held["body_length"] = np.array([outside(held, "x").ref], dtype=h5py.ref_dtype)

    def linked(held: Any) -> None:
        held.create_group("deep")["x"] = h5py.ExternalLink(f"{secret}.h5", "x")

    return {
        "soft link to external storage (netCDF)": ("a.nc", _poses(lambda held: of_netcdf(held, outside(held, "x")))),
        "soft link to a virtual dataset (netCDF)": ("b.nc", _poses(lambda held: of_netcdf(held, virtual(held, "x")))),
        "external storage inside a group": ("c.h5", _held(lambda held: outside(held, "x"))),
        "a virtual dataset inside a group": ("d.h5", _held(lambda held: virtual(held, "x"))),
        "an external link inside a group": ("e.h5", _held(linked)),
        "a rate that lies elsewhere": ("f.h5", _held(rate)), "a reference": ("g.h5", _held(referred)),
    }  # fmt: skip


def bombs() -> dict[str, File]:
    """Small files of tracks that would become large."""

    def never_written(held: Any) -> None:
        del held["trajectories"]
        held.create_dataset("trajectories", shape=(19_000_000, 1, 2), dtype="f8", chunks=True, compression="gzip")

    def zeros(held: Any) -> None:
        held.create_dataset("other", data=np.zeros(4_000_000), compression="gzip", chunks=(1_000_000,))

    def long_entry(held: Any) -> None:
        held.create_dataset("body_length", shape=(1,), dtype="S2000000000", chunks=(1,))

    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": (10**9, 3, 2)})
    many = b"".join(b"%d,%d,0,%d,1\n" % (trial, t, t) for trial in range(16_000) for t in range(3))
    crowd = io.BytesIO()
    np.save(crowd, np.random.default_rng(0).integers(-99, 99, (6000, 400, 2)).astype("i1"))
    return {
        "numbers that were never written": ("a.h5", _held(never_written)),
        "packed zeros": ("b.h5", _held(zeros)),
        "an entry of 2 GB": ("c.h5", _held(long_entry)),
        "packed zeros (netCDF)": ("d.nc", _poses(zeros)),
        "an array without its numbers": ("e.npy", head.getvalue()),
        "16,000 trials": ("f.csv", b"trial,t,id,x,y\n" + many),
        "5 million columns": ("g.csv", b"," * 4_900_000),
        "5 million lines": ("h.csv", b"a,b\n" + b",\n" * 2_400_000),
        "a number of 5 MB": ("i.csv", b"frame,id,x,y\n1,1,1," + b"9" * 4_900_000),
        "a crowd": ("j.npy", crowd.getvalue()),
        "far apart frames": ("k.csv", b"frame,id,x,y\n0,0,1,1\n1,0,1,1\n9000000000,0,1,1\n"),
        "many individuals": (
            "l.csv",
            b"frame,id,x,y\n" + b"".join(b"%d,%d,1,2\n" % (k % 3, k) for k in range(390_000)),
        ),
    }


def keys() -> dict[str, str]:
    """TOML that takes memory by the square of its length."""
    deep = ".".join("a" * 100_000)
    return {
        "a dotted key": f"{deep} = 1",
        "a dotted header": f"[{deep}]",
        "quoted": " . ".join(['"="'] * 50_000) + "=1",
        "in a table": 'x = { b = """a"b""", ' + deep + ' = 1, c = "" }',
        "behind a comment": f"# '''\n{deep} = 1",
        "many names": "".join(f"x{k} = 1\n" for k in range(90_000)),
        "brackets": "x = " + "[" * 500_000,
    }
