#!/bin/bash
# Product: npm package ai 6.0.326 (Vercel AI SDK) with @ai-sdk/openai 3.0.141.
# Guess:   A loop over streamText(...).textStream throws the error when the service answers
#          with 429, as the loops of other SDKs do.
# Happens: The loop ends in order after no text. The error goes to onError alone, whose
#          default prints it to the console. generateText throws.
# Follows: A refused user sees an empty answer, and no catch block runs. A program that
#          streams passes onError, or reads fullStream, which has a part of type error.
#          A limiter's test has to look at the text that the user gets.
set -eu
want='textStream: ended with 0 characters; fullStream: a part error; generateText: throws'
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private":true,"type":"module"}' >package.json
npm install --silent --ignore-scripts --no-audit --no-fund ai@6.0.326 @ai-sdk/openai@3.0.141 zod@4.6.7
cat >run.js <<'JS'
import http from 'node:http'
import { createOpenAI } from '@ai-sdk/openai'
import { generateText, streamText } from 'ai'

const server = http.createServer((req, res) => {
  req.resume().on('end', () => {
    res.writeHead(429, { 'Content-Type': 'application/json', 'Retry-After': '1' })
    res.end('{"error":{"message":"slow down","type":"rate_limit_error","param":null,"code":"rate_limit_exceeded"}}')
  })
})
await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
const openai = createOpenAI({ baseURL: `http://127.0.0.1:${server.address().port}/v1`, apiKey: 'local' })
const request = { model: openai.chat('m'), prompt: 'Say something.', maxRetries: 0 }
console.error = () => {}

async function loop() {
  let text = ''
  try {
    for await (const piece of streamText(request).textStream) text += piece
    return `ended with ${text.length} characters`
  } catch {
    return 'throws'
  }
}
async function parts() {
  for await (const part of streamText(request).fullStream) if (part.type === 'error') return 'a part error'
  return 'no part error'
}
const whole = await generateText(request).then(() => 'resolves', () => 'throws')
console.log(`textStream: ${await loop()}; fullStream: ${await parts()}; generateText: ${whole}`)
process.exit(0)
JS
got=$(node run.js)
echo "version: ai 6.0.326, @ai-sdk/openai 3.0.141, Node $(node -v)"
echo "answered with 429: $got"
[ "$got" = "$want" ] || { echo "CHANGED: expected $want"; exit 1; }
echo "behaviour: for a loop over textStream, a refusal is an empty text"
