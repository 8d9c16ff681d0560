"""The work queue between what happens and those who deal with it: keys, not events.

- **Once**: a key waits at most once, however often it is added; its reasons are collected.
- **Never two at once**: a key that is added while it is worked on waits until that is done.
- **Nothing is lost**: what was added is handed out after it was added, unless all its reasons are taken back.
- **Fair**: the namespaces of one priority take turns; within a namespace the first to wait is the first to be taken.
- **By priority, without starving**: a key's priority grows while it waits. One that has grown to the highest that waits
  is passed over no more: every second key handed out is of the lane that has grown most.
- **Delayed**: of several times the earliest holds, and a hand-out before that time is enough: none follows for it.
- **Backoff**: a key that fails comes again after growing delays, not in step with others, until it is forgotten.
- **Closing**: once closed, nothing more is handed out; `drained` says when the last worker is done.

Not promised: an order between keys of different namespaces, and that a key is handed out as often as it was added.
"""

from navarch.queue.metrics import QueueMetrics
from navarch.queue.options import LOW, NORMAL, RECONCILE_BACKOFF, QueueOptions
from navarch.queue.queue import WorkQueue
from navarch.queue.work import Work

__all__ = ["LOW", "NORMAL", "RECONCILE_BACKOFF", "QueueMetrics", "QueueOptions", "Work", "WorkQueue"]
