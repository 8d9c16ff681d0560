"""Threads for functions that block."""

import subprocess
import sys
import threading
from concurrent.futures import wait

import pytest

from navarch._base.threads import ThreadPool

BOUND = 60.0


def test_results_and_errors_come_back() -> None:
    """Whatever kind of error it is."""
    pool = ThreadPool("test", 1)
    assert pool.submit(lambda: 7).result(BOUND) == 7
    with pytest.raises(SystemExit):
        pool.submit(sys.exit).result(BOUND)
    pool.close()


def test_no_more_run_at_once_than_there_are_threads() -> None:
    """The others wait, and can be cancelled while they do."""
    pool, release, begun = ThreadPool("test", 2), threading.Event(), threading.Semaphore(0)

    def work() -> bool:
        begun.release()
        return release.wait(BOUND)

    calls = [pool.submit(work) for _ in range(4)]
    assert begun.acquire(timeout=BOUND)
    assert begun.acquire(timeout=BOUND)
    assert [call.running() for call in calls] == [True, True, False, False]
    assert calls[3].cancel()
    release.set()
    pool.close()
    assert not wait(calls, BOUND).not_done
    assert [call.cancelled() for call in calls] == [False, False, False, True]


def test_thread_that_never_ends_does_not_keep_the_program() -> None:
    """It goes with it."""
    program = (
        "import threading; from navarch._base.threads import ThreadPool; begun = threading.Event();"
        "ThreadPool('test', 1).submit(lambda: (begun.set(), threading.Event().wait())); begun.wait(30); print('end')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=BOUND, check=True)
    assert done.stdout == b"end\n"
