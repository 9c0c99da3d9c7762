'use strict';

// node order.js ADDRESS sends many messages without waiting. The exit status is 0 if each one gets its own answers.

const assert = require('node:assert');
const { Decisions } = require('../../../../docs/examples/node/decisions');

const inFlight = 60;

async function message(decisions, path, size) {
  const requests = Array.from({ length: size }, () => ({ path }));
  const { answers } = await decisions.decide(requests, AbortSignal.timeout(60000));
  const verdicts = answers.map((answer) => answer.verdict);
  assert.deepStrictEqual(verdicts, ['VERDICT_ALLOW', ...Array(size - 1).fill('VERDICT_DENY')], path);
}

async function main(address) {
  const decisions = new Decisions(address);
  for (let round = 0; round < 20; round++) {
    const sent = Array.from({ length: inFlight }, (_, i) => message(decisions, `/${round}/${i}`, 1 + (i % 7)));
    await Promise.all(sent);
  }
  const many = await Promise.allSettled(Array.from({ length: 65 }, (_, i) => message(decisions, `/many/${i}`, 1)));
  assert.deepStrictEqual(many.map((one) => one.status), [...Array(64).fill('fulfilled'), 'rejected']);
  assert.strictEqual(many[64].reason.code, 'RESOURCE_EXHAUSTED');
  decisions.close();
}

main(process.argv[2]);
