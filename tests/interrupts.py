"""Programs that Ctrl-C ends."""

import signal


def heed_interrupts() -> None:
    """Lets SIGINT end a new process: `preexec_fn=heed_interrupts`.

    A shell starts its background jobs, such as a run of these tests, with SIGINT ignored, and children inherit that.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
