#!/bin/bash
# Product: npm package stripe 23.1.0 (stripe-node).
# Guess:   A 429 rejects the promise with StripeRateLimitError, whatever the body.
# Happens: A 429 with a problem document (RFC 9457) resolves. The caller gets the
#          problem document as its PaymentIntent. The client looks for a member
#          "error" in the body and takes a body without it as success.
# Follows: A limiter or gateway that answers for an API with an SDK has to use the
#          error body of the API. A correct status and Retry-After are not enough:
#          here the refused caller goes on with a payment that does not exist.
set -eu
want='resolved: Quota Exceeded (429), with member error: StripeRateLimitError'
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private":true,"type":"module"}' >package.json
npm install --silent --ignore-scripts --no-audit --no-fund stripe@23.1.0
cat >run.js <<'JS'
import http from 'node:http'
import Stripe from 'stripe'

async function call(body) {
  const server = http.createServer((req, res) => {
    req.resume().on('end', () => {
      res.writeHead(429, { 'Content-Type': 'application/problem+json', 'Retry-After': '2' })
      res.end(JSON.stringify(body))
    })
  })
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
  const stripe = new Stripe('sk_test_local', { host: '127.0.0.1', port: server.address().port, protocol: 'http', maxNetworkRetries: 0, telemetry: false })
  try {
    const intent = await stripe.paymentIntents.create({ amount: 100, currency: 'eur' })
    return `resolved: ${intent.title} (${intent.status})`
  } catch (err) {
    return err.type
  } finally {
    server.close()
    server.closeAllConnections()
  }
}
const problem = { type: 'about:blank', title: 'Quota Exceeded', status: 429 }
const own = { ...problem, error: { type: 'rate_limit_error', message: 'slow down' } }
console.log(`${await call(problem)}, with member error: ${await call(own)}`)
JS
got=$(node run.js)
echo "version: stripe 23.1.0, Node $(node -v)"
echo "paymentIntents.create answered with 429: $got"
[ "$got" = "$want" ] || { echo "CHANGED: expected $want"; exit 1; }
echo "behaviour: a refusal is a success unless the body has a member error"
