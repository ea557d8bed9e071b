"""Speed of the solver (`python -m benchmarks.equilibrium`) and of `.agents`, and hard problems (`.stress`)."""

import os

# One thread for everybody, or the clocks would compare numbers of cores. It has to be said before NumPy and JAX load.
# NPROC is for XLA: a second thread of its pool waits actively, and CPU time counts the waiting.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "NPROC"):
    os.environ[_name] = "1"
_ONE = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {_ONE}".strip()

# glibc gives freed memory back to the system, and then every call gets it anew page by page, unless a larger block was
# freed before. Which processes it hits depends on their addresses; a gradient of size B then takes 26 us instead of 6.
# So free such a block first. What is larger than 32 MiB, as the cotangents of size E, is new memory in any case.
bytearray(31 * 2**20)
