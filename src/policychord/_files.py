"""Files while they are written, and arrays from a file of unknown origin."""

import os
import re
import secrets
from pathlib import Path
from typing import Any

import numpy as np

# Nobody else makes such names, and nobody can guess the next one.
PART = re.compile(r"\.policychord-(\d+)-[0-9a-f]{16}\.part(\.\w+)?")


def part_beside(path: Path, ending: str = "", folder: bool = False) -> Path:
    """A new empty file (or folder) beside `path` to write to; whatever stands there already is never opened."""
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
