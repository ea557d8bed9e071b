"""Files that are handed over: politely refused or read, in memory, each by the tab it belongs to."""

import io
import json
import socket
import subprocess
import sys

import httpx
import pytest
from benchmarks.frames import unpack

from policychord.choices.data import as_table
from policychord.choices.simulate import synthetic
from policychord.studio import parser, server, uploads
from policychord.studio.pages.choices import CHOICES
from policychord.studio.security import ADDRESS, LARGEST_BODY, cookie_name
from policychord.studio.session import Session
from policychord.studio.uploads import Upload, Uploads, tidy
from policychord.studio.wire import Frame

from .serving import TOKEN, wait_until
from .test_session import frame, words

HEADER = b"subject,block,trial,choice,reward\n"


def cohort(people):
    return as_table(synthetic("2", people, blocks=2)).to_csv(index=False).encode()


def hand(studio, content, name="mine.csv"):
    with httpx.Client(base_url=studio.origin, cookies=studio.cookies, timeout=60) as client:
        return client.post("/upload", params={"name": name}, content=content)


def act(line, **what):
    line.send(json.dumps({"act": what}))


def test_few_files_wait_and_each_is_taken_once():
    kept = Uploads()
    numbers = [kept.put(f"{k}.csv", b"") for k in range(uploads.MOST + 2)]
    assert len(kept) == uploads.MOST
    assert kept.take(numbers[-1]).name == f"{uploads.MOST + 1}.csv"
    for gone in (numbers[-1], numbers[0], None, ["x"], "nothing"):
        with pytest.raises(ValueError, match="once more"):
            kept.take(gone)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("choices 1.csv", "choices 1.csv"),
        ("../../etc/passwd", "passwd"),
        ("C:\\own\\data.csv", "data.csv"),
        ("=cmd|' /C calc'!A0.csv", "C calc__A0.csv"),
        ("-1+1.csv", "1+1.csv"),
        ("<script>.csv", "script_.csv"),
        ("a\nb\x00\u202ec.csv", "abc.csv"),
        ("", "table.csv"),
        ("größe.csv", "größe.csv"),
        ("x" * 500, "x" * 80),
    ],
)
def test_names_are_harmless(given, shown):
    assert tidy(given) == shown


