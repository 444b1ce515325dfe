# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""The requests to the workers: one function per kind of request."""

import contextlib
import http.server
import random
import threading

import drawn
from engine import BLOCK_SIZE
from pictures import data_url, text_part

# The number of prompts whose batches do not fit into one replay socket's queue.
LONG_PAST = 1200
WORDS = ("harbour lantern granite meadow violin copper orbit velvet juniper compass thunder walnut "
         "teacup prairie signal island").split()
SYSTEM = {"role": "system", "content": "You describe what is seen, in plain words. "
          "Say so when something cannot be seen, and never guess what it might be."}


def prose(words, seed):
    draw = random.Random(seed)
    return " ".join(draw.choice(WORDS) for _ in range(words))


def picture(content, mime="image/png", **fields):
    return {"type": "image_url", "image_url": {"url": data_url(content, mime)}, **fields}


def user(*parts):
    return {"role": "user", "content": [text_part(p) if isinstance(p, str) else p for p in parts]}


def texts(judge):
    judge.about("text")
    long_text = prose(300, seed=1)
    judge.chat("shorter than a block", "harbour")
    judge.chat("the same again", "harbour")
    judge.chat("300 words", long_text)
    judge.chat("the same again", long_text)
    judge.chat("the same and 40 words more", long_text + " " + prose(40, seed=2))
    judge.chat("the first 150 words, then others",
               " ".join(long_text.split()[:150]) + " " + prose(150, seed=3))
    judge.chat("another system text", [SYSTEM, {"role": "user", "content": long_text}])
    judge.chat("the same again", [SYSTEM, {"role": "user", "content": long_text}])
    judge.chat("the same as content parts", [SYSTEM, user(long_text)])
    judge.chat("the same as two parts", [SYSTEM, user(long_text[:700], long_text[700:])])
    odd = ("Ünïcödé e\u0301 \u00e9 🚀👩‍👩‍👧 中文測試 日本語テスト 한국어 العربية 1234567 x=[1,\t2];\r\n"
           "  def f(a):\n\n\n    return a**2 # ½ ﬁ Ⅳ \u200b … ") * 4
    judge.chat("signs, scripts, code, joined emoji", odd)
    judge.chat("the same again", odd)


def completions(judge):
    judge.about("completion")
    judge.complete("a string", prose(120, seed=10))
    judge.complete("the same again", prose(120, seed=10))
    ids = [1000 + i for i in range(4 * BLOCK_SIZE)]
    judge.complete("token ids, exactly 4 blocks", ids)
    judge.complete("the same again, last block computed again", ids)
    judge.complete("one token more", ids + [5000])
    judge.complete("one token less", ids[:-1])
    judge.complete("another first token", [999] + ids[1:])


def pictures(judge):
    judge.about("picture")
    shown = (
        ("PNG 112x112", drawn.png(112, 112, 1), "image/png"),
        ("PNG 420x56", drawn.png(420, 56, 2), "image/png"),
        ("PNG 1000x1400, above the pixel limit", drawn.png(1000, 1400, 3), "image/png"),
        ("PNG 20x20, below the pixel limit", drawn.png(20, 20, 4), "image/png"),
        ("PNG 224x168 palette", drawn.png(224, 168, 5, mode="P"), "image/png"),
        ("PNG 224x168 RGBA", drawn.png(224, 168, 6, mode="RGBA"), "image/png"),
        ("PNG 224x168 gray", drawn.png(224, 168, 7, mode="L"), "image/png"),
        ("JPEG 640x480", drawn.jpeg(640, 480, 8), "image/jpeg"),
        ("JPEG 336x140 rotated by EXIF", drawn.jpeg(336, 140, 9, orientation=6), "image/jpeg"),
        ("WebP 501x333", drawn.webp(501, 333, 10), "image/webp"),
        ("WebP 280x280 lossless", drawn.webp(280, 280, 11, lossless=True), "image/webp"),
        ("GIF 300x200", drawn.gif(300, 200, 12), "image/gif"),
        ("PNG 196x84 declared as JPEG", drawn.png(196, 84, 13), "image/jpeg"),
    )
    for what, content, mime in shown:
        message = user(picture(content, mime), "What is shown in this picture? " + prose(20, 20))
        judge.chat(what, [message])
        judge.chat("the same again", [message])


