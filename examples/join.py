#!/usr/bin/env python3
"""Joins a room of `sametick up`, walks in a circle and prints who it sees.

    sametick up
    python3 examples/join.py ws://localhost:8080 ROOM --name Ada

Needs Python 3.8 and the package websockets: `apt install python3-websockets` or `pip install websockets`.
Everything said here is described in docs/protocol.md, "Envelope protocol v2".
"""

import argparse
import asyncio
import json
import sys
import time
import urllib.parse

import websockets

# A tile of arena has this many units.
UNIT = 256

# The keys of one round, and for how many ticks each is held: with 30 ticks a second, about two and a half seconds.
ROUND = ["up", "up right", "right", "right down", "down", "down left", "left", "left up"]
TICKS_EACH = 10

# A connection that is silent for 30 seconds is closed.
PING_EVERY_S = 5


class Room:
    """What is known of a room: the welcome, and all snapshots added up."""

    def __init__(self):
        self.welcome = None
        self.players = {}
        self.features = {}

    def take(self, snapshot):
        if snapshot["mode"] == "full":
            self.features = {}
        if "players" in snapshot:
            self.players = {str(player["seat"]): player["name"] for player in snapshot["players"]}
            print(f"in the room: {', '.join(self.players.values())}")
        for feature, kinds in snapshot["features"].items():
            known = self.features.setdefault(feature, {})
            for kind, entities in kinds.items():
                if kind != "removed":
                    known.setdefault(kind, {}).update(entities)
            for kind, numbers in kinds.get("removed", {}).items():
                for number in numbers:
                    known.get(kind, {}).pop(str(number), None)

    def who_is_seen(self):
        """A line for people, the nearest first."""
        avatars = self.features.get("movement", {}).get("avatar", {})
        me = avatars.get(self.welcome["playerId"])
        if me is None:
            return "I have no avatar now"
        seen = []
        for number, avatar in avatars.items():
            if avatar is not me:
                away = sum((a - b) ** 2 for a, b in zip(avatar["at"], me["at"])) ** 0.5 / UNIT
                seen.append((away, self.players.get(number, "bot " + number)))
        others = ", ".join(f"{name} ({away:.1f} tiles away)" for away, name in sorted(seen))
        x, y = (part / UNIT for part in me["at"])
        return f"I am at {x:.1f}, {y:.1f} and see {others or 'nobody'}"


async def send(socket, **message):
    await socket.send(json.dumps({"v": 2, **message}))


async def walk(socket):
    """Says every so often what to do in the ticks that follow."""
    seq = 0
    started = time.monotonic()
    while True:
        keys = ROUND[seq % len(ROUND)].split()
        seq += 1
        inputs = [{key: True for key in keys}] * TICKS_EACH
        now_ms = (time.monotonic() - started) * 1000
        await send(socket, kind="command", seq=seq, feature="movement", action="input_batch",
                   clientTime=now_ms, payload={"inputs": inputs})
        await asyncio.sleep(TICKS_EACH / 30)


async def keep_alive(socket):
    while True:
        await asyncio.sleep(PING_EVERY_S)
        await send(socket, kind="ping", clientTime=time.monotonic() * 1000)


async def listen(socket, room):
    """Takes what is said until the connection ends. Returns whether it ended well."""
    printed_at = 0
    async for text in socket:
        message = json.loads(text)
        kind = message["kind"]
        if kind == "welcome":
            room.welcome = message
            print(f"in room {message['room']} of {message['game']} as {message['name']}, seat {message['seat']}")
            print(f"to come back as who you are: --resume {message['resumeToken']}")
        elif kind == "snapshot":
            room.take(message)
            if time.monotonic() - printed_at >= 1:
                printed_at = time.monotonic()
                print(room.who_is_seen())
        elif kind == "pong":
            print(f"round trip: {time.monotonic() * 1000 - message['clientTime']:.1f} ms")
        elif kind == "event":
            print(f"tick {message['tick']}: {json.dumps(message['event'])}")
        elif kind == "error":
            print(f"error {message['code']}: {message['message']}", file=sys.stderr)
        sys.stdout.flush()


async def join(args):
    query = {"name": args.name, "game": args.game, "resumeToken": args.resume, "proof": args.proof}
    query = urllib.parse.urlencode({name: value for name, value in query.items() if value})
    url = f"{args.server}/api/rooms/{urllib.parse.quote(args.room, safe='')}/ws?{query}"
    # Nothing larger than this comes; see the limits in docs/protocol.md.
    async with websockets.connect(url, max_size=1 << 20) as socket:
        tasks = [asyncio.ensure_future(task) for task in
                 (listen(socket, Room()), walk(socket), keep_alive(socket))]
        done, _ = await asyncio.wait(tasks, timeout=args.seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        for task in done:
            task.result()
    return not done


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("server", help="where `sametick up` listens, such as ws://localhost:8080")
    parser.add_argument("room", help="the code of the room; it begins if there is none")
    parser.add_argument("--name", default="Python", help="what others call you")
    parser.add_argument("--game", default="arena")
    parser.add_argument("--resume", metavar="TOKEN", help="come back as who you were")
    parser.add_argument("--proof", metavar="HEX", help="that you know the server's passphrase")
    parser.add_argument("--seconds", type=float, help="leave after so long")
    args = parser.parse_args()
    try:
        ended_well = asyncio.run(join(args))
    except KeyboardInterrupt:
        ended_well = True
    except (OSError, websockets.exceptions.WebSocketException) as error:
        print(f"the connection ended: {error}", file=sys.stderr)
        ended_well = False
    return 0 if ended_well else 1


if __name__ == "__main__":
    sys.exit(main())
