'use strict';

// node calls.js ADDRESS DESCRIPTORS makes every kind of gRPC call, and prints what it gets. DESCRIPTORS is a file with the
// FileDescriptorSet of grpc.testing.TestService; fields then keep the names of the file. calls.py prints the same lines.

const fs = require('node:fs');
const path = require('node:path');
const { createRequire } = require('node:module');

const fromExample = createRequire(path.join(__dirname, '../../../../docs/examples/node/decisions.js'));
const grpc = fromExample('@grpc/grpc-js');
const protoLoader = fromExample('@grpc/proto-loader');

const [, , address, descriptors] = process.argv;
const stubs = grpc.loadPackageDefinition(protoLoader.loadFileDescriptorSetFromBuffer(fs.readFileSync(descriptors)));
const client = new stubs.grpc.testing.TestService(address, grpc.credentials.createInsecure());

const minute = () => ({ deadline: Date.now() + 60000 });
const payload = (size) => ({ payload: { body: Buffer.alloc(size) } });
const kept = (call) => new Promise((resolve) => call.on('status', resolve));

function unary(method, request, metadata = new grpc.Metadata(), options = minute()) {
  return new Promise((resolve) => {
    const got = {};
    const call = client[method](request, metadata, options, (error, answer) => Object.assign(got, { error, answer }));
    call.on('metadata', (header) => { got.header = header; });
    call.on('status', (status) => resolve(Object.assign(got, { status })));
  });
}

async function calls() {
  const said = new grpc.Metadata();
  said.set('x-said', 'hello');
  const { answer, header, status } = await unary('unaryCall', payload(300000), said);
  console.log('unary', answer.payload.body.length, header.get('x-header')[0], status.metadata.get('x-trailer-bin')[0].toString('hex'));
  const failed = await unary('unaryCall', { response_status: { code: 5, message: 'größer\nas 100%' } });
  console.log('status', failed.status.code, JSON.stringify(failed.status.details));
  console.log('unimplemented', (await unary('unimplementedCall', {})).status.code);
}

async function streams() {
  const sizes = Array.from({ length: 20 }, (_, i) => ({ size: 1 + 1000 * i }));
  const down = client.streamingOutputCall({ response_parameters: sizes, response_status: { code: 11, message: 'all said' } }, minute());
  let messages = 0;
  down.on('data', () => messages++).on('error', () => {});
  console.log('down', (await kept(down)).code, messages);

  const sum = await new Promise((resolve, reject) => {
    const up = client.streamingInputCall(minute(), (error, answer) => (error ? reject(error) : resolve(answer.aggregated_payload_size)));
    for (let i = 0; i < 20; i++) up.write(payload(10000));
    up.end();
  });
  console.log('up', sum);

  const both = client.fullDuplexCall(minute());
  let echoed = 0;
  both.on('error', () => {});
  both.on('data', (message) => {
    echoed += message.payload.body.length;
    if (message.payload.body.length === 10) both.end();
    else both.write(payload(message.payload.body.length + 1));
  });
  both.write(payload(1));
  const end = await kept(both);
  console.log('both', end.code, echoed, end.details, end.metadata.get('x-end')[0]);
}

async function leaving() {
  const both = client.fullDuplexCall(minute());
  both.on('error', () => {});
  both.on('data', () => both.cancel());
  both.write(payload(1));
  console.log('cancelled', (await kept(both)).code);
  const late = client.fullDuplexCall({ deadline: Date.now() + 1500 });
  late.on('error', () => {}).on('data', () => {});
  console.log('deadline', (await kept(late)).code);
}

async function refused() {
  const named = new grpc.Metadata();
  named.set('x-client-id', 'a');
  for (let i = 0; i < 2; i++) {
    const { status, header } = await unary('emptyCall', {}, named);
    console.log('admitted', status.code, header.get('ratelimit').length);
  }
  const { status } = await unary('unaryCall', payload(1 << 20), named);
  const seconds = Number(status.metadata.get('retry-after')[0]);
  console.log('refused', status.code, status.details.split(':')[0], seconds > 1700 && seconds <= 1800);
}

async function main() {
  for (const part of [calls, streams, leaving, refused]) await part();
  client.close();
}

main();
