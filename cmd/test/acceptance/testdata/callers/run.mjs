// Calls a refused API with one client library after another. Arguments: NAME=ADDRESS for each library. It prints a line of JSON for
// each, with the outcome of a call that is refused.
import { readFileSync } from 'node:fs';
import got from 'got';
import axios from 'axios';
import axiosRetry from 'axios-retry';
import ky from 'ky';
import OpenAI from 'openai';
import Stripe from 'stripe';
import { S3Client, GetObjectCommand } from '@aws-sdk/client-s3';
import { Octokit } from '@octokit/core';

// A call of these libraries waits for the time in Retry-After. It is given up after a pause, in ms. All others end by themselves.
const waiting = { got: 1500, 'axios-retry': 1500, ky: 1500, openai: 1500 };
const most = 60000;

function retrying() {
  const client = axios.create();
  axiosRetry(client, { retries: 3 });
  return client;
}

const clients = {
  got: base => got(base + '/monthly').text(),
  'axios-retry': base => retrying().get(base + '/monthly'),
  ky: base => ky.get(base + '/monthly').text(),
  openai: base => new OpenAI({ baseURL: base + '/v1', apiKey: 'k' }).chat.completions.create({ model: 'm', messages: [] }),
  'openai, at most once': base =>
    new OpenAI({ baseURL: base + '/v1', apiKey: 'k', maxRetries: 0 }).chat.completions.create({ model: 'm', messages: [] }),
  stripe: base => {
    const { hostname, port } = new URL(base);
    return new Stripe('sk_test_1', { host: hostname, port, protocol: 'http', telemetry: false }).paymentIntents.create({ amount: 1, currency: 'eur' });
  },
  '@aws-sdk/client-s3': base =>
    new S3Client({
      endpoint: base, region: 'eu-1', forcePathStyle: true, maxAttempts: 1, credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
    }).send(new GetObjectCommand({ Bucket: 'bucket', Key: 'key' })),
  '@octokit/core': base => new Octokit({ baseUrl: base, log: { debug() {}, info() {}, warn() {}, error() {} } }).request('GET /monthly'),
};

// Calls beside another call, which ends when this one was refused.
const beside = {
  'got, in flight': base => got(base + '/flight').text(),
  'axios-retry, in flight': base => retrying().get(base + '/flight'),
};

function outcome(call, success, pause) {
  const waits = new Promise(resolve => setTimeout(resolve, pause, 'waits'));
  const ends = call.then(
    () => success,
    e => `${e.constructor.name}: ${e.name}: ${String(e.message).split('\n')[0]}`,
  );
  return Promise.race([ends, waits]);
}

const version = name =>
  JSON.parse(readFileSync(new URL(`node_modules/${name.split(',')[0]}/package.json`, import.meta.url))).version;

await Promise.all(
  process.argv.slice(2).map(async argument => {
    const at = argument.lastIndexOf('=');
    const name = argument.slice(0, at);
    const base = argument.slice(at + 1);
    let result;
    if (beside[name]) {
      fetch(base + '/flight/first').catch(() => {});
      await fetch(base + '/begun'); // The service answers when it has the first request.
      result = await outcome(beside[name](base), 'passes', most);
    } else {
      await clients[name](base); // It takes the only unit.
      result = await outcome(clients[name](base), 'takes the refusal for a success', waiting[name] ?? most);
    }
    console.log(JSON.stringify({ name, version: version(name), outcome: result }));
  }),
);
process.exit(0);
