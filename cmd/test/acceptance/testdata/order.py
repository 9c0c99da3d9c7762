"""python3 order.py ADDRESS sends messages from many threads.

The exit status is 0 if each one gets its own answers.
"""

import concurrent.futures
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[4] / "docs" / "examples" / "python"))
from decisions import Decisions, pb  # noqa: E402

IN_FLIGHT = 60


def message(decisions, i):
    size = 1 + i % 7
    decision = decisions.decide([pb.Request(path=f"/{i}")] * size, timeout=60)
    verdicts = [answer.verdict for answer in decision.answers]
    assert verdicts == [pb.VERDICT_ALLOW] + [pb.VERDICT_DENY] * (size - 1), (i, verdicts)


decisions = Decisions(sys.argv[1])
with concurrent.futures.ThreadPoolExecutor(IN_FLIGHT) as threads:
    list(threads.map(lambda i: message(decisions, i), range(1200)))
decisions.close()
