"""`policychord studio`: a local page on which the gate and the studies can be seen at work."""

import socket
import sys
import warnings
from importlib.util import find_spec
from typing import Annotated

import typer

from . import options
from .app import app
from .output import Json, emit

NEEDED = ("fastapi", "plotly", "uvicorn", "websockets", "pandas", "matplotlib")


@app.command(
    "studio",
    short_help="See the gate, policies, flocks, choices and flights, in your browser.",
    epilog=options.examples("policychord studio", "policychord studio --port 8123 --no-browser"),
)
def _studio_command(
    port: Annotated[int, options.option("Port of this machine to serve on; 0 takes a free one.", "N", "0")] = 0,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address.")] = False,
    json: Json = False,
) -> None:
    """Open five local pages: drag primitives and watch the weights follow; weigh policies of your own; change a flock
    as it flies, or play your own tracks next to a simulated group; upload a table of choices and see which model
    explains them; fly drones side by side and push them. Python computes, the page draws; nothing leaves this machine,
    and only whoever has the printed address can look. Several tabs may be open at once. Ctrl-C ends it.
    """
    options.require(0 <= port <= 65535, "--port", port, "must lie between 0 and 65535")
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise ValueError(f"not installed: {', '.join(missing)}. Remedy: pip install 'policychord[studio]'")
    if not json:
        print("Opening the studio.", file=sys.stderr)  # its pages take some seconds to load
    from ..runs.compiled import keep_programs
    from ..studio.security import ADDRESS, new_token
    from ..studio.server import serve

    with socket.socket() as listener:
        # on Windows the usual option would let others listen at the same port
        alone = getattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_REUSEADDR)
        listener.setsockopt(socket.SOL_SOCKET, alone, 1)
        try:
            listener.bind((ADDRESS, port))
        except OSError as error:
            raise ValueError(f"--port {port}: {error.strerror}. Choose another one, or 0 for any.") from None
        keep_programs()
        warnings.filterwarnings("ignore", "with these time scales", UserWarning)  # the page says it
        listener.listen()  # so that a browser that is faster than the server waits for it
        port, token = listener.getsockname()[1], new_token()
        address = f"http://{ADDRESS}:{port}/?token={token}"
        record = {"command": "studio", "results": {"address": address, "port": port}, "files": [], "notes": []}
        emit(json, record, f"The studio is at\n  {address}\nCtrl-C ends it.")
        serve(listener, token, "" if no_browser else address)
