#!/bin/bash
# Product: npm package bottleneck 2.19.5.
# Guess:   A job with priority 0 overtakes the waiting jobs with priority 9, with
#          any kind of limit.
# Happens: With minTime alone (a rate), jobs run in the order of their arrival.
#          Each job leaves the queue at once with a start time in the future, so
#          there is nothing to overtake. With maxConcurrent: 1 added, the job
#          with priority 0 goes ahead of all jobs but the next one.
# Follows: A limiter that hands out start times in advance cannot honour priorities
#          or cancellations. Urgent calls wait behind the whole backlog. Add a
#          limit on concurrency, or decide when a slot becomes free.
set -eu
want='minTime: job 6 of 6; minTime and maxConcurrent: job 3 of 6'
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private":true,"type":"module"}' >package.json
npm install --silent --ignore-scripts --no-audit --no-fund bottleneck@2.19.5
cat >run.js <<'JS'
import Bottleneck from 'bottleneck'

// place returns at which place the urgent job runs that is scheduled after five others.
async function place(options) {
  const limiter = new Bottleneck({ minTime: 300, ...options })
  const order = []
  const jobs = [1, 2, 3, 4, 5].map(() => limiter.schedule({ priority: 9 }, async () => order.push('normal')))
  await new Promise(resolve => setTimeout(resolve, 20))
  jobs.push(limiter.schedule({ priority: 0 }, async () => order.push('urgent')))
  await Promise.all(jobs)
  console.error(JSON.stringify(options), order.join(' '))
  return `job ${order.indexOf('urgent') + 1} of ${order.length}`
}
console.log(`minTime: ${await place({})}; minTime and maxConcurrent: ${await place({ maxConcurrent: 1 })}`)
JS
echo "version: bottleneck 2.19.5, Node $(node -v)"
got=$(node run.js)
[ "$got" = "$want" ] || { echo "CHANGED: $got, expected $want"; exit 1; }
echo "behaviour: the urgent job runs as: $got"
