#!/bin/bash
# Product: npm package @grpc/grpc-js 1.14.7, and http2 of Node 20 below it.
# Guess:   A deadline or cancel() in the middle of a client's stream sends RST_STREAM
#          alone, so the service sees an aborted upload.
# Happens: The client first ends its stream in order (END_STREAM) and sends
#          RST_STREAM after that. The service reads a complete upload, and the
#          reset arrives when it has read the end. close() of a stream of Node's own
#          http2 client does the same; destroy() resets without an end.
# Follows: A service that commits at the end of the stream commits a part of it.
#          A service must compare a count or a checksum of the caller's own.
set -eu
want='grpc-js deadline: end first; grpc-js cancel: end first; http2 close: end first; http2 destroy: reset first'
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private":true,"type":"module"}' >package.json
npm install --silent --ignore-scripts --no-audit --no-fund @grpc/grpc-js@1.14.7
cat >run.js <<'JS'
import http2 from 'node:http2'
import grpc from '@grpc/grpc-js'

const server = http2.createServer()
await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
const address = `127.0.0.1:${server.address().port}`

// What the service sees of one stream whose client sends 5 bytes of a message and never ends it.
function seen(leave) {
  return new Promise(resolve => {
    server.once('stream', stream => {
      const events = []
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' })
      stream.on('data', () => {})
      stream.on('end', () => events.push('end'))
      stream.on('aborted', () => events.push('reset'))
      stream.on('error', () => {})
      stream.on('close', () => resolve(`${events[0]} first`))
    })
    leave()
  })
}

const raw = value => value
const Service = grpc.makeGenericClientConstructor({
  Upload: {
    path: '/a.B/Upload', requestStream: true, responseStream: false,
    requestSerialize: raw, requestDeserialize: raw, responseSerialize: raw, responseDeserialize: raw,
  },
}, 'B')
const client = new Service(address, grpc.credentials.createInsecure())
const session = http2.connect(`http://${address}`)

function upload(seconds) {
  const call = client.Upload({ deadline: Date.now() + 1000 * seconds }, () => {})
  call.write(Buffer.from('first'))
  return call
}

function request() {
  const stream = session.request({ ':method': 'POST', ':path': '/' })
  stream.on('error', () => {})
  stream.write('first')
  return stream
}

const lines = []
lines.push(`grpc-js deadline: ${await seen(() => upload(1))}`)
lines.push(`grpc-js cancel: ${await seen(() => { const call = upload(60); setTimeout(() => call.cancel(), 300) })}`)
lines.push(`http2 close: ${await seen(() => { const s = request(); setTimeout(() => s.close(http2.constants.NGHTTP2_CANCEL), 300) })}`)
lines.push(`http2 destroy: ${await seen(() => { const s = request(); setTimeout(() => s.destroy(), 300) })}`)
console.log(lines.join('; '))
process.exit(0)
JS
echo "version: @grpc/grpc-js 1.14.7, Node $(node -v)"
got=$(node run.js)
[ "$got" = "$want" ] || { echo "CHANGED: $got, expected $want"; exit 1; }
echo "behaviour: $got"
