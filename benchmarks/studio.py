"""The studio as people meet it: pictures a second, the delay of a slider, and the memory with all pages open.

python -m benchmarks.studio --out build/bench-studio.json
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
import psutil
from rich.console import Console
from rich.table import Table
from websockets.sync.client import connect

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PAGES = {"flock, 200 boids": "flock?boids=200", "flock, 1000 boids": "flock?boids=1000", "flight": "flight"}
OPEN = ("gate", "policies", "flock", "choices", "flight")
VISITS = 500
MOVES = 200  # of the slider
WATCHED = 20_000  # ms before the rates are read; the page counts over the last two seconds


@contextmanager
def studio(log=None):
    """The command itself, as a process: (address, process). Its terminal is ours, or the file `log`."""
    command = [sys.executable, "-c", "from policychord.cli import main; main()", "studio", "--no-browser"]
    own = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}  # JAX sets it here
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=own) as process:
        try:
            while not (found := re.search(r"http://\S+token=[\w-]+", process.stdout.readline())):
                pass
            yield found[0], process
        finally:
            process.terminate()


def rates(address: str) -> dict[str, dict[str, float]]:
    """Pictures a second in every page: made by the server, and drawn by the browser."""
    from playwright.sync_api import sync_playwright

    found = {}
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        for name, where in PAGES.items():
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(f"{address}#{where}")
            moving = "() => Number(document.getElementById('main').dataset.frames) > 20"
            page.wait_for_function(moving, timeout=300_000)
            page.wait_for_timeout(WATCHED)
            told = page.evaluate("({...document.getElementById('main').dataset})")
            found[name] = {"made": float(told["made"]), "drawn": float(told["fps"])}
            page.close()
        browser.close()
    return found


# From a change of the slider until the bars show its result, in the page's own clock.
MOVE = """value => new Promise((done) => {
  const panel = document.querySelector('section[data-panel=gate]'), number = document.querySelector('#control-eps');
  const begun = performance.now();
  const watch = new MutationObserver(() => {
    if (panel.dataset.state === 'current') { watch.disconnect(); done(performance.now() - begun); }
  });
  number.value = value;
  number.dispatchEvent(new Event('change'));
  watch.observe(panel, { attributes: true, attributeFilter: ['data-state'] });
})"""


def delays(address: str) -> dict[str, float]:
    """Milliseconds from moving the temperature on the gate page to weights of that temperature: median and 95%."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(f"{address}#gate")
        page.wait_for_selector("[data-panel=circuit][data-state=current]", timeout=300_000)
        times = [page.evaluate(MOVE, f"{0.3 + 0.01 * k:.2f}") for k in range(MOVES)]
        browser.close()
    return {"p50": float(np.median(times)), "p95": float(np.quantile(times, 0.95))}


def _line(address: str, page: str, legacy: bool = True):
    url = urlsplit(address)
    cookie = f"policychord-{url.port}={parse_qs(url.query)['token'][0]}"
    return connect(f"ws://{url.netloc}/ws/{page}", origin=f"http://{url.netloc}", max_size=None,
                   additional_headers={"Cookie": cookie}, open_timeout=60, legacy=legacy)  # fmt: skip


def visit(address: str, times: int) -> None:
    """Sockets that are opened, spoken into and dropped without a word, page by page."""
    for number in range(times):
        line = _line(address, OPEN[number % len(OPEN)])
        line.send('{"set": {}}')
        line.socket.close()


def at_rest(address: str, process: subprocess.Popen) -> float:
    """MB that the server holds when all pages are open, have drawn for a while, and rest."""
    lines = [_line(address, page) for page in OPEN]
    for line in lines:
        line.send('{"set": {}}')
        with suppress(TimeoutError):
            for _ in range(200):
                line.recv(timeout=20)
        line.send('{"do": "rest"}')
    time.sleep(8)
    held = psutil.Process(process.pid).memory_info().rss / 1e6
    for line in lines:
        line.close()
    return held


def memory(address: str, process: subprocess.Popen) -> dict[str, float]:
    """MB that the server holds after 100 visits, and after 500 more."""
    rest, held = at_rest(address, process), []
    for times in (100, VISITS):
        visit(address, times)
        held.append(psutil.Process(process.pid).memory_info().rss / 1e6)
    return {"with all pages open, at rest": rest, "after 100 visits": held[0], f"after {VISITS} more": held[1]}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--out", type=Path, default=Path("build/bench-studio.json"))
    options.add_argument("--all", action="store_true", help="also pictures a second, and memory after many visits")
    asked = options.parse_args()
    out, console = asked.out, Console()
    if BROWSER is None:
        raise SystemExit("no chromium on the PATH: apt-get install chromium")
    with studio() as (address, process):
        with console.status("watching the pages"):
            drawn = rates(address) if asked.all else {}
        with console.status("moving a slider"):
            slider = delays(address)
        with console.status("coming and going"):
            held = memory(address, process) if asked.all else {"at rest": at_rest(address, process)}
    table = Table("page", "made a second", "drawn a second", title="Pictures")
    for name, one in drawn.items():
        table.add_row(name, f"{one['made']:.0f}", f"{one['drawn']:.0f}")
    console.print(f"slider: {slider['p50']:.0f} ms (median), {slider['p95']:.0f} ms (95%)")
    console.print(table, *(f"memory {when}: {size:.0f} MB" for when, size in held.items()), sep="\n")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({"pictures": drawn, "slider": slider, "memory": held}, indent=1))
    console.print(f"wrote {out}")


if __name__ == "__main__":
    main()
