'use strict';

// node throttle.js [KEY [TIMES [ADDRESS [DEADLINE]]]] takes units of a limit that it sends over the Redis
// protocol. Then it asks for a decision by the rules of the server. The deadline is in milliseconds.

const { once } = require('node:events');
const { createClient } = require('redis');

const [key = 'user123', times = '1', address = '127.0.0.1:6380', deadline = '50'] = process.argv.slice(2);

const client = createClient({
  url: `redis://${address}`,
  RESP: 3, // so that HG.DECIDE answers with a map
  disableOfflineQueue: true, // While there is no connection, commands fail at once.
  commandOptions: { timeout: Number(deadline) },
});

// throttle takes one unit: 3 at once, and 3 per 60 seconds.
async function throttle() {
  try {
    const [limited, limit, remaining, retryAfter] = await client.sendCommand(['CL.THROTTLE', key, '2', '3', '60']);
    return limited ? `refused, again in ${retryAfter} s` : `allowed, ${remaining} of ${limit} left`;
  } catch (err) {
    return `refused, fallback (${err.name})`; // Admit here to stay available without limits.
  }
}

// decide decides a request by the rules.
async function decide(path) {
  try {
    const { verdict, limit, remaining } = await client.sendCommand(['HG.DECIDE', `path=${path}`, 'ip=192.0.2.1']);
    return `${verdict}, ${remaining} of ${limit} left`;
  } catch (err) {
    return `deny, fallback (${err.name})`;
  }
}

async function main() {
  client.on('error', () => {}); // The client connects again.
  client.connect().catch(() => {});
  await once(client, 'ready').catch(() => {});
  // Commands that are sent together travel together, and are decided together.
  const answers = await Promise.all(Array.from({ length: Number(times) }, throttle));
  for (const answer of answers) console.log(`${key}: ${answer}`);
  console.log(`/search: ${await decide('/search')}`);
  client.destroy();
}

main();
