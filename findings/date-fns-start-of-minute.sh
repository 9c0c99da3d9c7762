#!/bin/bash
# Product: npm package date-fns 4.4.0, Node 20, time zone America/New_York.
# Guess:   startOfMinute and startOfHour change minutes and seconds only, so they
#          move a time back by less than a minute or an hour.
# Happens: In the hour that is repeated in autumn, both return the first 01:xx
#          for a time in the second one. 01:30:20 EST becomes 01:30:00 EDT, 60
#          minutes and 20 seconds earlier. On all other days the guess is right.
# Follows: A fixed window that is keyed by startOfMinute or startOfHour counts two
#          real hours in one window. A client that spent the first one is refused
#          in the second. Cut windows of up to an hour from Unix time.
set -eu
want='startOfMinute 3620 s back, startOfHour 5420 s back, next day 20 s and 1820 s'
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private":true,"type":"module"}' >package.json
npm install --silent --ignore-scripts --no-audit --no-fund date-fns@4.4.0
cat >run.js <<'JS'
import { startOfHour, startOfMinute } from 'date-fns'
const back = (f, t) => (t - f(t)) / 1000
const second = new Date('2026-11-01T06:30:20Z') // 01:30:20 EST, an hour after 01:30:20 EDT
const later = new Date('2026-11-02T06:30:20Z')
console.log(`startOfMinute ${back(startOfMinute, second)} s back, startOfHour ${back(startOfHour, second)} s back, next day ${back(startOfMinute, later)} s and ${back(startOfHour, later)} s`)
JS
got=$(TZ=America/New_York node run.js)
echo "version: date-fns 4.4.0, Node $(node -v)"
echo "2026-11-01 01:30:20 EST: $got"
[ "$got" = "$want" ] || { echo "CHANGED: expected $want"; exit 1; }
echo "behaviour: the start of the minute is an hour early"