def test_two_tabs_have_their_own_data(studio):
    with studio.socket("choices") as one, studio.socket("choices") as two:
        for line, people in ((one, 4), (two, 5)):
            assert words(line)["kind"] == "hello"
            number = hand(studio, cohort(people), f"{people}.csv").json()["number"]
            act(line, file=number)
            assert words(line)["settings"]["file"] == f"{people}.csv"
        for line, people in ((one, 4), (two, 5)):
            shown = frame(line, "data").header
            assert (shown["file"], shown["people"], shown["simulated"]) == (f"{people}.csv", people, False)
            assert len(frame(line, "group").header["subjects"]) == people
        act(one, file=number)  # of the other tab, and taken already
        error = words(one)
        while error["kind"] != "error":
            error = words(one)
        assert "once more" in error["message"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b"\x00\x01\x02", "not text"),
        (b"PK\x03\x04 a spreadsheet", "not text"),
        (b"\x80\x04\x95pickle", "not UTF-8"),
        (HEADER + "1,1,1,1,é\n".encode("latin-1"), "row 2 has a byte that is not UTF-8"),
        (HEADER + b'"' + b"x" * 300_000, "cannot be split"),
        (b"subject;block;trial;choice;reward\n1;1;1;1;1\n", "fewer than 10 trials"),
        (HEADER + b"1,1,1,1,=cmd|' /C calc'!A0\n", "reward must be a number: row 2"),
        (b",".join(b"c%d" % k for k in range(100_000)) + b"\n", "missing columns"),
        (cohort(301), "up to 300"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_broken_file_is_answered_politely_and_changes_nothing(studio, content, said):
    with studio.socket("choices") as line:
        assert words(line)["kind"] == "hello"
        act(line, file=hand(studio, content).json()["number"])
        assert words(line)["settings"]["file"] == ""
        shown = frame(line, "data").header
        assert said in shown["fault"]
        assert len(shown["fault"]) <= 3000
        assert shown["simulated"]


def test_too_large_a_file_is_refused(studio):
    answer = hand(studio, b"x" * (LARGEST_BODY + 1))
    assert answer.status_code == 413
    assert "5 MB" in answer.text


def test_only_a_page_that_asks_for_files_takes_them(studio):
    with studio.socket("gate") as line:
        words(line)
        act(line, file=hand(studio, b"x").json()["number"])
        assert "settings only" in words(line)["message"]


def test_a_tab_that_goes_away_leaves_its_work():
    session = Session(CHOICES, lambda: None, Uploads())
    session.receive(json.dumps({"set": {"subjects": 100}}))
    session.start()
    seen: list[Frame] = []

    def fitting():
        seen.extend(unpack(part) for part in session.take() if isinstance(part, bytes))
        return any(one.part == "progress" for one in seen)

    wait_until(fitting)
    session.close()
    session.thread.join()
    fitting()
    assert seen[-1].part == "progress"
    assert seen[-1].header["done"] < seen[-1].header["total"]


def half(studio, content=b"subject,choice", length=5000):
    """A request whose body does not come."""
    sent = (f"POST /upload?name=x.csv HTTP/1.1\r\nHost: {studio.origin.removeprefix('http://')}\r\n"
            f"Cookie: {cookie_name(studio.port)}={TOKEN}\r\nContent-Length: {length}\r\n\r\n").encode()  # fmt: skip
    line = socket.create_connection((ADDRESS, studio.port))
    line.sendall(sent + content)
    return line


def test_an_upload_that_is_cut_off_is_no_bug(studio, capfd):
    half(studio).close()
    with studio.socket("gate") as line:  # the server goes on
        assert words(line)["kind"] == "hello"
    wait_until(lambda: hand(studio, b"x").status_code == 200)
    assert "Traceback" not in "".join(capfd.readouterr())


def test_a_slow_upload_is_told_so(studio, monkeypatch):
    monkeypatch.setattr(server, "BODY_WITHIN", 0.3)
    with half(studio) as line:
        assert line.recv(1000).startswith(b"HTTP/1.1 408")


def test_messages_that_are_dropped_are_told():
    """A page that sends thousands without reading loses the oldest, and knows how many."""
    session = Session(CHOICES, lambda: None, Uploads())
    for _ in range(5000):
        session.receive("nonsense")
    (said,) = session.take()
    assert "4744 messages or answers were dropped: at most 256 wait" in json.loads(said)["message"]
    assert session.take() == []


# ----------------------------------------------------------------------------- the process that parses


def packed(size):
    """An HDF5 file of a few kilobytes with a dataset that its own declaration makes large."""
    import h5py

    file = io.BytesIO()
    with h5py.File(file, "w") as held:
        held.create_dataset("trajectories", shape=size, dtype="f8", chunks=True, compression="gzip")
        held.attrs["frames_per_second"] = 25.0
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("t.h5", packed((19_000_000, 1, 2)), "unpacks to"),
        ("t.csv", b"trial,t,id,x,y\n" + b"".join(b"%d,%d,0,%d,1\n" % (k, t, t) for k in range(1000) for t in range(3)),
         "up to 999"),
        ("t.csv", b"frame,id,x,y\n" + b"".join(b"%d,%d,1,2\n" % (k % 3, k // 3) for k in range(400_500)), "400,000"),
    ],
)  # fmt: skip
def test_a_file_beyond_the_studio_is_a_sentence(name, content, said):
    with pytest.raises(ValueError, match=said):
        parser.parse("tracks", Upload(name, content), {"rate": 10.0})


def test_a_parser_that_takes_too_much_memory_time_or_dies_gives_a_sentence(monkeypatch):
    good = Upload("t.csv", b"frame,id,x,y\n" + b"".join(b"%d,0,%d,2\n" % (k, k) for k in range(30_000)))
    assert parser.parse("tracks", good, {"rate": 10.0}).trials[0].position.shape == (30_000, 1, 2)
    run = parser.subprocess.run

    def with_code(code):
        """The parser as it is, but for a line before it begins."""

        def begin(command, **more):
            return run(
                [*command[:2], "-c", f"from policychord.studio import parser\n{code}\nparser._answer_request()"], **more
            )

        monkeypatch.setattr(parser.subprocess, "run", begin)

    with_code("parser.MEMORY = 1")
    with pytest.raises(ValueError, match="memory"):
        parser.parse("tracks", good, {"rate": 10.0})
    with_code("import os; os.kill(os.getpid(), 9)")
    with pytest.raises(ValueError, match="could not be read"):
        parser.parse("tracks", good, {"rate": 10.0})
    with_code("print('noise'); raise SystemExit")
    with pytest.raises(ValueError, match="could not be read"):
        parser.parse("tracks", good, {"rate": 10.0})
    with_code("import sys; sys.modules['resource'] = None")  # as on Windows
    assert parser.parse("tracks", good, {"rate": 10.0}).rate == 10.0
    with_code("import time; time.sleep(60)")
    monkeypatch.setattr(parser, "SECONDS", 1.0)
    with pytest.raises(ValueError, match="within 1 seconds"):
        parser.parse("tracks", good, {"rate": 10.0})


def test_the_parser_imports_its_reader_and_nothing_heavy():
    code = ("import sys; from policychord.studio import parser; [load() for load in parser.READERS.values()]; "
            "heavy = {'jax', 'scipy', 'matplotlib', 'numba', 'fastapi'} & set(sys.modules); "
            "assert not heavy, heavy")  # fmt: skip
    subprocess.run([sys.executable, "-c", code], check=True)
