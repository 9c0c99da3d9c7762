'use strict';

// node client.js ADDRESS VERSION sends commands with node-redis. Each line of the input is a JSON list of commands, which are
// lists of words. It prints a JSON list of their answers for each line. In RESP3, a list of several commands is a pipeline of
// one call; in RESP2, the calls of one turn travel together.

const readline = require('node:readline');
const { createClient } = require('redis');

const [address, version] = process.argv.slice(2);

async function main() {
  const client = createClient({ url: `redis://${address}`, RESP: Number(version), name: 'test' });
  client.on('error', (err) => { throw err; });
  await client.connect();
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const commands = JSON.parse(line);
    let answers;
    if (version === '3' && commands.length > 1) {
      answers = commands.reduce((pipeline, words) => pipeline.addCommand(words), client.multi()).execAsPipeline();
    } else {
      answers = Promise.all(commands.map((words) => client.sendCommand(words).catch((err) => ({ error: err.message }))));
    }
    console.log(JSON.stringify(await answers));
  }
  client.destroy();
}

main();
