# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""A proxy between one NATS client and the server. It injects faults: it drops, doubles, delays and
reorders messages to the client at random. It delays a whole direction, or subjects differently. It
closes the client's connections, or passes no data."""

import asyncio
import contextlib
import random
import threading
import zlib

LINE_BYTES = 1 << 16
KINDS = ("drop", "duplicate", "delay", "reorder", "skew")


class Faults:
    """Probabilities of faults of a message to the client."""

    def __init__(self, drop=0.0, duplicate=0.0, delay=0.0, reorder=0.0, delay_s_max=0.3):
        self.chances = {"drop": drop, "duplicate": duplicate, "delay": delay, "reorder": reorder}
        self.delay_s_max = delay_s_max

    def draw(self, rng):
        """Returns the kind of fault that happens, or None."""
        x = rng.random()
        for kind, chance in self.chances.items():
            if x < chance:
                return kind
            x -= chance
        return None


class Pipe:
    """Forwards data in its order, `delay()` seconds after it arrived."""

    def __init__(self, writer, delay):
        self._writer = writer
        self._delay = delay
        self._waiting = asyncio.Queue()

    def put(self, data):
        self._waiting.put_nowait((asyncio.get_running_loop().time() + self._delay(), data))

    async def run(self):
        loop = asyncio.get_running_loop()
        while True:
            due, data = await self._waiting.get()
            if due > loop.time():
                await asyncio.sleep(due - loop.time())
            self._writer.write(data)
            await self._writer.drain()


class Tap:
    """Listens on `port` and connects each client to the server at `server_port`. Any thread may
    call all methods. Use it as a context manager."""

    def __init__(self, server_port, seed=0):
        self._server_port = server_port
        self._rng = random.Random(seed)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._links = set()
        self._faults = Faults()
        self._cut = False
        self._silent = False
        self._lag = {"in": 0.0, "out": 0.0}
        self._skew_s = 0.0
        self.counts = dict.fromkeys(KINDS, 0)
        self.messages = 0
        self.port = 0

    @property
    def url(self):
        return f"nats://127.0.0.1:{self.port}"

    def __enter__(self):
        self._thread.start()
        self._server = self._do(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_):
        self._do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def set_faults(self, faults):
        self._faults = faults

    def cut(self):
        """Closes the connections, and closes new ones immediately."""
        self._cut = True
        self._loop.call_soon_threadsafe(self._close_all)

    def hush(self):
        """Forwards nothing in either direction. Data sent meanwhile is lost."""
        self._silent = True

    def lag(self, to_client=0.0, to_server=0.0):
        """Delays all data of a direction by this many seconds, and keeps its order."""
        self._lag = {"in": to_client, "out": to_server}

    def skew(self, seconds):
        """Delays the messages of each subject by the subject's own time, at most this many seconds.
        Each subject keeps its order, but subjects overtake each other."""
        self._skew_s = seconds

    def heal(self):
        """Ends all faults. After hush() it closes the connections, because their streams have lost
        data."""
        was_silent, self._silent, self._cut = self._silent, False, False
        self._faults = Faults()
        self._lag = {"in": 0.0, "out": 0.0}
        self._skew_s = 0.0
        if was_silent:
            self._loop.call_soon_threadsafe(self._close_all)

    def _do(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(timeout=30)

    async def _end(self):
        self._server.close()
        self._close_all()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def _close_all(self):
        for writer in self._links:
            writer.transport.abort()

    async def _serve(self, reader, writer):
        if self._cut:
            writer.close()
            return
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            up_reader, up_writer = await asyncio.open_connection(
                "127.0.0.1", self._server_port, limit=LINE_BYTES)
            self._links |= {writer, up_writer}
            up = Pipe(up_writer, lambda: self._lag["out"])
            down = Pipe(writer, lambda: self._lag["in"])
            pumps = [asyncio.ensure_future(task)
                     for task in (self._pass_up(reader, up), self._pass_down(up_reader, down),
                                  up.run(), down.run())]
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            self._links -= {writer, up_writer}
            up_writer.transport.abort()
        writer.transport.abort()

    async def _pass_up(self, reader, pipe):
        while data := await reader.read(LINE_BYTES):
            if not self._silent:
                pipe.put(data)

    async def _pass_down(self, reader, pipe):
        """Forwards protocol lines unchanged, and messages with faults."""
        held = None  # a message that the next one will overtake
        while line := await reader.readline():
            if not line.startswith((b"MSG ", b"HMSG ")):
                if not self._silent:
                    pipe.put(line)
                continue
            message = line + await reader.readexactly(int(line.split()[-1]) + 2)
            if self._silent:
                continue
            self.messages += 1
            held = self._deliver(pipe, message, held)

    def _deliver(self, pipe, message, held):
        """Sends, delays or drops the message. Returns the message that is held, or None."""
        kind = self._faults.draw(self._rng)
        if kind is not None:
            self.counts[kind] += 1
        if kind == "reorder" and held is None:
            return message
        if kind == "delay":
            self._loop.call_later(self._rng.uniform(0, self._faults.delay_s_max),
                                  pipe.put, message)
        elif kind is None and self._skew_s > 0:
            self.counts["skew"] += 1
            subject = message.split(None, 2)[1]
            share = zlib.crc32(subject) / 2**32
            self._loop.call_later(share * self._skew_s, pipe.put, message)
        elif kind != "drop":
            pipe.put(message * (2 if kind == "duplicate" else 1))
        if held is not None:
            pipe.put(held)
        return None
