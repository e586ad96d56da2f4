#!/bin/sh
# Lints, types and tests of this package. Everything that is installed goes below target/.
# DORMOUSE_BIN names the server's program; else one of target/debug and target/release is taken.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$here/../../target/clients/python
mkdir -p "$out"
out=$(cd "$out" && pwd)
tools="mypy==2.4.1 opentelemetry-api pytest==9.2.0 ruff==0.17.5"

if [ "$(cat "$out/installed" 2>/dev/null)" != "$tools" ]; then
    rm -rf "$out/tools"
    # shellcheck disable=SC2086  # a list of words
    python3 -m pip install --quiet --quiet --disable-pip-version-check --root-user-action ignore --target "$out/tools" $tools
    printf %s "$tools" >"$out/installed"
fi

cd "$here"
export PYTHONPATH="$out/tools:$here/src" PYTHONDONTWRITEBYTECODE=1
python3 tools/make_sync.py --check
python3 -m ruff check --no-cache .
python3 -m ruff format --no-cache --check .
python3 -m mypy --cache-dir "$out/mypy"
exec python3 -m pytest -p no:cacheprovider "$@"
