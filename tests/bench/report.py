# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""What comparisons print: their machine, and tables as the documentation has them."""

import datetime
import os


def table(head, rows):
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print(flush=True)


def machine():
    with open("/proc/cpuinfo", encoding="ascii") as lines:
        model = next(line.split(":", 1)[1].strip() for line in lines if "model name" in line)
    return (f"{model}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before, "
            f"{datetime.date.today().isoformat()}")
