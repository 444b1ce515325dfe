# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Passes the command lines with which the operator starts vLLM, from its golden objects, to vLLM's
own parser. Exit status 0 if the parser accepts them all, and reads the block size and the settings
of KV events as intended. Needs no engine. Run it with the Python that has vLLM."""

import json
import pathlib
import sys

from vllm.entrypoints.cli.serve import ServeSubcommand
from vllm.utils.argparse_utils import FlexibleArgumentParser

ROOT = pathlib.Path(__file__).resolve().parents[3]
GOLDEN = ROOT / "tests/unit/operator/desired/golden"
TEMPLATE = pathlib.Path(__file__)  # Any file will do.


def command_lines():
    """Returns {command line: name of the first golden file with it}."""
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
    """Replaces the chat template by a file that exists, because the parser looks for the file."""
    words = list(line)
    if "--chat-template" in words:
        words[words.index("--chat-template") + 1] = str(TEMPLATE)
    return words


def parsed(line):
    """Returns vLLM's arguments. If vLLM refuses the line, its message ends the program."""
    serve = ServeSubcommand()
    parser = FlexibleArgumentParser(prog="vllm")
    serve.subparser_init(parser.add_subparsers(dest="subparser"))
    arguments = parser.parse_args(with_files(line))
    serve.validate(arguments)
    return arguments


def difference(line, arguments):
    """Returns how the parsed arguments differ from the command line, or an empty text."""
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
