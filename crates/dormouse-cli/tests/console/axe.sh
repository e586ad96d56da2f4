#!/bin/sh
# Fetches axe-core and lets it look at every screen of the console. It goes below target/.
set -eu
root=$(cd "$(dirname "$0")/../../../.." && pwd)
out=$root/target/clients/axe
version=4.14.0
if [ ! -f "$out/$version" ]; then
    rm -rf "$out"
    mkdir -p "$out"
    (cd "$out" && npm init --yes >/dev/null && npm install --no-fund --no-audit "axe-core@$version")
    touch "$out/$version"
fi
cd "$root"
DORMOUSE_AXE=$out/node_modules/axe-core/axe.min.js
export DORMOUSE_AXE
exec cargo test --quiet --package dormouse-cli --all-features --test console -- --ignored axe
