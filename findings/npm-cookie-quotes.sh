#!/bin/bash
# Product: npm package cookie, 0.7.2 against 2.0.2.
# Guess:   Both versions remove the quotes around a cookie value, since Express
#          applications have relied on this for ten years.
# Happens: 0.7.2 returns K for session="K". 2.0.2 returns "K" with the quotes.
# Follows: A limiter that keys on a cookie of an Express application must know
#          the major version of the parser behind it. An upgrade of the parser
#          gives each client with a quoted cookie a new key and a fresh limit.
set -eu
want='0.7.2 K, 2.0.2 "K"'
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private":true,"type":"module"}' >package.json
npm install --silent --ignore-scripts --no-audit --no-fund old@npm:cookie@0.7.2 new@npm:cookie@2.0.2
cat >run.js <<'JS'
import { parse } from 'old'
import { parseCookie } from 'new'
const header = 'session="K"'
console.log(`0.7.2 ${parse(header).session}, 2.0.2 ${parseCookie(header).session}`)
JS
got=$(node run.js)
echo "version: cookie 0.7.2 and 2.0.2, Node $(node -v)"
echo "Cookie: session=\"K\"  ->  $got"
[ "$got" = "$want" ] || { echo "CHANGED: expected $want"; exit 1; }
echo "behaviour: the newer major keeps the quotes"
