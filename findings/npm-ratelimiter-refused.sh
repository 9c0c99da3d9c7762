#!/bin/bash
# Product: npm package ratelimiter 3.4.1 with ioredis 5.8.2 and Redis 7.0.15.
# Guess:   A limit of 3 in 1 s lets a client that polls five times a second pass
#          about three times a second. Refused calls do not count.
# Happens: Refused calls count. The client passes three times and never again, as
#          long as it polls. A client that pauses for 1.2 s passes again.
# Follows: "3 a second" has two readings, and a sliding log has to choose one. A
#          limiter that counts refused calls punishes clients without a backoff,
#          and its reset time moves on with each call.
set -eu
want='polling for 4 s: 3 passed, after a pause: passed'
dir=$(mktemp -d) pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null; wait; rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private":true,"type":"module"}' >package.json
npm install --silent --ignore-scripts --no-audit --no-fund ratelimiter@3.4.1 ioredis@5.8.2
port=$(python3 -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1",0)); print(s.getsockname()[1])')
redis-server --port "$port" --bind 127.0.0.1 --dir "$dir" --save '' >/dev/null &
pid=$!
cat >run.js <<'JS'
import Redis from 'ioredis'
import RateLimiter from 'ratelimiter'

const db = new Redis(Number(process.argv[2]), '127.0.0.1')
const limiter = new RateLimiter({ id: 'client', db, max: 3, duration: 1000 })
const sleep = ms => new Promise(resolve => setTimeout(resolve, ms))
// remaining is the number before this call: 0 means refused.
const passes = () => new Promise((resolve, reject) => limiter.get((err, limit) => (err ? reject(err) : resolve(limit.remaining > 0))))
let passed = 0
const line = []
for (const end = Date.now() + 4000; Date.now() < end; await sleep(200)) {
  const ok = await passes()
  line.push(ok ? 'pass' : 'refuse')
  if (ok) passed++
}
console.error(line.join(' '))
await sleep(1200)
console.log(`polling for 4 s: ${passed} passed, after a pause: ${(await passes()) ? 'passed' : 'refused'}`)
db.disconnect()
JS
echo "version: ratelimiter 3.4.1, $(redis-server --version | grep -o 'v=[0-9.]*') (seen with v=7.0.15)"
got=$(node run.js "$port")
[ "$got" = "$want" ] || { echo "CHANGED: $got, expected $want"; exit 1; }
echo "behaviour: $got"
