"""Hosts in network namespaces, joined by a bridge, with links shaped by `tc`. Root on Linux.

    host 0 eth0 ──── port0 ┐
    host 1 eth0 ──── port1 ┤ bridge in a namespace of its own
    host 2 eth0 ──── port2 ┘

Where hosts have a latency or lose packets, a process takes the bridge's place (`relay.py`).
Traffic from a host is shaped at its eth0, traffic to it at its port. Nothing outside the namespaces
is touched, so labs meet neither each other nor the machine's network.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from mpisim.comm.links import FRAME, Links, burst
from mpisim.core.errors import InputError
from mpisim.core.files import FileLock, Locked, writing

FOLDER = Path("/run/mpisim-netlab")  # a folder for each lab, whose lock its process holds
LOCK = "lock"
TOOLS = ("ip", "tc", "unshare")
MOST_HOSTS = 250
QUEUE = 1 << 24  # bytes; a queue that never drops what TCP's windows allow
LARGEST = 65536  # bytes of a packet
IPV4 = "cd /proc/sys/net/ipv4"
BUFFERS = "4096 16777216 33554432"  # of a connection: the least, at first, the most
GRACE_SECONDS = 5.0


class Counters(NamedTuple):
    """The kernel's counts at a host's interface, Ethernet headers included."""

    tx_bytes: int
    tx_packets: int
    rx_bytes: int
    rx_packets: int


class Lab:
    """A network of hosts, of which host 0 is the server's: a context manager that removes it.

    A host's link sends ``network.up`` to the bridge and receives ``network.down``; that of host 0
    is unlimited, or where ``network.shared``, sends ``down`` and receives ``up``. The other hosts'
    packets take ``latency`` each way. Raises `InputError` if the machine cannot make it.

    links, losses : of hosts 1, 2, ..., where they differ; losses are shares of the packets
    """

    def __init__(
        self,
        hosts: int,
        network: Links | None = None,
        links: Sequence[Links] = (),
        losses: Sequence[float] = (),
    ):
        if not 1 <= hosts <= MOST_HOSTS:
            raise InputError(f"netlab: {hosts} hosts; allowed: 1 to {MOST_HOSTS}")
        self.hosts = hosts
        self.network = dataclasses.replace(network or Links(), ranks=True, bucket=True)
        self.links = [self.network, *(links or [self.network] * (hosts - 1))]
        self.losses = [0.0, *(losses or [0.0] * (hosts - 1))]
        self.name = f"mpisim-{os.getpid()}"
        self.folder = FOLDER / self.name
        self._relay: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Lab:
        refuse()
        remove_leftovers()
        with contextlib.ExitStack() as stack:
            with writing(self.folder, InputError, "cannot be made"):
                self.folder.mkdir(parents=True)
                stack.enter_context(FileLock(self.folder / LOCK))
            stack.callback(remove, self.name)
            self._build()
            self._cleanup = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._cleanup.close()
        if self._relay:
            self._relay.wait()

    def space(self, host: int) -> str:
        return f"{self.name}-{host}"

    @staticmethod
    def address(host: int) -> str:
        return f"10.77.0.{host + 1}"

    def counters(self, host: int) -> Counters:
        """The counters of the host's eth0 since the lab began."""
        shown = _ip(self.space(host), "-s", "-j", "link", "show", "dev", "eth0")
        stats = json.loads(shown)[0]["stats64"]
        return Counters(*(stats[way][of] for way in ("tx", "rx") for of in ("bytes", "packets")))

    def _build(self) -> None:
        switch = f"{self.name}-switch"
        _add(switch)
        delays = [0.0, *(links.latency for links in self.links[1:])]
        relayed = any((*delays, *self.losses))
        if not relayed:
            _ip(switch, "link", "add", "bridge", "type", "bridge")
            _ip(switch, "link", "set", "bridge", "up")
        for host in range(self.hosts):
            self._plug(host, switch, relayed)
            up, down = self._rates(host)
            _shape(self.space(host), "eth0", up)
            _shape(switch, f"port{host}", down)
            if any(self.losses):  # a segment at a time can be lost
                _ip(self.space(host), "link", "set", "eth0", "gso_max_segs", "1")
            elif relayed:  # windows that are open: the model leaves TCP's slow start out
                route = ("route", "change", "10.77.0.0/24", "dev", "eth0", "initcwnd", "1000")
                _ip(self.space(host), *route)
                buffers = f"for way in rmem wmem; do echo {BUFFERS} >tcp_$way; done"
                _tool("ip", "netns", "exec", self.space(host), "sh", "-c", f"{IPV4}; {buffers}")
        if relayed:  # ends with the namespace
            ports = [f"{delay}:{loss}" for delay, loss in zip(delays, self.losses, strict=True)]
            relay = [sys.executable, str(Path(__file__).with_name("relay.py")), *ports]
            start = ["ip", "netns", "exec", switch, *relay]
            self._relay = subprocess.Popen(start, stdin=subprocess.DEVNULL, start_new_session=True)

    def _plug(self, host: int, switch: str, relayed: bool) -> None:
        """Make a host with a link to the bridge, or to a port that is relayed."""
        space, port = self.space(host), f"port{host}"
        (self.folder / f"host{host}").mkdir()  # for temporary files, which hosts must not share
        _add(space)
        link = ("link", "add", "eth0", "type", "veth", "peer", "name", port, "netns", switch)
        _ip(space, *link)
        _ip(space, "address", "add", f"{self.address(host)}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            _ip(space, "link", "set", device, "up")
        joined = () if relayed else ("master", "bridge")
        _ip(switch, "link", "set", port, *joined, "up")

    def _rates(self, host: int) -> tuple[float, float]:
        """Bits a second that leave a host, and that come to it."""
        network = self.links[host]
        if host > 0:
            return network.up, network.down
        return (network.down, network.up) if network.shared else (math.inf, math.inf)


def _add(space: str) -> None:
    """A namespace without IPv6, which would add packets, and with cubic, or else reno, for TCP."""
    _tool("ip", "netns", "add", space)
    quiet = "for f in /proc/sys/net/ipv6/conf/*/disable_ipv6; do echo 1 >$f; done 2>/dev/null"
    control = "for c in reno cubic; do echo $c >tcp_congestion_control; done 2>/dev/null"
    _tool("ip", "netns", "exec", space, "sh", "-c", f"{quiet}; {IPV4}; {control}; true")


def _shape(space: str, device: str, rate: float) -> None:
    """Send what leaves ``device`` at a rate, with tbf."""
    if rate < math.inf:
        bucket = int(burst(rate) / 8)
        tbf = ("tbf", "rate", f"{rate:.0f}bit", "burst", str(bucket), "limit", str(QUEUE))
        _tool("tc", "-n", space, "qdisc", "add", "dev", device, "root", *tbf)
        # TCP hands the device packets larger than a frame, but tbf splits those above its burst,
        # which costs time
        size = str(min(max(FRAME, bucket - FRAME), LARGEST))
        _ip(space, "link", "set", device, "gso_max_size", size)


def refuse() -> None:
    """Raise `InputError` where no lab can be made."""
    if sys.platform != "linux":
        raise InputError("netlab: needs Linux: it makes network namespaces")
    if os.geteuid() != 0:
        raise InputError("netlab: needs root: it makes network namespaces; try sudo -E")
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        raise InputError(f"netlab: needs {', '.join(missing)} (packages iproute2, util-linux)")


def remove_leftovers() -> None:
    """Remove the labs of processes that were killed before they could."""
    names = {match[0] for space in _spaces() if (match := re.match(r"mpisim-\d+", space))}
    names |= {path.name for path in FOLDER.glob("mpisim-*")}
    for name in names:
        if not _held(FOLDER / name):
            remove(name)


def remove(name: str) -> None:
    """Kill what runs in a lab's namespaces, delete them and its folder."""
    spaces = [space for space in _spaces() if space.startswith(f"{name}-")]
    end = time.monotonic() + GRACE_SECONDS
    while running := [pid for space in spaces for pid in _processes(space)]:
        for pid in running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > end:
            break
        time.sleep(0.02)
    for space in spaces:
        with contextlib.suppress(InputError):  # gone already
            _tool("ip", "netns", "delete", space)
    shutil.rmtree(FOLDER / name, ignore_errors=True)


def _spaces() -> list[str]:
    listed = _tool("ip", "netns", "list").splitlines()
    return [line.split()[0] for line in listed if line.startswith("mpisim-")]


def _processes(space: str) -> list[int]:
    with contextlib.suppress(InputError):  # gone already
        return [int(pid) for pid in _tool("ip", "netns", "pids", space).split()]
    return []


def _held(folder: Path) -> bool:
    """Whether some process holds the lock of a lab's folder."""
    try:
        with FileLock(folder / LOCK):
            return False
    except (Locked, OSError) as error:
        return isinstance(error, Locked)


def _ip(space: str, *words: str) -> str:
    """`ip` in a namespace."""
    return _tool("ip", "-n", space, *words)


def _tool(*command: str) -> str:
    """What a command prints; `InputError` with its first line where it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[0]
        raise InputError(f"netlab: {' '.join(command)}: {reason}")
    return done.stdout
