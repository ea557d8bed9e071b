"""How much memory this process has held: each system says it in another place and in another unit."""

import sys


def peak_megabytes() -> float | None:
    """The most memory that this process has held so far, in units of 2^20 bytes; None where nobody says."""
    try:
        import resource
    except ImportError:  # on Windows
        return _peak_by_psutil()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10  # bytes on macOS, elsewhere units of 2^10


def _peak_by_psutil() -> float | None:
    try:
        import psutil
    except ImportError:
        return None
    peak = getattr(psutil.Process().memory_info(), "peak_wset", None)  # Windows alone has it
    return None if peak is None else peak / 2**20
