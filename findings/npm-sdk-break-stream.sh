#!/bin/bash
# Product: npm packages @google/genai 2.32.0, ollama 0.6.4 and ai 6.0.326, beside openai 6.49.0.
# Guess:   A break out of `for await` over a stream closes the connection, as with openai, so
#          that the model stops.
# Happens: With these three the connection stays open, and the service streams to its end.
#          genai and ollama release their reader without cancelling it, and the text of ai is
#          one of two branches of the stream.
# Follows: A user who has seen enough pays for the whole answer. A proxy cannot know that
#          nobody reads: to stop, a program aborts (abortSignal of genai and ai, abort() of
#          ollama). A service cannot count on disconnects to bound its work.
set -eu
want='openai: closed; @google/genai: streams to the end; ollama: streams to the end; ai: streams to the end'
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private":true,"type":"module"}' >package.json
npm install --silent --ignore-scripts --no-audit --no-fund openai@6.49.0 @google/genai@2.32.0 ollama@0.6.4 ai@6.0.326 @ai-sdk/openai@3.0.141 zod@4.6.7
cat >run.js <<'JS'
import http from 'node:http'
import OpenAI from 'openai'
import { GoogleGenAI } from '@google/genai'
import { Ollama } from 'ollama'
import { createOpenAI } from '@ai-sdk/openai'
import { streamText } from 'ai'

const chunk = { id: '1', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta: { content: 'word ' }, finish_reason: null }] }
const gemini = { candidates: [{ index: 0, content: { role: 'model', parts: [{ text: 'word ' }] } }] }
const line = { model: 'm', created_at: '2026-11-01T00:00:00Z', done: false, message: { role: 'assistant', content: 'word ' } }
const events = 100

function event(path) {
  if (path.startsWith('/api/')) return JSON.stringify(line) + '\n'
  return `data: ${JSON.stringify(path.startsWith('/v1beta/') ? gemini : chunk)}\n\n`
}

// end tells how a stream of 5 s ends when its reader leaves after 3 pieces.
async function end(open) {
  let ended
  const end = new Promise(resolve => { ended = resolve })
  const server = http.createServer((req, res) => {
    req.resume().on('end', async () => {
      let left = false
      res.on('close', () => { left = !res.writableEnded })
      res.writeHead(200, { 'Content-Type': req.url.startsWith('/api/') ? 'application/x-ndjson' : 'text/event-stream' })
      for (let n = 0; n < events && !left; n++) {
        res.write(event(req.url))
        await new Promise(resolve => setTimeout(resolve, 50))
      }
      res.end()
      ended(left ? 'closed' : 'streams to the end')
    })
  })
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
  let pieces = 0
  for await (const _ of await open(`http://127.0.0.1:${server.address().port}`)) if (++pieces === 3) break
  return end
}

const messages = [{ role: 'user', content: 'Say something.' }]
const apiKey = 'local'
const clients = {
  openai: base => new OpenAI({ baseURL: base + '/v1', apiKey }).chat.completions.create({ model: 'm', messages, stream: true }),
  '@google/genai': base => new GoogleGenAI({ apiKey, httpOptions: { baseUrl: base } }).models.generateContentStream({ model: 'm', contents: 'Say something.' }),
  ollama: base => new Ollama({ host: base }).chat({ model: 'm', messages, stream: true }),
  ai: base => streamText({ model: createOpenAI({ baseURL: base + '/v1', apiKey }).chat('m'), messages }).textStream,
}
const seen = await Promise.all(Object.entries(clients).map(async ([name, open]) => `${name}: ${await end(open)}`))
console.log(seen.join('; '))
process.exit(0)
JS
got=$(node run.js)
echo "version: openai 6.49.0, @google/genai 2.32.0, ollama 0.6.4, ai 6.0.326, Node $(node -v)"
echo "break after 3 pieces of 100: $got"
[ "$got" = "$want" ] || { echo "CHANGED: expected $want"; exit 1; }
echo "behaviour: leaving the loop does not stop the stream"
