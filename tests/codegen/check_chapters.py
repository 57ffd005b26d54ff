# SPDX-License-Identifier: Apache-2.0
"""check_chapters.py CODEGEN: chapters.txt lists what the folder has, and a file more or less is named."""
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, sys.argv[1])
from parse import SpecError, chapters  # noqa: E402

api = Path(sys.argv[1]) / "api"
listed = chapters(api)
assert listed == sorted(listed), "chapters.txt is not in the order of the alphabet"


def refusal(files, text):
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "api"
        folder.mkdir()
        for name in files:
            (folder / name).write_text("")
        (folder / "chapters.txt").write_text(text)
        try:
            chapters(folder)
        except SpecError as error:
            return str(error)
    return "accepted"


assert refusal(["a.h", "vocabulary.h"], "a.h\n") == "accepted"
assert refusal(["a.h", "b.h"], "a.h\n") == "api/b.h:1: not listed in chapters.txt"
assert refusal(["a.h"], "a.h\nb.h\n") == "api/chapters.txt:2: missing chapter b.h"
