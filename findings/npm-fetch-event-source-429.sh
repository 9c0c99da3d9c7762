#!/bin/bash
# Product: npm package @microsoft/fetch-event-source 2.0.1, beside eventsource 4.1.1.
# Guess:   A 429 is final, as for EventSource: the promise rejects, because the answer is no
#          event stream.
# Happens: The package asks again each second, without end, and does not read Retry-After:
#          each error is repeated unless onerror throws. A POST is repeated too.
#          eventsource gives up after one request.
# Follows: A page or a program with the defaults asks 60 times in a minute for which it was
#          told to wait, and each time with its whole prompt. With a limiter that counts
#          refused requests, it never passes again. Throw in onerror for a status below 500.
set -eu
want='fetch-event-source: at least 3 requests, pending; eventsource: 1 request, closed'
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private":true,"type":"module"}' >package.json
npm install --silent --ignore-scripts --no-audit --no-fund @microsoft/fetch-event-source@2.0.1 eventsource@4.1.1
cat >run.js <<'JS'
import http from 'node:http'
import { EventSource } from 'eventsource'

// The package is made for pages: it wants these two names.
globalThis.window = globalThis
globalThis.document = { hidden: false, addEventListener() {}, removeEventListener() {} }
const { fetchEventSource } = await import('@microsoft/fetch-event-source')

let requests = 0
let third
const server = http.createServer((req, res) => {
  if (++requests === 3) third()
  req.resume().on('end', () => {
    res.writeHead(429, { 'Content-Type': 'application/json', 'Retry-After': '60' })
    res.end('{}')
  })
})
await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
const base = `http://127.0.0.1:${server.address().port}`
const end = fetchEventSource(base, { method: 'POST', body: 'prompt', openWhenHidden: true }).then(() => 'resolved', () => 'rejected')
const first = await Promise.race([end, new Promise(resolve => { third = () => resolve('pending') }), new Promise(resolve => setTimeout(resolve, 20000, 'waits'))])
const posts = requests >= 3 ? 'at least 3 requests' : `${requests} request`

requests = 0
const source = new EventSource(base + '/own')
await new Promise(resolve => source.addEventListener('error', resolve))
console.log(`fetch-event-source: ${posts}, ${first}; eventsource: 1 request, ${source.readyState === EventSource.CLOSED ? 'closed' : 'open'}`)
process.exit(0)
JS
got=$(node run.js)
echo "version: @microsoft/fetch-event-source 2.0.1, eventsource 4.1.1, Node $(node -v)"
echo "answered with 429 and Retry-After: 60: $got"
[ "$got" = "$want" ] || { echo "CHANGED: expected $want"; exit 1; }
echo "behaviour: a refused client comes back each second"
