"""Sockets: what is said, what comes back, and what is left when a page goes away."""

import gc
import json
import os
import random
import socket

import psutil
import pytest
from benchmarks.frames import unpack
from benchmarks.wild import ACTS, LONG, message, wild
from websockets.exceptions import ConnectionClosedError

from policychord.studio.memory import release_memory
from policychord.studio.pages import PAGES
from policychord.studio.pages.base import Page
from policychord.studio.session import Session
from policychord.studio.uploads import Uploads
from policychord.studio.wire import Frame

from .serving import simulations, wait_until

NAMES = ["eps", "prior_1", "position_2", "spread_3", "depth", "ladder", "start_1", "tau", "nonsense"]


def words(line):
    """The next words, whatever frames come in between."""
    while isinstance(message := line.recv(timeout=120), bytes):
        pass
    return json.loads(message)


def frame(line, part):
    while not (isinstance(message := line.recv(timeout=120), bytes) and unpack(message).part == part):
        pass
    return unpack(message)


def test_hello_settings_and_frames(studio):
    with studio.socket("gate") as line:
        hello = words(line)
        assert hello["kind"] == "hello"
        names = [control["name"] for control in hello["inputs"]]
        assert set(names) == set(hello["settings"]) == set(hello["defaults"])
        assert all(control["description"] and control["label"] for control in hello["inputs"])
        line.send('{"set": {"eps": 2.0}, "number": 7}')
        answer = words(line)
        assert (answer["settings"]["eps"], answer["number"]) == (2.0, 7)  # the page knows what is answered
        assert frame(line, "gate").header["eps"] == 2.0


@pytest.mark.parametrize(
    ("page", "change", "said"),
    [
        ("gate", {"eps": -1}, ["eps", "-1", "more than 0"]),
        ("gate", {"eps": 1e6}, ["eps", "1e+06", "0.02 to 10"]),
        ("gate", {"epsilon": 1}, ["epsilon", "eps"]),
        ("gate", {"ladder": "rope"}, ["ladder", "rope", "stable"]),
        ("gate", {"start_1": 0.9, "start_2": 0.9}, ["start_1", "1.8", "lower"]),
        ("flock", {"boids": 10**9}, ["boids", "1e+09", "2 to 1000"]),
        ("flock", {"alignment_radius": 0.5}, ["alignment_radius", "grow"]),
        ("flock", {"leaders": 41}, ["leaders", "41"]),
        ("flock", {"grid": 3000}, ["grid", "not a setting"]),
    ],
)
def test_a_wrong_setting_is_named_and_changes_nothing(studio, page, change, said):
    with studio.socket(page) as line:
        before = words(line)["settings"]
        line.send(json.dumps({"set": change}))
        error = words(line)
        assert error["kind"] == "error"
        assert all(word in error["message"] for word in said), error["message"]
        assert words(line)["settings"] == before


# Hypothesis keeps books that the server's threads, in the same process, upset: a plain generator does here
@pytest.mark.parametrize("seed", range(60))
def test_nothing_that_is_said_breaks_the_server(studio, seed):
    rng = random.Random(seed)
    with studio.socket("gate") as line:
        for said in [message(rng, NAMES) for _ in range(rng.randrange(1, 6))]:
            line.send(said)
        line.send('{"do": "restart", "set": {"eps": 0.75}}')
        line.send('{"set": {"eps": 0.125}}')
        assert words(line)["kind"] == "hello"
        while True:
            found = words(line)
            assert found["kind"] in ("error", "settings")
            if found.get("settings", {}).get("eps") == 0.125:
                return


@pytest.mark.parametrize(
    ("page", "sent"),
    [
        ("flight", f'{{"act": {{"moment": {LONG}}}}}'),
        ("flight", f'{{"act": {{"push": [{LONG}, 0]}}}}'),
        ("flight", f'{{"set": {{"flight": {LONG}}}}}'),
        ("flock", f'{{"set": {{"boids": {LONG}}}}}'),
        ("flock", f'{{"set": {{"selected": {LONG}}}}}'),
        ("flock", f'{{"set": {{"boids": "{LONG}"}}}}'),  # text that is read as a number
        ("choices", f'{{"set": {{"participant": {LONG}}}}}'),
        ("gate", f'{{"set": {{"eps": {LONG}}}}}'),
        ("gate", '{"set": {"eps": 1e999}}'),
        ("gate", '{"set": {}, "number": {"deep": []}}'),
        ("gate", '{"set": {"\\ud800": 1}}'),  # half a character, which no answer can repeat
    ],
)
def test_numbers_that_cannot_be_are_an_error_and_the_session_lives_on(studio, page, sent):
    with studio.socket(page) as line:
        before = words(line)["settings"]
        line.send('{"do": "rest"}')
        words(line)
        line.send(sent)
        assert words(line)["kind"] == "error"
        assert words(line)["settings"] == before
        line.send('{"set": {}}')
        assert words(line)["settings"] == before


