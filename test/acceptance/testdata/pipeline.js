'use strict';

// node pipeline.js ADDRESS sends 10,000 CL.THROTTLE at once, and again as a pipeline of one call, in RESP2 and
// RESP3. The exit status is 0 if all answers are right and in order.

const assert = require('node:assert');
const { createRequire } = require('node:module');
const { createClient } = createRequire(`${__dirname}/../../../examples/node/`)('redis');

const commands = 10000;
const admitted = 6000;

function check(answers) {
  assert.strictEqual(answers.length, commands);
  answers.forEach(([limited, limit, remaining, retryAfter], i) => {
    assert.strictEqual(limited, i < admitted ? 0 : 1, `answer ${i}`);
    assert.strictEqual(limit, admitted);
    assert.strictEqual(remaining, Math.max(admitted - 1 - i, 0), `answer ${i}`);
    assert.strictEqual(retryAfter > 0, limited === 1);
  });
}

async function main(address) {
  for (const RESP of [2, 3]) {
    const client = createClient({ url: `redis://${address}`, RESP });
    client.on('error', (err) => { throw err; });
    await client.connect();
    const command = (key) => ['CL.THROTTLE', `${key}${RESP}`, String(admitted - 1), '1', '86400'];
    check(await Promise.all(Array.from({ length: commands }, () => client.sendCommand(command('at once')))));
    const pipeline = client.multi();
    for (let i = 0; i < commands; i++) pipeline.addCommand(command('pipeline'));
    check(await pipeline.execAsPipeline());
    await assert.rejects(client.sendCommand(['CL.THROTTLE', 'k', '1', '1', '1', '-1']), /quantity is invalid/);
    await client.close();
  }
}

main(process.argv[2]);