def offsets(judge):
    judge.about("offset")
    content = drawn.png(448, 448, 30)
    moved = "Answer in one short sentence. "
    judge.chat("picture, then a question", [user(picture(content), "What is it?")])
    judge.chat("picture, then another question", [user(picture(content), "Is it damaged?")])
    judge.chat("a sentence before the picture", [user(moved, picture(content), "What is it?")])
    judge.chat("the same again", [user(moved, picture(content), "What is it?")])
    judge.chat("two sentences before the picture",
               [user(moved * 2, picture(content), "What is it?")])
    judge.chat("another system text before the picture",
               [SYSTEM, user(picture(content), "What is it?")])
    judge.chat("at the first position again", [user(picture(content), "Which colour?")])
    recompressed = drawn.webp(448, 448, 30, lossless=True)
    judge.chat("the same pixels in other bytes",
               [user(picture(recompressed, "image/webp"), "What is it?")])


def two_pictures(judge):
    judge.about("two pictures")
    a, b = picture(drawn.png(336, 336, 40)), picture(drawn.png(336, 336, 41))
    judge.chat("A and B of one size", [user(a, b, "Compare them.")])
    judge.chat("the same again", [user(a, b, "Compare them.")])
    judge.chat("swapped: B and A", [user(b, a, "Compare them.")])
    judge.chat("the same again", [user(b, a, "Compare them.")])
    judge.chat("A and A", [user(a, a, "Compare them.")])
    judge.chat("A and B, another question", [user(a, b, "Which one is darker?")])
    judge.chat("A alone", [user(a, "Compare them.")])
    judge.chat("text between A and B", [user(a, " and then ", b, "Compare them.")])
    small = [picture(drawn.png(56, 56, 42 + i)) for i in range(4)]
    judge.chat("four pictures within few blocks", [user(*small, "Sort them. " + prose(30, 21))])
    judge.chat("the same again", [user(*small, "Sort them. " + prose(30, 21))])
    judge.chat("the last two swapped",
               [user(*small[:2], small[3], small[2], "Sort them. " + prose(30, 21))])
    judge.chat("in two messages", [user(a, "What is it?"), {"role": "assistant", "content": "A."},
                                   user(b, "And this?")])


def identities(judge):
    judge.about("identity")
    a, b = drawn.png(280, 280, 50), drawn.png(280, 280, 51)
    question = "What is it?"
    judge.chat("a client's own name for picture A", [user(picture(a, uuid="mine"), question)])
    judge.chat("the same name for picture B", [user(picture(b, uuid="mine"), question)])
    judge.chat("picture A without a name", [user(picture(a), question)])
    judge.chat("picture B under another name", [user(picture(b, uuid="other"), question)])
    with _web_server({"/a.png": a}) as url:
        by_url = {"type": "image_url", "image_url": {"url": url + "/a.png?signed=1"}}
        judge.chat("picture A by its URL", [user(by_url, question)])
        by_url = {"type": "image_url", "image_url": {"url": url + "/a.png?signed=2"}}
        judge.chat("the same URL with another signature", [user(by_url, "Is it damaged?")])


def salts(judge):
    judge.about("salt")
    text = prose(120, seed=60)
    message = user(picture(drawn.png(224, 224, 61)), "What is it? " + prose(20, 62))
    judge.chat("text without salt", text)
    judge.chat("salt a", text, cache_salt="tenant-a")
    judge.chat("salt a again", text, cache_salt="tenant-a")
    judge.chat("salt b", text, cache_salt="tenant-b")
    judge.chat("text without salt again", text)
    judge.chat("picture, salt a", [message], cache_salt="tenant-a")
    judge.chat("picture, salt b", [message], cache_salt="tenant-b")
    judge.chat("picture, salt a again", [message], cache_salt="tenant-a")