@pytest.mark.parametrize("page", list(PAGES))
def test_hundreds_of_wild_messages_are_all_answered(studio, page):
    """Each gets the settings that hold now, after an error if it was wrong; the page then works as before."""
    rng = random.Random(page)
    with studio.socket(page) as line:
        names = list(words(line)["settings"])
        line.send('{"do": "rest"}')  # what is drawn in between takes long, and it is not asked here
        words(line)
        errors = 0
        for _ in range(15):
            batch = [wild(rng, names, ACTS.get(page, ())) for _ in range(20)]
            for sent in batch:
                line.send(sent)
            answers = 0
            while answers < len(batch):
                found = words(line)
                errors += found["kind"] == "error"
                answers += found["kind"] == "settings"
        assert errors > 100
    with studio.socket(page) as line:
        assert words(line)["kind"] == "hello"
        line.send('{"set": {}}')
        while not isinstance(line.recv(timeout=120), bytes):
            pass


def test_whatever_a_page_raises_is_an_error_message(capsys):
    """Also where no page should: at its start, in a change, in what it says of itself, and in a frame."""
    starts = []

    def begin():
        starts.append(1)
        return 1 / (len(starts) - 1) and "calm"

    def change(state, changes):
        return changes["to"]  # anything else is a KeyError

    def describe(state):
        return {"settings": {"to": {"silent": object}.get(state, state)}, "defaults": {}, "snippet": ""}

    def frame(state):
        if state == "drawn":
            raise MemoryError("too large")
        return "done", Frame("picture", {}, {})

    fragile = Page(
        "fragile", "Fragile", list, begin, change, lambda state: "calm", describe, frame, lambda s: s == "done"
    )
    session = Session(fragile, lambda: None, Uploads())
    session.start()
    got = []

    def after(count, *messages):
        for one in messages:
            session.receive(one)
        wait_until(lambda: got.extend(session.take()) or len(got) >= count, 20)
        kinds = [json.loads(one)["kind"] if isinstance(one, str) else "frame" for one in got]
        got.clear()
        return kinds

    assert after(1) == ["error"]
    assert after(1, "{}") == ["hello"]
    assert after(3, '{"set": {"from": 1}}') == ["error", "settings", "frame"]
    assert after(2, '{"set": {"to": "silent"}}') == ["error", "settings"]
    assert after(2, '{"set": {"to": "drawn"}}') == ["settings", "error"]
    assert after(2, '{"do": "restart"}') == ["settings", "frame"]
    session.close()
    session.thread.join(20)
    assert not session.thread.is_alive()
    assert "MemoryError" in capsys.readouterr().err


def test_an_answer_does_not_wait_for_the_one_before_to_be_acknowledged(studio):
    with studio.socket("gate") as line:
        words(line)
        found = []
        for one in psutil.Process().net_connections("tcp4"):  # the server runs in this process
            if (one.laddr, one.raddr) == (line.remote_address, line.local_address):
                with socket.socket(fileno=os.dup(one.fd)) as served:
                    found.append(served.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
    assert found == [1]


def test_bytes_and_long_messages(studio):
    with studio.socket("gate") as line:
        words(line)
        line.send(b"\x00\x01")
        assert words(line)["kind"] == "error"
        line.send("x" * 200_000)
        with pytest.raises(ConnectionClosedError, match="1009"):
            list(line)


def test_a_hidden_page_gets_no_frames(studio):
    with studio.socket("flock") as line:
        words(line)
        line.send('{"do": "rest", "set": {"boids": 4}}')
        assert words(line)["settings"]["boids"] == 4
        with pytest.raises(TimeoutError):
            line.recv(timeout=0.5)
        line.send('{"do": "wake"}')
        assert frame(line, "flock").arrays["position"].shape == (4, 2)


def test_pages_are_independent(studio):
    with studio.socket("gate") as one, studio.socket("gate") as two:
        words(one), words(two)
        one.send('{"set": {"eps": 5.0}}')
        two.send('{"set": {}}')
        assert words(one)["settings"]["eps"] == 5.0
        assert words(two)["settings"]["eps"] == 0.5


def visit_pages(studio, times):
    for number in range(times):
        line = studio.socket(list(PAGES)[number % len(PAGES)], legacy=True)
        if number % 2:
            line.send('{"set": {}}')
        line.socket.close()  # without a word
    wait_until(lambda: not simulations())


def test_pages_that_go_away_leave_nothing_behind(studio):
    def held():
        gc.collect()
        return sum(type(thing) is Session for thing in gc.get_objects())

    visit_pages(studio, 150)  # what is compiled or loaded once is not left behind, it is kept
    assert held() == 0
    process = psutil.Process()
    release_memory()
    before = process.memory_info().rss
    visit_pages(studio, 100)
    assert held() == 0
    release_memory()
    grown = (process.memory_info().rss - before) / 1e6
    print(f"after 100 visits the server holds {grown:+.0f} MB")
    assert grown < 30  # what 100 flights, fits or gates would hold is many times that; `make soak` makes 1,000
