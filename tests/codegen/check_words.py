# SPDX-License-Identifier: Apache-2.0
"""check_words.py CODEGEN TESTS: each word of the description is in the sample, whose output is committed, or in the example that is run."""
import re
import sys
from pathlib import Path

codegen, tests = Path(sys.argv[1]), Path(sys.argv[2])
sys.path.insert(0, str(codegen))
import words  # noqa: E402

WORDS = (words.DIRECTIONS | words.QUALIFIERS | words.OPTIONS | words.KIND_WORDS | words.CLIENT_OBJECT_OPTIONS
         | words.COMPLETIONS | words.CAPTURE | set(words.TYPE_WORDS) | words.UNSUPPORTED_WORDS | words.PRECHECK_WORDS | set(words.SYMBOL_WORDS)
         | set(words.DRIVER_WORDS) | {"GP_CALL", "GP_LOCAL", "GP_MESSAGE", "GP_KIND", "GP_CLIENT_OBJECT", "GP_PRECHECK", "CLIENT_ONLY"})


text = (codegen / "api/kinds.h").read_text() + (tests / "golden/sample.h").read_text() + "".join(re.findall(r"```c\n(.*?)```", (codegen / "README.md").read_text(), re.S))
shown = set(re.findall(r"\w+", re.sub(r"/\*.*?\*/", "", text, flags=re.S)))
for number, word in enumerate(sorted(WORDS), 1):
    print(f"{'ok' if word in shown else 'not ok'} {number} - {word}")
print(f"1..{len(WORDS)}")
sys.exit(bool(WORDS - shown))
