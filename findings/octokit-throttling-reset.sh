#!/bin/bash
# Product: npm package @octokit/plugin-throttling 11.0.5 with @octokit/core 7.0.8.
# Guess:   A 429 with Retry-After: 2 is repeated after 2 s, whatever else it holds.
# Happens: With X-RateLimit-Remaining: 0 beside it, the plugin reads
#          X-RateLimit-Reset only, and as a Unix time. "2" (seconds to go) is
#          2 s after 1970: onRateLimit gets 0, and the request comes back at once.
# Follows: X-RateLimit-Reset has two meanings in the field, and no client can tell
#          them apart. A limiter either sends a Unix time to GitHub's clients or
#          leaves X-RateLimit-* out and sends Retry-After.
set -eu
want='without X-RateLimit: waits; with X-RateLimit-Reset 2: onRateLimit(0), at once'
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private":true,"type":"module"}' >package.json
npm install --silent --ignore-scripts --no-audit --no-fund @octokit/plugin-throttling@11.0.5 @octokit/core@7.0.8
cat >run.js <<'JS'
import http from 'node:http'
import { Octokit } from '@octokit/core'
import { throttling } from '@octokit/plugin-throttling'

async function call(headers, body) {
  const times = []
  const server = http.createServer((req, res) => {
    times.push(Date.now())
    const ok = times.length > 1
    res.writeHead(ok ? 200 : 429, { 'Content-Type': 'application/json', ...(ok ? {} : headers) })
    res.end(ok ? '{}' : JSON.stringify({ message: body }))
  })
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
  let seen = 'no callback'
  const octokit = new (Octokit.plugin(throttling))({
    baseUrl: `http://127.0.0.1:${server.address().port}`,
    throttle: {
      onRateLimit: s => { seen = `onRateLimit(${s})`; return true },
      onSecondaryRateLimit: s => { seen = `onSecondaryRateLimit(${s})`; return true },
    },
  })
  await octokit.request('GET /x').catch(() => {})
  server.close()
  server.closeAllConnections()
  return { seen, gap: times[1] - times[0] }
}
// GitHub's own form of a refusal without X-RateLimit-*, for comparison.
const plain = await call({ 'Retry-After': '2' }, 'You have exceeded a secondary rate limit')
const reset = await call({ 'Retry-After': '2', 'X-RateLimit-Limit': '10', 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': '2' }, 'over limit')
console.error(`Retry-After only: ${plain.seen}, next request after ${plain.gap} ms`)
console.error(`with X-RateLimit-Reset: 2: ${reset.seen}, next request after ${reset.gap} ms`)
console.log(`without X-RateLimit: ${plain.gap >= 1900 ? 'waits' : 'at once'}; with X-RateLimit-Reset 2: ${reset.seen}, ${reset.gap >= 1900 ? 'waits' : 'at once'}`)
process.exit(0)
JS
echo "version: @octokit/plugin-throttling 11.0.5, Node $(node -v)"
got=$(node run.js)
[ "$got" = "$want" ] || { echo "CHANGED: $got, expected $want"; exit 1; }
echo "behaviour: $got"
