#!/bin/bash
# Product: Chromium 156 of Debian 12, fetch in a page, HTTP/1.1.
# Guess:   A page that fetches one URL five times at once has five requests in flight:
#          a browser opens up to six connections to a host, and the service answers
#          with Cache-Control: no-store.
# Happens: One request is in flight at a time. The cache serves one request of a URL at
#          once, and learns of no-store only with the answer. Five URLs, or a fetch
#          with cache: 'no-store', have five in flight.
# Follows: A page that tries a limit of calls in flight with one URL never sees a refusal,
#          and delays of one URL add up: five calls that are delayed by a second take
#          five seconds. Test with different URLs or with cache: 'no-store'.
set -eu
want='in flight at the service: one URL 1, five URLs 5, one URL with cache no-store 5, one URL with POST 5'
dir=$(mktemp -d)
trap 'rm -rf "$dir" 2>/dev/null || { sleep 1; rm -rf "$dir"; }' EXIT
cd "$dir"
cat >run.mjs <<'JS'
import http from 'node:http'
import { spawn } from 'node:child_process'

const page = `<!doctype html><script>
const five = (url, options) => Promise.all([1, 2, 3, 4, 5].map(i => fetch(url(i), options).then(r => r.text())))
const run = async () => {
  const found = {}
  const measure = async (name, url, options) => {
    await five(url, options)
    found[name] = await (await fetch('/most?' + name)).text()
  }
  await measure('one URL', () => '/slow?same')
  await measure('five URLs', i => '/slow?' + i)
  await measure('one URL with cache no-store', () => '/slow?again', { cache: 'no-store' })
  await measure('one URL with POST', () => '/slow?post', { method: 'POST' })
  await fetch('/done', { method: 'POST', body: Object.entries(found).map(e => e.join(' ')).join(', ') })
}
run()
</script>`
let inFlight = 0
let most = 0
let browser
const finish = (text, code) => {
  browser.once('exit', () => process.exit(code))
  console.log(text)
  browser.kill()
}
const server = http.createServer(async (req, res) => {
  res.setHeader('Cache-Control', 'no-store')
  if (req.url === '/') return res.setHeader('Content-Type', 'text/html').end(page)
  if (req.url.startsWith('/most')) {
    res.end(String(most))
    most = 0
    return
  }
  if (req.url === '/done') {
    let body = ''
    for await (const chunk of req) body += chunk
    res.end()
    return finish(`in flight at the service: ${body}`, 0)
  }
  if (!req.url.startsWith('/slow')) return res.writeHead(404).end()
  most = Math.max(most, ++inFlight)
  setTimeout(() => { inFlight--; res.end('x') }, 700)
})
server.listen(0, '127.0.0.1', () => {
  browser = spawn('chromium', ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-sync',
    '--disable-background-networking', '--disable-component-update', `--user-data-dir=${process.cwd()}/profile`,
    `http://127.0.0.1:${server.address().port}/`], { stdio: 'ignore' })
  setTimeout(() => finish('no result', 1), 45000)
})
JS
echo "version: $(chromium --version 2>/dev/null | cut -d' ' -f1,2) (seen with 156.0.8078), Node $(node -v)"
got=$(node run.mjs) || { echo "$got"; exit 1; }
echo "five fetches at once, answers with Cache-Control: no-store: $got"
[ "$got" = "$want" ] || { echo "CHANGED: expected $want"; exit 1; }
echo "behaviour: requests of one URL go one by one"
