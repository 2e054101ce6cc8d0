#!/usr/bin/env python3
"""mpirun across network namespaces: run/netlab [-n HOSTS] [--network RATE,LATENCY] COMMAND."""

import sys

from tools.netlab.command import main

if __name__ == "__main__":
    sys.exit(main())
