#!/bin/bash
# Product: npm package @langchain/openai 1.5.8 with @langchain/core 1.4.0.
# Guess:   maxRetries: 2 repeats each 429 up to twice, with exponential backoff if the
#          answer has no Retry-After, as the openai package does.
# Happens: Without Retry-After, a 429 is taken for a lack of capacity, and is not repeated.
#          With Retry-After: 1 it is repeated twice. The openai package alone repeats both.
# Follows: Whether a service sends Retry-After decides whether a LangChain program survives
#          a short excess. A limiter in front of models always sends the field.
set -eu
want='langchain: 1 request without Retry-After, 3 with it; openai: 3 and 3'
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private":true,"type":"module"}' >package.json
npm install --silent --ignore-scripts --no-audit --no-fund @langchain/openai@1.5.8 @langchain/core@1.4.0 openai@6.49.0 zod@4.6.7
cat >run.js <<'JS'
import http from 'node:http'
import OpenAI from 'openai'
import { ChatOpenAI } from '@langchain/openai'

// requests counts the requests of one call that is always refused.
async function requests(headers, call) {
  let count = 0
  const server = http.createServer((req, res) => {
    count++
    req.resume().on('end', () => {
      res.writeHead(429, { 'Content-Type': 'application/json', ...headers })
      res.end('{"error":{"message":"slow down","type":"rate_limit_error","param":null,"code":"rate_limit_exceeded"}}')
    })
  })
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
  await call(`http://127.0.0.1:${server.address().port}/v1`).catch(() => {})
  server.closeAllConnections()
  server.close()
  return count
}
const langchain = baseURL => new ChatOpenAI({ model: 'm', apiKey: 'local', maxRetries: 2, configuration: { baseURL } }).invoke('Say something.')
const openai = baseURL => new OpenAI({ baseURL, apiKey: 'local', maxRetries: 2 }).chat.completions.create({ model: 'm', messages: [{ role: 'user', content: 'Say something.' }] })
const after = { 'Retry-After': '1' }
const found = await Promise.all([requests({}, langchain), requests(after, langchain), requests({}, openai), requests(after, openai)])
console.log(`langchain: ${found[0]} request without Retry-After, ${found[1]} with it; openai: ${found[2]} and ${found[3]}`)
process.exit(0)
JS
got=$(node run.js)
echo "version: @langchain/openai 1.5.8, openai 6.49.0, Node $(node -v)"
echo "a call that is always answered with 429, maxRetries 2: $got"
[ "$got" = "$want" ] || { echo "CHANGED: expected $want"; exit 1; }
echo "behaviour: a 429 without Retry-After is final"
