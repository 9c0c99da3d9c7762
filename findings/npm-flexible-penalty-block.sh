#!/bin/bash
# Product: npm package rate-limiter-flexible 11.4.0, RateLimiterMemory.
# Guess:   penalty() spends points. A penalty that goes over the limit starts the
#          block of blockDuration, as a consume() over the limit does.
# Happens: Only the consume() that crosses the limit starts the block. After a
#          penalty that crosses it, later calls are refused until the normal
#          window ends, and the block never comes.
# Follows: The harder measure has the softer effect: a client that was penalised is
#          free after duration, not after blockDuration. An application that wants
#          the block calls block() itself. A limiter has to test its state after
#          each change, not only on the path of a request.
set -eu
want='consume over the limit: 60 s; penalty over the limit: 1 s, then free'
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private":true,"type":"module"}' >package.json
npm install --silent --ignore-scripts --no-audit --no-fund rate-limiter-flexible@11.4.0
cat >run.js <<'JS'
import flexible from 'rate-limiter-flexible'

const limiter = new flexible.RateLimiterMemory({ points: 2, duration: 1, blockDuration: 60 })
// wait returns the seconds until the next request of a key may pass, 0 if it passes now.
const wait = key => limiter.consume(key).then(() => 0, res => Math.ceil(res.msBeforeNext / 1000))
await wait('busy')
await wait('busy')
const block = await wait('busy')
await limiter.penalty('penalised', 3)
const refused = await wait('penalised')
await new Promise(resolve => setTimeout(resolve, 1200))
const after = await wait('penalised')
console.log(`consume over the limit: ${block} s; penalty over the limit: ${refused} s, then ${after === 0 ? 'free' : 'refused'}`)
process.exit(0)
JS
got=$(node run.js)
echo "version: rate-limiter-flexible 11.4.0, Node $(node -v)"
echo "points 2, duration 1, blockDuration 60: $got"
[ "$got" = "$want" ] || { echo "CHANGED: expected $want"; exit 1; }
echo "behaviour: a penalty over the limit starts no block"
