#!/bin/bash
# Product: npm package opossum 9.0.0.
# Guess:   capacity limits the calls in flight. A call that opossum itself refuses with
#          ESEMLOCKED never reached the service, so it is no failure of the service.
# Happens: Each refusal counts as a failure. A burst over the capacity opens the circuit
#          of a service that answered every call, and then all calls are refused
#          for resetTimeout.
# Follows: A limit of concurrency becomes an outage: the callers in excess are refused
#          first, and then everyone. errorFilter sees these refusals, and
#          errorFilter: err => err.code === 'ESEMLOCKED' keeps the circuit closed.
set -eu
want='service: 21 calls, 0 failures; circuit: open, next call EOPENBREAKER; with errorFilter: closed, next call passes'
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private":true,"type":"module"}' >package.json
npm install --silent --ignore-scripts --no-audit --no-fund opossum@9.0.0
cat >run.js <<'JS'
import CircuitBreaker from 'opossum'

// burst sends 20 good calls one by one, then one slow call, and 30 calls that are over the capacity beside it.
async function burst (options) {
  let calls = 0
  let failures = 0
  let release
  const slow = new Promise(resolve => { release = resolve })
  const service = async wait => {
    calls++
    if (wait) await slow
    return 'ok'
  }
  const breaker = new CircuitBreaker(
    wait => service(wait).catch(err => { failures++; throw err }),
    { capacity: 1, timeout: false, resetTimeout: 60000, errorThresholdPercentage: 50, volumeThreshold: 10, ...options })
  for (let i = 0; i < 20; i++) await breaker.fire(false)
  const first = breaker.fire(true)
  for (let i = 0; i < 30; i++) await breaker.fire(false).catch(() => {})
  release()
  await first
  const state = breaker.opened ? 'open' : 'closed'
  const before = calls
  const next = await breaker.fire(false).then(() => 'passes', err => err.code)
  breaker.shutdown()
  return { calls: before, failures, state, next }
}
const plain = await burst({})
const filtered = await burst({ errorFilter: err => err.code === 'ESEMLOCKED' })
console.log(`service: ${plain.calls} calls, ${plain.failures} failures; circuit: ${plain.state}, next call ${plain.next}; ` +
  `with errorFilter: ${filtered.state}, next call ${filtered.next}`)
JS
got=$(node run.js)
echo "version: opossum 9.0.0, Node $(node -v)"
echo "capacity 1, 30 calls beside a slow one: $got"
[ "$got" = "$want" ] || { echo "CHANGED: expected $want"; exit 1; }
echo "behaviour: refusals of capacity open the circuit"
