#!/bin/bash
# Product: npm package @shopify/graphql-client 2.0.0.
# Guess:   Retry-After is in seconds (RFC 9110), so "2" makes the client wait 2 s.
# Happens: The number is taken as milliseconds. The client is back after 2 ms and
#          spends all its retries at once. Without Retry-After it waits 1 s.
# Follows: Retry-After from a limiter makes this client more aggressive, not less.
#          The limiter has to expect all retries at once, and refuse them cheaply.
set -eu
want='Retry-After 2: 3 requests at once; none: 3 requests, 1 s apart'
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private":true,"type":"module"}' >package.json
npm install --silent --ignore-scripts --no-audit --no-fund @shopify/graphql-client@2.0.0
cat >run.js <<'JS'
import http from 'node:http'
import { createGraphQLClient } from '@shopify/graphql-client'

async function call(headers) {
  const times = []
  const server = http.createServer((req, res) => {
    times.push(Date.now())
    req.resume().on('end', () => {
      res.writeHead(429, { 'Content-Type': 'application/json', ...headers })
      res.end('{}')
    })
  })
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
  const client = createGraphQLClient({ url: `http://127.0.0.1:${server.address().port}/`, headers: {}, retries: 2 })
  await client.request('{ shop { name } }')
  server.close()
  server.closeAllConnections()
  const gaps = times.slice(1).map((t, i) => t - times[i])
  console.error(`${JSON.stringify(headers)}: pauses of ${gaps.join(', ')} ms`)
  return gaps
}
const two = await call({ 'Retry-After': '2' })
const none = await call({})
console.log(`Retry-After 2: ${two.length + 1} requests ${two.every(g => g < 900) ? 'at once' : 'apart'}; none: ${none.length + 1} requests, ${none.every(g => g > 900) ? '1 s apart' : 'at once'}`)
JS
echo "version: @shopify/graphql-client 2.0.0, Node $(node -v)"
got=$(node run.js)
[ "$got" = "$want" ] || { echo "CHANGED: $got, expected $want"; exit 1; }
echo "behaviour: $got"
