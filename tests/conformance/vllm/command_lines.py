# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Gives the command lines by which the operator starts vLLM, as its golden objects have them, to
vLLM's own parser. Exit status 0 if it takes them all, and understands the block size and where
events go as they were meant. Needs no engine: run by the Python that has vLLM."""

import json
import pathlib
import sys

from vllm.entrypoints.cli.serve import ServeSubcommand
from vllm.utils.argparse_utils import FlexibleArgumentParser

ROOT = pathlib.Path(__file__).resolve().parents[3]
GOLDEN = ROOT / "tests/unit/operator/desired/golden"
TEMPLATE = pathlib.Path(__file__)  # Any file will do.


def command_lines():
    """{command line: name of the first golden that has it}"""
    found = {}
    for file in sorted(GOLDEN.glob("*.json")):
        for thing in json.loads(file.read_text(encoding="utf-8")):
            if not isinstance(thing, dict) or thing["kind"] != "Deployment":
                continue
            for container in thing["spec"]["template"]["spec"]["containers"]:
                if container.get("command", [""])[0] == "vllm":
                    line = (*container["command"][1:], *container["args"])
                    found.setdefault(line, file.stem)
    return found


def with_files(line):
    """The same with a chat template that is there: its parser looks for the file."""
    words = list(line)
    if "--chat-template" in words:
        words[words.index("--chat-template") + 1] = str(TEMPLATE)
    return words


def parsed(line):
    """What vLLM makes of it; ends the program with its message if it refuses it."""
    serve = ServeSubcommand()
    parser = FlexibleArgumentParser(prog="vllm")
    serve.subparser_init(parser.add_subparsers(dest="subparser"))
    arguments = parser.parse_args(with_files(line))
    serve.validate(arguments)
    return arguments


def difference(line, arguments):
    """Between what was meant and what was understood; empty if they agree."""
    meant = int(line[line.index("--block-size") + 1])
    if arguments.block_size != meant:
        return f"block size {arguments.block_size}, meant {meant}"
    if "--kv-events-config" in line:
        events = json.loads(line[line.index("--kv-events-config") + 1])
        for name, value in events.items():
            if getattr(arguments.kv_events_config, name) != value:
                return f"{name} {getattr(arguments.kv_events_config, name)!r}, meant {value!r}"
    return ""


def main():
    lines = command_lines()
    wrong = 0
    for line, name in lines.items():
        print(f"{name}: {' '.join(line)}", flush=True)
        said = difference(line, parsed(line))
        if said:
            wrong += 1
            print(f"  {said}", file=sys.stderr)
    print(f"vLLM takes {len(lines)} of {len(lines)} command lines"
          + (f", {wrong} not as they were meant" if wrong else ", as they were meant"))
    return 1 if wrong or not lines else 0


if __name__ == "__main__":
    sys.exit(main())
