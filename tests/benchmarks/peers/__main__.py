"""The command: one thread is set before any library is imported that reads it."""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"):
    os.environ[variable] = "1"

from peers.command import main  # noqa: E402 - after the variables

if __name__ == "__main__":
    main()
