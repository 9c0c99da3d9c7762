#!/bin/bash
# Product: npm package cohere-ai 8.1.0.
# Guess:   A stream ends with the event message-end, or when the connection does. What the
#          model says does not matter.
# Happens: Any event whose data contains "[DONE]" ends the stream: also an event of text in
#          which the model writes these characters. The loop ends in order: the text is cut,
#          and message-end with the usage never comes.
# Follows: A user asks for an explanation of server-sent events, and gets half of an answer.
#          A program that counts tokens by message-end counts nothing. A reader of streams
#          compares the whole data with the mark.
set -eu
want='text: "Streams end", events: message-start content-delta; without brackets: "Streams end with DONE and more.", events: message-start content-delta content-delta content-delta message-end'
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private":true,"type":"module"}' >package.json
npm install --silent --ignore-scripts --no-audit --no-fund cohere-ai@8.1.0
cat >run.js <<'JS'
import http from 'node:http'
import { CohereClientV2 } from 'cohere-ai'

async function read(mark) {
  const server = http.createServer((req, res) => {
    req.resume().on('end', () => {
      res.writeHead(200, { 'Content-Type': 'text/event-stream' })
      const send = (type, more) => res.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`)
      send('message-start', { id: '1', delta: { message: { role: 'assistant', content: [] } } })
      for (const text of ['Streams end', ` with ${mark}`, ' and more.']) send('content-delta', { index: 0, delta: { message: { content: { text } } } })
      send('message-end', { id: '1', delta: { finish_reason: 'COMPLETE', usage: { billed_units: { input_tokens: 3, output_tokens: 8 } } } })
      res.end()
    })
  })
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
  const cohere = new CohereClientV2({ environment: `http://127.0.0.1:${server.address().port}`, token: 'local' })
  let text = ''
  const types = []
  for await (const event of await cohere.chatStream({ model: 'm', messages: [{ role: 'user', content: 'Explain streams.' }] })) {
    types.push(event.type)
    if (event.type === 'content-delta') text += event.delta.message.content.text
  }
  return `"${text}", events: ${types.join(' ')}`
}
console.log(`text: ${await read('[DONE]')}; without brackets: ${await read('DONE')}`)
process.exit(0)
JS
got=$(node run.js)
echo "version: cohere-ai 8.1.0, Node $(node -v)"
echo "a model that writes [DONE]: $got"
[ "$got" = "$want" ] || { echo "CHANGED: expected $want"; exit 1; }
echo "behaviour: the characters [DONE] in the text end the stream without an error"