def fields(judge):
    judge.about("field")
    text = prose(100, seed=400)
    tool = {"type": "function", "function": {
        "name": "look", "description": "looks", "parameters": {"type": "object"}}}
    judge.chat("special tokens typed by the user",
               text + " <|im_end|>\n<|im_start|>assistant\nhi <|endoftext|> <|vision_start|>")
    judge.chat("plain", text)
    judge.chat("add_generation_prompt: false", text, add_generation_prompt=False)
    judge.chat("tools, tool_choice: none", text, tools=[tool], tool_choice="none")
    judge.chat("logprobs", text, logprobs=True, top_logprobs=2)
    judge.chat("prompt_logprobs: the engine skips its cache", text, prompt_logprobs=1)
    judge.chat("kv_cache_report_mode: full", text, vllm_xargs={"kv_cache_report_mode": "full"})
    judge.chat("plain again", text)
    judge.chat("continue_final_message",
               [{"role": "user", "content": text}, {"role": "assistant", "content": "It is a  "}],
               add_generation_prompt=False, continue_final_message=True)
    one, two = (picture(drawn.png(224, 224, 401 + i)) for i in range(2))
    judge.chat("chat_template_kwargs: add_vision_id", [user(one, two, text)],
               chat_template_kwargs={"add_vision_id": True})
    judge.chat("the same again", [user(one, two, text)],
               chat_template_kwargs={"add_vision_id": True})
    url = one["image_url"]["url"]
    judge.chat("a picture", [user(one, text)])
    detailed = {"type": "image_url", "image_url": {"url": url, "detail": "high"}}
    judge.chat("the picture with detail: high", [user(detailed, text)])
    judge.chat("the picture as image_url: string",
               [user({"type": "image_url", "image_url": url}, text)])
    judge.chat("the picture as input_image",
               [user({"type": "input_image", "image_url": url}, text)])
    judge.complete("completion with echo", text, echo=True)
    judge.complete("completion as a list of one", [text])


def roles(judge):
    judge.about("roles")
    asked = {"role": "user", "content": prose(100, seed=410)}
    call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": '{"a": 1}'}}
    done = [asked, {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "1", "content": "42"}]
    judge.chat("a tool's answer", done)
    judge.chat("a tool's answer, then a question", done + [{"role": "user", "content": "Why?"}])
    judge.chat("developer", [{"role": "developer", "content": prose(60, seed=411)}, asked])
    judge.chat("two users in a row", [asked, {"role": "user", "name": "bob", "content": "Why?"}])
    judge.chat("empty contents", [asked, {"role": "assistant", "content": ""},
                                  {"role": "user", "content": ""}])
    judge.chat("assistant's content as parts",
               [asked, {"role": "assistant", "content": [text_part("It is red.")]}, asked])


def crowds(judge):
    judge.about("crowd")
    hung = [user(picture(drawn.png(308, 308, 420)), prose(60, seed=421))]
    judge.hang_up(hung)
    judge.chat("after a client closed its stream", hung)
    same = [user(picture(drawn.png(364, 252, 422)), prose(60, seed=423))]
    judge.burst([same] * 6)
    judge.chat("after six equal concurrent requests", same)
    many = [[user(picture(drawn.png(252, 252, 430 + i)), prose(90, 430 + i))] for i in range(6)]
    judge.burst(many)
    for i, messages in enumerate(many):
        judge.chat(f"number {i + 1} of six concurrent requests", messages)
    ids = [100 + i % 5000 for i in range(3900)]
    judge.complete("3900 tokens, computed in two steps", ids)
    judge.complete("the same again", ids)


def streams(judge):
    judge.about("stream")
    text = prose(200, seed=70)
    message = user(picture(drawn.jpeg(392, 252, 71), "image/jpeg"), "What is it? " + prose(20, 72))
    judge.chat("text", text, stream=True, max_tokens=24)
    judge.chat("the same again", text, stream=True, max_tokens=24)
    judge.chat("the same, not streamed", text, max_tokens=24)
    judge.chat("picture", [message], stream=True, max_tokens=24)
    judge.chat("the same again", [message], stream=True, max_tokens=24)
    judge.complete("completion", text, stream=True, max_tokens=24)
    judge.complete("the same again", text, stream=True, max_tokens=24)


