# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Sends questions about images, and reads the router's predictions and the engine's results."""

import concurrent.futures
import re

from pictures import image_part, text_part
from stack import post

BLOCK = 16


def picture_body(content, question="What is shown in this picture?", **fields):
    parts = [image_part(content), text_part(question)]
    return {"model": "demo", "messages": [{"role": "user", "content": parts}], **fields}


def send_all(stack, bodies, parallel=16):
    """Sends the bodies, `parallel` at a time, and returns the answers in the same order."""
    with concurrent.futures.ThreadPoolExecutor(parallel) as pool:
        answers = list(pool.map(lambda body: post(stack.port, body), bodies))
    for answer in answers:
        assert answer.status == 200, answer.body
    return answers


def cached(answer):
    """Returns the prompt tokens that the engine found in its cache, as its answer reports."""
    return answer.usage["prompt_tokens_details"]["cached_tokens"]


def predicted(answer):
    """Returns the prompt tokens that the router predicted as cached."""
    return BLOCK * answer.overlap[0]


def reusable(answers):
    """Returns the prompt tokens that engines can reuse if they have seen all of these prompts."""
    return sum((a.usage["prompt_tokens"] - 1) // BLOCK * BLOCK for a in answers)


def misses(stack):
    """Returns {(result, cause): count} of the first worker's wrong predictions."""
    pattern = r'sightline_prediction_misses_total\{worker="w0",result="(\w+)",cause="(\w+)"\} (\d+)'
    found = re.findall(pattern, stack.router_metrics())
    return {(result, cause): int(count) for result, cause, count in found if int(count) > 0}
