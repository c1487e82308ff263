#!/usr/bin/env python3
"""Four bots play pong through a relay over a line that delays and loses IP packets, over UDP and over WebSocket.

The line lies between two network namespaces: each has a TUN device, and this program carries packets from one to the other. So TCP is
the kernel's own, with all it does about loss. Needs root, iproute2 and /dev/net/tun.

    python3 bench/lossy_line.py target/release/sametick --rtt 100 --loss 5 --seconds 60

`cargo xtask long sockets` builds the program and runs this for several round trips.
"""

import argparse
import fcntl
import heapq
import json
import os
import random
import select
import struct
import subprocess
import sys
import tempfile
import threading
import time

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
SIDES = [("sametick-server", "10.213.7.1"), ("sametick-bots", "10.213.7.2")]
MOST_OMISSIONS = 10


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def open_side(name, address):
    """A namespace with a TUN device in it; the device's other end is returned."""
    subprocess.run(["ip", "netns", "delete", name], check=False, stderr=subprocess.DEVNULL)
    ip("netns", "add", name)
    device = "tun-" + name.removeprefix("sametick-")
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH14x", device.encode(), IFF_TUN | IFF_NO_PI))
    ip("link", "set", device, "netns", name)
    ip("-n", name, "addr", "add", address + "/30", "dev", device)
    ip("-n", name, "link", "set", "lo", "up")
    ip("-n", name, "link", "set", device, "up")
    return tun


def carry(ends, one_way_s, loss, rng, over):
    """Carries packets both ways until it is over."""
    on_their_way, number = [], 0
    while not over.is_set():
        wait = 0.05
        if on_their_way:
            wait = max(0.0, min(wait, on_their_way[0][0] - time.monotonic()))
        ready, _, _ = select.select(ends, [], [], wait)
        now = time.monotonic()
        for end in ready:
            while True:
                try:
                    packet = os.read(end, 2048)
                except BlockingIOError:
                    break
                if rng.random() >= loss:
                    number += 1
                    heapq.heappush(on_their_way, (now + one_way_s, number, ends[1 - ends.index(end)], packet))
        now = time.monotonic()
        while on_their_way and on_their_way[0][0] <= now:
            _, _, end, packet = heapq.heappop(on_their_way)
            try:
                os.write(end, packet)
            except OSError:
                pass  # The device is not up yet, or its queue is full.


def play(program, url, seconds):
    """Lets four bots play; returns the report of each."""
    words = ["bot", "pong", "--connect", url, "--count", "4", "--seconds", str(seconds), "--json", "--session"]
    bots = ["ip", "netns", "exec", SIDES[1][0], program, *words, url.split(":")[0]]
    done = subprocess.run(bots, check=True, stdout=subprocess.PIPE, timeout=seconds + 60)
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="the sametick program")
    parser.add_argument("--rtt", type=float, default=100, help="milliseconds there and back")
    parser.add_argument("--loss", type=float, default=5, help="percent of packets lost each way")
    parser.add_argument("--seconds", type=int, default=60, help="how long the bots play over each")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    program = os.path.abspath(options.program)
    over = threading.Event()
    ends = [open_side(*side) for side in SIDES]
    line = (ends, options.rtt / 2_000, options.loss / 100, random.Random(options.seed), over)
    carrier = threading.Thread(target=carry, args=line)
    carrier.start()
    relay = None
    is_good = True
    try:
        with tempfile.TemporaryDirectory() as data:
            words = ["relay", "--listen", SIDES[0][1], "--data", data]
            server = ["ip", "netns", "exec", SIDES[0][0], program, *words]
            relay = subprocess.Popen(server, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            relay.stdout.readline()  # It listens.
            for url in [f"udp://{SIDES[0][1]}:7777", f"ws://{SIDES[0][1]}:7779"]:
                report = play(program, url, options.seconds)
                is_good &= show(url.split(":")[0], report, options)
            relay.terminate()
            relay.wait(30)
    finally:
        over.set()
        carrier.join()
        if relay and relay.poll() is None:
            relay.kill()
        for name, _ in SIDES:
            subprocess.run(["ip", "netns", "delete", name], check=False)
    sys.exit(0 if is_good else 1)


def show(carrier, report, options):
    """Prints what matters of a report; whether no player lost too many inputs."""
    bots = report["bots"]
    omissions = [bot["omissions"] for bot in bots]
    input_ms = [bot["diagnostics"]["usual_input_rtt_us"] // 1_000 for bot in bots]
    ticks = max(bot["tick"] for bot in bots)
    print(
        f"| {options.rtt:g} ms, {options.loss:g} % | {carrier} | {min(omissions)} to {max(omissions)} of {ticks} ticks "
        f"| {min(input_ms)} to {max(input_ms)} ms |",
        flush=True,
    )
    return report["agree"] and max(omissions) * 3_580 <= MOST_OMISSIONS * ticks


if __name__ == "__main__":
    main()
