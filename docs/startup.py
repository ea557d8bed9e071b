"""Runs before every page: what a cell of shell prints is one text, where IPython would cut it into pieces."""

import subprocess

from IPython import get_ipython


def sh(line: str, cell: str) -> None:
    """The cell as a shell script. A page shows its answers; what a command says on the way is for terminals."""
    done = subprocess.run(["sh", "-ec", cell], capture_output=True, text=True)
    print(done.stdout, end="")
    if done.returncode:
        raise RuntimeError(done.stderr)


get_ipython().register_magic_function(sh, "cell")
