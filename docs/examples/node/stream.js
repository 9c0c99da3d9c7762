'use strict';

// node stream.js [ADDRESS [DEADLINE]] asks headgate server. The deadline is in milliseconds.
// Each line of standard input is one message: paths of requests, which are decided together.
//
//   /search /mail         the requests are made
//   abort /search         the requests are not made: what they took is given back
//   within 20 /search     another deadline, in milliseconds

const readline = require('node:readline');
const { Decisions, NoDecision } = require('./decisions');

const [address = '127.0.0.1:8081', deadline = '50'] = process.argv.slice(2);

function describe(answer) {
  const { verdict, policy, reason, limit, remaining, retryAfter, delay, error } = answer;
  switch (verdict) {
    case 'VERDICT_ALLOW':
      return policy ? `allow, ${remaining} of ${limit} left` : `allow, ${reason}`;
    case 'VERDICT_WAIT': // The departure is booked: wait for the delay, then make the request.
      return `wait ${seconds(delay).toFixed(1)} s`;
    case 'VERDICT_DENY':
      return retryAfter ? `deny, again in ${Math.ceil(seconds(retryAfter))} s` : `deny, ${reason}`;
    default:
      return `error, ${error.message}`;
  }
}

function seconds(duration) {
  return duration.seconds + duration.nanos / 1e9;
}

async function ask(decisions, line) {
  let paths = line.trim().split(/\s+/);
  let milliseconds = Number(deadline);
  const abort = paths[0] === 'abort';
  if (abort) paths = paths.slice(1);
  if (paths[0] === 'within') [, milliseconds, ...paths] = paths;
  const requests = paths.map((path) => ({ method: 'GET', path, ip: '192.0.2.1' }));
  try {
    const decision = await decisions.decide(requests, AbortSignal.timeout(Number(milliseconds)));
    decision.answers.forEach((answer, i) => console.log(`${paths[i]}: ${describe(answer)}`));
    if (abort) {
      decision.giveBack();
      console.log(`gave back ${paths.length}`);
    }
  } catch (err) {
    if (!(err instanceof NoDecision)) throw err;
    // The fallback of this program refuses. Admit here to stay available without limits.
    for (const path of paths) console.log(`${path}: deny, fallback (${err.code})`);
  }
}

async function main() {
  const decisions = new Decisions(address, console.log);
  await decisions.connect();
  for await (const line of readline.createInterface({ input: process.stdin })) await ask(decisions, line);
  decisions.close();
}

main();
