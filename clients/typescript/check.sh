#!/bin/sh
# Types and tests of this package. Everything that is installed or built goes below target/.
# DORMOUSE_BIN names the server's program; else one of target/debug and target/release is taken.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$here/../../target/clients/typescript
mkdir -p "$out"
out=$(cd "$out" && pwd)

if ! cmp -s "$here/package-lock.json" "$out/package-lock.json" || [ ! -d "$out/node_modules" ]; then
    rm -f "$out/package-lock.json"
    cp "$here/package.json" "$out/"
    cp "$here/package-lock.json" "$out/package-lock.new"
    mv "$out/package-lock.new" "$out/package-lock.json"
    (cd "$out" && npm ci --no-fund --no-audit)
fi
cp "$here/package.json" "$out/"

rm -rf "$out/dist"
"$out/node_modules/.bin/tsc" -p "$here" --typeRoots "$out/node_modules/@types" --outDir "$out/dist"
cd "$out"
exec node --test "$@" dist/test/*.test.js
