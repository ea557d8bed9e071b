"""Files while they are written, arrays from a file of unknown origin, and folders that only the user can write."""

import atexit
import os
import re
import secrets
import shutil
import stat
import tempfile
import threading
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from platformdirs import user_cache_path

# Nobody else makes such names, and nobody can guess the next one.
PART = re.compile(r"\.policychord-(\d+)-[0-9a-f]{16}\.part(\.\w+)?")
_LOCK = threading.Lock()


def part_beside(path: Path, ending: str = "", folder: bool = False) -> Path:
    """A new empty file (or folder) next to `path` to write to; whatever stands there already is never opened."""
    part = path.with_name(f".policychord-{os.getpid()}-{secrets.token_hex(8)}.part{ending}")
    if folder:
        part.mkdir()
    else:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        os.close(os.open(part, flags, 0o666))
    return part


def load_arrays(file: Any) -> Any:
    """An npz file as `np.savez` writes it, from a path or an open file; it unpacks to no more bytes than it has."""
    arrays = np.load(file, allow_pickle=False)
    if not hasattr(arrays, "zip"):
        raise ValueError("this is a single array")
    size = file.stat().st_size if isinstance(file, Path) else file.getbuffer().nbytes
    unpacked = sum(member.file_size for member in arrays.zip.infolist())
    if unpacked > size:  # packed, or the same bytes under several names
        arrays.close()
        raise ValueError(f"its {size:,} bytes unpack to {unpacked:,}, and files of ours are not packed")
    return arrays


# ----------------------------------------------------------------------- folders for machine code
# Whoever can write there can run code as the user, so no other user may.


def private_folder(name: str) -> Path:
    """A folder of this name that only the user can write: in the user's cache, else in the temporary folder.

    It is made, or made private, when asked for; what lay in it while others could write is removed.
    """
    user = os.getuid() if hasattr(os, "getuid") else "user"
    for root in (user_cache_path("policychord", appauthor=False), Path(tempfile.gettempdir(), f"policychord-{user}")):
        try:
            _make_private(root)
            _make_private(root / name, distrust=True)
        except OSError:
            continue
        return root / name
    with _LOCK:
        folder = _for_this_process() / name
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _make_private(folder: Path, distrust: bool = False) -> None:
    """Give the folder mode 0700, with `distrust` after emptying it if others could write there.

    Raises OSError where that cannot be done: the folder belongs to another user or cannot be written.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if hasattr(os, "getuid"):
        status = folder.stat()
        if {status.st_uid, folder.lstat().st_uid} != {os.getuid()}:
            raise PermissionError(f"{folder} belongs to another user")
        if distrust and status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            shutil.rmtree(folder)
            folder.mkdir(mode=0o700)
        elif stat.S_IMODE(status.st_mode) != 0o700:
            folder.chmod(0o700)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f"{folder} cannot be written")


@cache
def _for_this_process() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="policychord-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
