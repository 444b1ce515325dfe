# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Questions about pictures, and what the router promised of them beside what the engine found."""

import concurrent.futures
import re

from pictures import image_part, text_part
from stack import post

BLOCK = 16


def picture_body(content, question="What is shown in this picture?", **fields):
    parts = [image_part(content), text_part(question)]
    return {"model": "demo", "messages": [{"role": "user", "content": parts}], **fields}


def send_all(stack, bodies, parallel=16):
    """Answers in the order of the bodies, so many in flight."""
    with concurrent.futures.ThreadPoolExecutor(parallel) as pool:
        answers = list(pool.map(lambda body: post(stack.port, body), bodies))
    for answer in answers:
        assert answer.status == 200, answer.body
    return answers


def cached(answer):
    """Prompt tokens that the engine says it found in its cache."""
    return answer.usage["prompt_tokens_details"]["cached_tokens"]


def predicted(answer):
    """The same as the router promised it."""
    return BLOCK * answer.overlap[0]


def reusable(answers):
    """Prompt tokens that engines which have seen all of these prompts need not compute."""
    return sum((a.usage["prompt_tokens"] - 1) // BLOCK * BLOCK for a in answers)


def misses(stack):
    """{(result, cause): count} of the first worker's predictions that were wrong."""
    pattern = r'sightline_prediction_misses_total\{worker="w0",result="(\w+)",cause="(\w+)"\} (\d+)'
    found = re.findall(pattern, stack.router_metrics())
    return {(result, cause): int(count) for result, cause, count in found if int(count) > 0}