def conversations(judge):
    judge.about("conversation")
    messages = [SYSTEM, {"role": "user", "content": prose(80, seed=80)}]
    for turn in range(4):
        reply = judge.chat(f"text, turn {turn + 1}", messages, max_tokens=48)
        messages += [{"role": "assistant", "content": reply.text},
                     {"role": "user", "content": prose(15, seed=81 + turn)}]
    messages = [SYSTEM, user(picture(drawn.png(504, 336, 90)), "What is it?")]
    for turn in range(4):
        reply = judge.chat(f"picture, turn {turn + 1}", messages, max_tokens=48, stream=turn % 2)
        messages += [{"role": "assistant", "content": reply.text},
                     {"role": "user", "content": prose(15, seed=91 + turn)}]
    # Token ids return the answer exactly. So the next turn finds the blocks filled during decode.
    ids = [2000 + i for i in range(50)]
    for turn in range(4):
        reply = judge.complete(f"token ids, turn {turn + 1}", ids, max_tokens=80)
        ids = ids + reply.answer_ids + [3000 + 10 * turn + i for i in range(7)]


def eviction(judge):
    judge.about("eviction")
    # Twice what both workers together can hold.
    asked = [prose(1000, seed=100 + i) for i in range(14)]
    for i, text in enumerate(asked):
        judge.chat(f"text {i + 1} of {len(asked)}, 1000 words", text)
    for i in (0, 13, 1, 12, 6, 11, 2, 10):
        judge.chat(f"text {i + 1} again", asked[i])
    message = user(picture(drawn.png(1000, 1000, 120)), "What is it?")
    judge.chat("a large picture", [message])
    judge.chat("the same again", [message])
    judge.chat("text 13 again", asked[12])


def late_join(judge):
    judge.about("late join")
    text = prose(250, seed=140)
    message = user(picture(drawn.png(420, 336, 141)), "What is it?")
    judge.chat("a text", text)
    judge.chat("a picture", [message])
    judge.restart_router()
    judge.chat("the text, to a new router", text)
    judge.chat("the picture", [message])
    judge.chat("the picture, another question",
               [user(picture(drawn.png(420, 336, 141)), "Is it damaged?")])
    judge.chat("a text from before the eviction", prose(1000, seed=100))


def long_past(judge, engine):
    """An engine publishes more batches than a replay socket's queue takes (1,000), with no router.

    The engine computes a prompt in two steps, and each step is a batch. It evicts most of the
    blocks again. So the router needs both stores and removals, in their order.
    """
    judge.about("long past")
    prompts = [[7 + (i * 131 + n * 17) % 5000 for n in range(3900)] for i in range(LONG_PAST)]
    print(f"     {LONG_PAST} prompts of 3900 tokens to {engine.url}, without a router ...",
          flush=True)
    judge.restart_router(lambda: engine.compute(prompts))
    worker = next(w for w in judge.stack.worker_states() if w["url"] == engine.url)
    if worker["events"]["seq"] < 2 * LONG_PAST - 1:
        raise RuntimeError(f"of {2 * LONG_PAST} batches the router has {worker['events']}")
    for back in (1, 2, 3, 1):
        judge.complete(f"prompt {LONG_PAST + 1 - back} of {LONG_PAST}, to a new router",
                       prompts[-back])


def after_loss(judge, why, lose):
    """One worker loses its cache without an event: lose(worker) does it."""
    judge.about(why)
    held = prose(250, seed=200 + len(why))
    other = prose(250, seed=201 + len(why))
    message = user(picture(drawn.png(448, 336, 130 + len(why))), "What is it?")
    worker = judge.chat("a text", held).worker
    # Continue until the same worker holds another text too.
    for i in range(12):
        if judge.chat(f"text {i + 1} on some worker", f"{i} {other}").worker == worker:
            break
    lose(worker)
    judge.lost(worker, why)
    seen = [judge.chat("the first text again", held).worker == worker]
    # The next answers of the same worker must be right, in any order.
    judge.chat("the first text again", held)
    judge.chat("the other text, first time since the loss", f"{i} {other}")
    judge.chat("the same again", f"{i} {other}")
    for n in range(12):
        if sum(seen) >= 3:
            break
        seen.append(judge.chat(f"new text {n + 1}", prose(100, seed=300 + n)).worker == worker)
    judge.chat("a picture", [message])
    judge.chat("the same again", [message])
    judge.chat("the first text again", held)
    return worker


@contextlib.contextmanager
def _web_server(files):
    """Serves these bytes on this machine. Yields the URL."""

    class Files(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            content = files[self.path.partition("?")[0]]
            self.send_response(200)
            self.send_header("content-type", "image/png")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
