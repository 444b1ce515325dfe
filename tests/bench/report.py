# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Prints the machine and the tables of comparisons, in the format of the documentation."""

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
