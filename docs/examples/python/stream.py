"""python3 stream.py [ADDRESS [DEADLINE]] asks headgate server. The deadline is in milliseconds.

Each line of standard input is one message: paths of requests, which are decided together.

    /search /mail         the requests are made
    abort /search         the requests are not made: what they took is given back
    within 20 /search     another deadline, in milliseconds
"""

import functools
import math
import sys

from decisions import Decisions, NoDecision, pb

show = functools.partial(print, flush=True)


def describe(answer):
    if answer.verdict == pb.VERDICT_ALLOW:
        return f"allow, {answer.remaining} of {answer.limit} left" if answer.policy else f"allow, {answer.reason}"
    if answer.verdict == pb.VERDICT_WAIT:  # The departure is booked: wait for the delay, then make the request.
        return f"wait {seconds(answer.delay):.1f} s"
    if answer.verdict == pb.VERDICT_DENY:
        if answer.HasField("retry_after"):
            return f"deny, again in {math.ceil(seconds(answer.retry_after))} s"
        return f"deny, {answer.reason}"
    return f"error, {answer.error.message}"


def seconds(duration):
    return duration.seconds + duration.nanos / 1e9


def ask(decisions, line, milliseconds):
    paths = line.split()
    abort = paths[0] == "abort"
    if abort:
        paths = paths[1:]
    if paths[0] == "within":
        milliseconds, paths = int(paths[1]), paths[2:]
    requests = [pb.Request(method="GET", path=path, ip="192.0.2.1") for path in paths]
    try:
        decision = decisions.decide(requests, milliseconds / 1000)
    except NoDecision as err:
        for path in paths:  # The fallback of this program refuses. Admit here to stay available without limits.
            show(f"{path}: deny, fallback ({err})")
        return
    for path, answer in zip(paths, decision.answers):
        show(f"{path}: {describe(answer)}")
    if abort:
        decision.give_back()
        show(f"gave back {len(paths)}")


def main(address="127.0.0.1:8081", milliseconds="50"):
    decisions = Decisions(address, log=show)
    for line in sys.stdin:
        ask(decisions, line, int(milliseconds))
    decisions.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
