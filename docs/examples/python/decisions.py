"""Decisions of headgate server, over one stream of headgate.v1."""

import collections
import concurrent.futures
import queue
import threading
import time

import grpc

from headgate.v1 import decisions_pb2 as pb
from headgate.v1 import decisions_pb2_grpc

# The server stops reading a stream that has 64 unanswered messages.
MAX_UNANSWERED = 64

# A stream is given up when its oldest message has no answer for this many seconds.
LONGEST_SILENCE = 5

OPTIONS = [
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1000),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.dns_min_time_between_resolutions_ms", 100),  # Otherwise a new connection waits for seconds.
]


class NoDecision(Exception):
    """The server did not decide. The caller's own fallback decides."""


class Decisions:
    """Asks one server, from any number of threads.

    It keeps one stream open, and opens another one when that ends. A process that forks makes its own
    Decisions after the fork.
    """

    def __init__(self, address, log=lambda text: None):
        self._channel = grpc.insecure_channel(address, OPTIONS)
        self._stub = decisions_pb2_grpc.DecisionsStub(self._channel)
        self._log = log
        self._lock = threading.Lock()
        self._stream = None

    def decide(self, requests, timeout=0.05):
        """Decides up to 1,000 requests together, within a timeout in seconds.

        The answers of the Decision have the order of the requests. Raises NoDecision when the timeout
        passes first, or the server is unreachable.
        """
        with self._lock:
            if self._stream is None or not self._stream.open:
                self._stream = _Stream(self._stub, self._lock, self._log)
            stream = self._stream
            message = stream.send(requests)
        try:
            return message.result(timeout)
        except concurrent.futures.TimeoutError:
            if not message.cancel():
                return message.result()  # The answer has just come.
        stream.check_silence()
        raise NoDecision("DEADLINE_EXCEEDED")

    def close(self):
        with self._lock:
            if self._stream is not None:
                self._stream.close()
        if self._stream is not None:
            self._stream.reader.join(1)  # so that the last messages are sent
        self._channel.close()


class Decision:
    """The answers to a message."""

    def __init__(self, stream, number, answers):
        self._stream = stream
        self._number = number
        self.answers = answers

    def give_back(self, indexes=None):
        """Gives back what requests took that are not made.

        It works for one second after the answer, on the same stream. After that the units stay counted.
        """
        if indexes is None:
            indexes = range(len(self.answers))
        self._stream.give_back(pb.Return(message=self._number, indexes=indexes))


class _Stream:
    def __init__(self, stub, lock, log):
        self.open = True
        self._lock = lock  # It guards open, and the order of messages.
        self._log = log
        self._sent = 0  # messages with requests: the number of the next one
        self._outgoing = queue.SimpleQueue()  # None closes this side.
        self._unanswered = collections.deque()  # The server answers them in this order.
        self._call = stub.Stream(iter(self._outgoing.get, None))
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def send(self, requests):
        """Sends a message and gives the future of its Decision. The caller has the lock."""
        if len(self._unanswered) >= MAX_UNANSWERED:
            raise NoDecision("RESOURCE_EXHAUSTED")
        message = concurrent.futures.Future()
        message.number, message.time = self._sent, time.monotonic()
        self._sent += 1
        self._unanswered.append(message)
        self._outgoing.put(pb.DecideRequest(requests=requests))
        return message

    def give_back(self, returned):
        with self._lock:
            if self.open:
                self._outgoing.put(pb.DecideRequest(returns=[returned]))

    def close(self):
        """Closes this side. The caller has the lock."""
        if self.open:
            self.open = False
            self._outgoing.put(None)

    def check_silence(self):
        with self._lock:
            silent = self._unanswered and time.monotonic() - self._unanswered[0].time > LONGEST_SILENCE
        if silent:
            self._call.cancel()

    def _read(self):
        failure = NoDecision("UNAVAILABLE")
        try:
            for response in self._call:
                self._receive(response)
        except grpc.RpcError as err:
            failure = NoDecision(err.code().name)
        with self._lock:
            self.close()
        # The server may have counted what has no answer, so it is not sent again.
        for message in self._unanswered:
            if message.set_running_or_notify_cancel():
                message.set_exception(failure)

    def _receive(self, response):
        if response.draining:
            with self._lock:
                self.close()  # The server still answers what was sent.
            self._log("the server drains: the next message opens another stream")
            return
        message = self._unanswered.popleft()
        decision = Decision(self, message.number, response.answers)
        if message.set_running_or_notify_cancel():
            message.set_result(decision)
            return
        decision.give_back()  # The caller no longer waits.
        self._log(f"gave back a late answer to {len(response.answers)}")
