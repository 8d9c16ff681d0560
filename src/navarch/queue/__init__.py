"""The work queue between watches and workers. It holds keys, not events.

- **Deduplication**: a key waits at most once, however often it is added; the queue collects its reasons.
- **One worker per key**: a key that is added while a worker has it waits until that worker is done.
- **No loss**: a worker gets every added key after the last `add`, unless all its reasons are retracted.
- **Fairness**: the namespaces of one priority take turns; the keys of one namespace are first in, first out.
- **Priority without starvation**: a key's priority grows while it waits. Once it reaches the highest priority that
  waits, its level gets every second turn.
- **Delay**: the earliest of several times wins, and a worker that gets the key before that time makes it unnecessary.
- **Backoff**: a key that fails is added again after growing delays with jitter, until it is forgotten.
- **Shutdown**: a closed queue hands out no key; `drained` returns when the last worker is done.

Not promised: an order between keys of different namespaces, and one hand-out per `add`.
"""

from navarch.queue.options import LOW, NORMAL, RECONCILE_BACKOFF, QueueMetrics, QueueOptions
from navarch.queue.priority_queue import Work
from navarch.queue.queue import WorkQueue

__all__ = ["LOW", "NORMAL", "RECONCILE_BACKOFF", "QueueMetrics", "QueueOptions", "Work", "WorkQueue"]
