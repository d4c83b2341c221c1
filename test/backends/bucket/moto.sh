#!/usr/bin/env bash
# moto.sh DIR PORT: runs moto_server until standard input closes.
PYTHONPATH="$(dirname "$0")/moto" PYTHONDONTWRITEBYTECODE=1 moto_server -H 127.0.0.1 -p "$2" >"$1/moto.log" 2>&1 &
server=$!
cat >/dev/null
kill -9 $server
rm -rf "$1"
