'use strict';

// Decisions of headgate server, over one stream of headgate.v1.

const path = require('node:path');
const grpc = require('@grpc/grpc-js');
const protoLoader = require('@grpc/proto-loader');

const proto = path.join(__dirname, '../../../internal/proto/headgate/v1/decisions.proto');
const stubs = grpc.loadPackageDefinition(
  protoLoader.loadSync(proto, { longs: Number, enums: String, defaults: true }), // Headgate's numbers are below 2^53.
);

// The server stops reading a stream that has 64 unanswered messages.
const maxUnanswered = 64;

// A stream is given up when its oldest message has no answer for this many milliseconds.
const longestSilence = 5000;

// NoDecision means that the server did not decide. The caller's own fallback decides.
class NoDecision extends Error {
  constructor(code, cause) {
    super(`no decision: ${code}`, { cause });
    this.code = code;
  }
}

// Decisions asks one server. It keeps one stream open, and opens another one when that ends.
class Decisions {
  constructor(address, log = () => {}) {
    this.log = log;
    this.client = new stubs.headgate.v1.Decisions(address, grpc.credentials.createInsecure(), {
      'grpc.initial_reconnect_backoff_ms': 100,
      'grpc.max_reconnect_backoff_ms': 1000,
    });
  }

  // connect waits for the connection, so that the deadline of the first message is not spent on it. It resolves with false when
  // the server cannot be reached for so many milliseconds: messages then get NoDecision until it can.
  connect(milliseconds = 2000) {
    return new Promise((resolve) => {
      this.client.waitForReady(Date.now() + milliseconds, (err) => resolve(!err));
    });
  }

  // decide decides up to 1,000 requests together. It resolves with their answers, in their order, and with
  // giveBack. It rejects with NoDecision when the signal aborts first, or the server is unreachable.
  async decide(requests, signal = AbortSignal.timeout(50)) {
    if (!this.stream?.open) this.stream = new Stream(this.client.Stream(), this.log);
    return this.stream.send(requests, signal);
  }

  close() {
    this.stream?.close();
    this.client.close();
  }
}

class Stream {
  constructor(call, log) {
    this.call = call;
    this.log = log;
    this.open = true;
    this.sent = 0; // messages with requests: the number of the next one
    this.unanswered = []; // The server answers them in this order.
    call.on('data', (response) => this.receive(response));
    call.on('error', (err) => this.end(new NoDecision(grpc.status[err.code], err)));
    call.on('end', () => this.end(new NoDecision('UNAVAILABLE')));
  }

  send(requests, signal) {
    if (signal.aborted) return Promise.reject(new NoDecision('CANCELLED', signal.reason));
    if (this.unanswered.length >= maxUnanswered) return Promise.reject(new NoDecision('RESOURCE_EXHAUSTED'));
    return new Promise((resolve, reject) => {
      const message = { number: this.sent++, time: performance.now(), resolve, reject, signal };
      message.leave = () => this.leave(message);
      signal.addEventListener('abort', message.leave);
      this.unanswered.push(message);
      this.call.write({ requests });
    });
  }

  // leave is called when the caller no longer waits. A late answer is given back when it arrives.
  leave(message) {
    message.left = true;
    const code = message.signal.reason.name === 'TimeoutError' ? 'DEADLINE_EXCEEDED' : 'CANCELLED';
    message.reject(new NoDecision(code, message.signal.reason));
    if (performance.now() - this.unanswered[0].time > longestSilence) this.call.cancel();
  }

  receive({ draining, answers }) {
    if (draining) {
      this.close(); // The server still answers what was sent.
      this.log('the server drains: the next message opens another stream');
      return;
    }
    const message = this.unanswered.shift();
    message.signal.removeEventListener('abort', message.leave);
    const giveBack = (indexes = answers.keys()) => this.giveBack(message.number, [...indexes]);
    if (!message.left) {
      message.resolve({ answers, giveBack });
      return;
    }
    giveBack();
    this.log(`gave back a late answer to ${answers.length}`);
  }

  // giveBack works for one second after the answer, on the same stream. After that the units stay counted.
  giveBack(number, indexes) {
    if (this.open) this.call.write({ returns: [{ message: number, indexes }] });
  }

  close() {
    this.open = false;
    this.call.end();
  }

  // end rejects what has no answer. The server may have counted it, so it is not sent again.
  end(err) {
    this.open = false;
    for (const message of this.unanswered.splice(0)) {
      message.signal.removeEventListener('abort', message.leave);
      message.reject(err);
    }
  }
}

module.exports = { Decisions, NoDecision };
