"""Makes the client for threads from the one for asyncio.

`python tools/make_sync.py` writes `src/dormouse/_sync/`; with `--check` it only says whether that
is up to date. `_io.py` and `_joint.py` are written by hand on both sides.
"""

from __future__ import annotations

import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent / "src" / "dormouse" / "_async"
TARGET = SOURCE.parent / "_sync"
BY_HAND = {"__init__.py", "_io.py", "_joint.py"}

RULES = [
    (r"\basync (def|for|with) ", r"\1 "),
    (r"\bawait ", ""),
    (r"\b__aenter__\b", "__enter__"),
    (r"\b__aexit__\b", "__exit__"),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"\bAsyncClient\b", "Client"),
    (r"The client for asyncio\.", "The client for threads."),
    (r"share one, it keeps", "threads may share one, it keeps"),
    # Sorted as the formatter sorts them.
    (r"import Iterator, Iterable, Mapping", "import Iterable, Iterator, Mapping"),
]


def translate(name: str, text: str) -> str:
    """Translate one module."""
    for pattern, replacement in RULES:
        text = re.sub(pattern, replacement, text)
    title, _, rest = text.partition("\n")
    return (
        f"{title}\n# Made by tools/make_sync.py from _async/{name}: change that, not this.\n{rest}"
    )


def main() -> int:
    """Write what differs, or say that something does."""
    stale = []
    for source in sorted(SOURCE.glob("*.py")):
        if source.name in BY_HAND:
            continue
        wanted = translate(source.name, source.read_text(encoding="utf-8"))
        target = TARGET / source.name
        if not target.exists() or target.read_text(encoding="utf-8") != wanted:
            stale.append(target)
            if "--check" not in sys.argv:
                target.write_text(wanted, encoding="utf-8")
    for path in stale:
        print(f"{path.relative_to(SOURCE.parent.parent.parent)} differs from its source")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
