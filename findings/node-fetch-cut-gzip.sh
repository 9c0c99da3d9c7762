#!/bin/bash
# Product: fetch of Node 20 (undici), on a compressed answer that is not complete.
# Guess:   A body whose gzip stream ends in the middle rejects: the checksum and the end of
#          the last block are missing, and zlib's gunzip says "unexpected end of file".
# Happens: text() resolves with the part that could be decompressed, for gzip, deflate and
#          br. Only a body shorter than its Content-Length rejects. undici sets the flush
#          modes of zlib so that an early end is no error.
# Follows: When a proxy or a service ends a compressed answer in order but too early, the
#          client takes the part for the whole. Lines of JSON or events just stop. A reader
#          of a stream has to check the last event, and a proxy that stops an answer has to
#          cut the connection or send the error of the API.
set -eu
want='gzip: a part, no error; deflate: a part, no error; br: a part, no error; gunzipSync: unexpected end of file'
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >run.mjs <<'JS'
import http from 'node:http'
import zlib from 'node:zlib'

const text = Array.from({ length: 2000 }, (_, n) => JSON.stringify({ n }) + '\n').join('')
const half = compressed => compressed.subarray(0, compressed.length >> 1)

async function read(encoding, compress) {
  const server = http.createServer((req, res) => {
    res.writeHead(200, { 'Content-Type': 'application/x-ndjson', 'Content-Encoding': encoding })
    res.end(half(compress(text)))
  })
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
  try {
    const got = await (await fetch(`http://127.0.0.1:${server.address().port}`)).text()
    return got === text ? 'the whole' : got !== '' && text.startsWith(got) ? 'a part, no error' : 'something else'
  } catch {
    return 'rejects'
  } finally {
    server.closeAllConnections()
    server.close()
  }
}
const found = []
for (const [encoding, compress] of [['gzip', zlib.gzipSync], ['deflate', zlib.deflateSync], ['br', zlib.brotliCompressSync]]) {
  found.push(`${encoding}: ${await read(encoding, compress)}`)
}
try {
  zlib.gunzipSync(half(zlib.gzipSync(text)))
  found.push('gunzipSync: no error')
} catch (err) {
  found.push(`gunzipSync: ${err.message}`)
}
console.log(found.join('; '))
process.exit(0)
JS
got=$(node run.mjs)
echo "version: Node $(node -v), undici $(node -p process.versions.undici) (seen with Node v20.20.2)"
echo "an answer that ends in the middle: $got"
[ "$got" = "$want" ] || { echo "CHANGED: expected $want"; exit 1; }
echo "behaviour: half of a compressed answer is a success"
