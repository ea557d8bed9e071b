"""The studio as people meet it: pictures a second, made and drawn, and its memory after 500 pages came and went.

python -m benchmarks.studio --out build/bench-studio.json
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psutil
from rich.console import Console
from rich.table import Table
from websockets.sync.client import connect

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PAGES = {"flock, 200 boids": "flock?boids=200", "flock, 1000 boids": "flock?boids=1000", "flight": "flight"}
VISITS = 500
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


def visit(address: str, times: int) -> None:
    """Sockets that are opened, spoken into and dropped without a word, page by page."""
    url = urlsplit(address)
    cookie = f"policychord-{url.port}={parse_qs(url.query)['token'][0]}"
    pages = ("gate", "flock", "choices", "flight")
    for number in range(times):
        line = connect(f"ws://{url.netloc}/ws/{pages[number % 4]}", origin=f"http://{url.netloc}",
                       additional_headers={"Cookie": cookie}, open_timeout=60, legacy=True)  # fmt: skip
        line.send('{"set": {}}')
        line.socket.close()


def memory(address: str, process: subprocess.Popen) -> dict[str, float]:
    """MB that the server holds after 100 visits, and after 500 more."""
    held = []
    for times in (100, VISITS):
        visit(address, times)
        held.append(psutil.Process(process.pid).memory_info().rss / 1e6)
    return {"after 100 visits": held[0], f"after {VISITS} more": held[1]}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--out", type=Path, default=Path("build/bench-studio.json"))
    out, console = options.parse_args().out, Console()
    if BROWSER is None:
        raise SystemExit("no chromium on the PATH: apt-get install chromium")
    with studio() as (address, process):
        with console.status("watching the pages"):
            drawn = rates(address)
        with console.status("coming and going"):
            held = memory(address, process)
    table = Table("page", "made a second", "drawn a second", title="Pictures")
    for name, one in drawn.items():
        table.add_row(name, f"{one['made']:.0f}", f"{one['drawn']:.0f}")
    console.print(table, *(f"memory {when}: {size:.0f} MB" for when, size in held.items()), sep="\n")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({"pictures": drawn, "memory": held}, indent=1))
    console.print(f"wrote {out}")


if __name__ == "__main__":
    main()
