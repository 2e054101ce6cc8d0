"""python relay.py DELAY:LOSS ...: netem in user space, for kernels without it.

Takes the place of a lab's bridge in its namespace: a frame from one of port0, port1, ... goes out
of the port of its receiver, later by the delays of both ports, unless one of them loses it. Ports
keep their order. Rates are the kernel's (tbf): this only holds frames back.

A frame may be a TCP packet larger than a segment, whose header says how to cut it
(PACKET_VNET_HDR). Where a port loses frames, hosts must send single segments.
"""

from __future__ import annotations

import contextlib
import heapq
import os
import random
import select
import socket
import sys
import time
from collections import deque

ALL, OUTGOING = 0x0003, 4  # ETH_P_ALL, and what the port itself sends
SOL_PACKET, VNET_HDR, HEADER = 263, 15, 10  # its bytes before each frame
SNDBUFFORCE, RCVBUFFORCE, BUFFER = 32, 33, 1 << 26
LARGEST = 1 << 17


def port(name: str) -> socket.socket:
    """A socket with all frames that come in at an interface."""
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    opened.setsockopt(SOL_PACKET, VNET_HDR, 1)
    for option in (SNDBUFFORCE, RCVBUFFORCE):
        opened.setsockopt(socket.SOL_SOCKET, option, BUFFER)
    opened.bind((name, ALL))
    opened.setblocking(False)
    return opened


def relay(delays: list[float], losses: list[float]) -> None:
    """Forward for ever; seconds and shares of the ports."""
    ports = [port(f"port{i}") for i in range(len(delays))]
    number = {opened.fileno(): i for i, opened in enumerate(ports)}
    places: dict[bytes, int] = {}  # of hosts, by their address
    waiting: list[tuple[float, int, int, bytes]] = []  # due, order, port out, frame
    blocked: list[deque[bytes]] = [deque() for _ in ports]
    draws, order = random.Random(1), 0
    while True:
        until = max(waiting[0][0] - time.monotonic(), 0.0) if waiting else None
        if any(blocked):
            until = min(until if until is not None else 1e-3, 1e-3)
        for file in select.select(list(number), [], [], until)[0]:
            here = number[file]
            with contextlib.suppress(BlockingIOError):
                while True:
                    frame, address = ports[here].recvfrom(LARGEST)
                    if address[2] == OUTGOING:
                        continue
                    now = time.monotonic()
                    receiver, sender = frame[HEADER : HEADER + 6], frame[HEADER + 6 : HEADER + 12]
                    places[sender] = here
                    known = places.get(receiver)
                    away = range(len(ports)) if known is None else (known,)
                    for out in away:
                        lost = 1 - (1 - losses[here]) * (1 - losses[out])
                        if out != here and draws.random() >= lost:
                            order += 1
                            due = now + delays[here] + delays[out]
                            heapq.heappush(waiting, (due, order, out, frame))
        now = time.monotonic()
        while waiting and waiting[0][0] <= now:
            _, _, out, frame = heapq.heappop(waiting)
            blocked[out].append(frame)
        for out, frames in enumerate(blocked):
            with contextlib.suppress(BlockingIOError):
                while frames:
                    ports[out].send(frames[0])
                    frames.popleft()


if __name__ == "__main__":
    with contextlib.suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))  # frames leave in time
    both = [text.split(":") for text in sys.argv[1:]]
    relay([float(delay) for delay, _ in both], [float(loss) for _, loss in both])
