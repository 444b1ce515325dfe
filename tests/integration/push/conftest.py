# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from pushes import TOKEN  # noqa: E402


@pytest.fixture
def tokens(tmp_path):
    """A file with the admin token, which pushes need."""
    file = tmp_path / "tokens"
    file.write_text(TOKEN + "\n")
    return file
