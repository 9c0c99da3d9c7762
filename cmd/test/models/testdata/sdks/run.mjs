// Runs calls with the SDKs at the same time. Standard input has a line of JSON for each: {name, base, model, leave, most}. It prints a line
// for each, with the text's length, the usage, the error that the user sees, and the time that the call took.
// Leave is the number of pieces of text after which the user leaves the stream. Most is the time in ms after which a call that still
// waits is given up.
import { readFileSync } from 'node:fs';
import { calls, packages } from './calls.mjs';

class Left extends Error {}

const version = name => JSON.parse(readFileSync(new URL(`node_modules/${name}/package.json`, import.meta.url))).version;

globalThis.AI_SDK_LOG_WARNINGS = false;

// words is what a user sees of an error.
function words(error) {
  const cause = error.lastError ?? error;
  return `${cause.name === 'Error' ? cause.constructor.name : cause.name}: ${cause.message}`.split('\n')[0];
}

async function run({ name, base, model, leave, most }) {
  const begun = performance.now();
  let pieces = 0;
  let streamed = '';
  const result = { name, model, sdk: packages(name).map(p => `${p} ${version(p)}`).join(' with ') };
  try {
    const call = calls[name](base, model, piece => {
      streamed += piece;
      if (++pieces === leave) throw new Left();
    });
    const given = most ? new Promise(resolve => setTimeout(resolve, most, { waits: true })) : call;
    Object.assign(result, await Promise.race([call, given]));
  } catch (error) {
    result.text = streamed;
    if (!(error instanceof Left)) result.error = words(error);
  }
  return { ...result, pieces, took: Math.round(performance.now() - begun) };
}

const lines = readFileSync(0, 'utf8').split('\n').filter(line => line !== '').map(line => JSON.parse(line));
await Promise.all(lines.map(async line => console.log(JSON.stringify(await run(line)))));
process.exit(0);
