# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""A tap between one client of NATS and the server: messages to the client are lost, doubled, held
back and overtaken at random, all of a direction comes late, subjects overtake each other, and the
client is cut off or left in silence."""

import asyncio
import contextlib
import random
import threading
import zlib

LINE_BYTES = 1 << 16
KINDS = ("drop", "duplicate", "delay", "reorder", "skew")


class Faults:
    """Probabilities of what happens to a message on its way to the client."""

    def __init__(self, drop=0.0, duplicate=0.0, delay=0.0, reorder=0.0, delay_s_max=0.3):
        self.chances = {"drop": drop, "duplicate": duplicate, "delay": delay, "reorder": reorder}
        self.delay_s_max = delay_s_max

    def draw(self, rng):
        """The kind that strikes, or None."""
        x = rng.random()
        for kind, chance in self.chances.items():
            if x < chance:
                return kind
            x -= chance
        return None


class Pipe:
    """Passes bytes on in their order, each `delay()` seconds after it came."""

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
    """Listens on `port`; whoever connects there reaches the server at `server_port`. All methods
    from any thread. Use as a context manager."""

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
        """Ends the connections, and new ones at once."""
        self._cut = True
        self._loop.call_soon_threadsafe(self._close_all)

    def hush(self):
        """Nothing passes in either direction; what is sent meanwhile is lost."""
        self._silent = True

    def lag(self, to_client=0.0, to_server=0.0):
        """All that passes comes so many seconds later, in its order."""
        self._lag = {"in": to_client, "out": to_server}

    def skew(self, seconds):
        """What the client hears of each subject comes in its order, up to so many seconds later:
        each subject by a time of its own, so that it overtakes others."""
        self._skew_s = seconds

    def heal(self):
        """As at first. After silence the connections end: their streams have holes."""
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
        """Protocol lines as they are, messages with faults."""
        held = None  # one that the next is to overtake
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
        """Sends the message, or not; the one that is held from now on."""
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
