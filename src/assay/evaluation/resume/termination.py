"""SIGTERM, with which Slurm, Kubernetes, torchrun and owners of spot machines end a process: counts are saved first."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

EXIT_CODE = 128 + signal.SIGTERM


class Termination:
    """A request to end this process, which becomes `SystemExit` with code 143 in the main thread.

    Attributes:
        requested: whether it came.
        must_wait: asked when it comes: whether something is done by halves; `check` is then called after it.
    """

    def __init__(self) -> None:
        self.requested = False
        self.must_wait: Callable[[], bool] = lambda: False
        self._process = os.getpid()

    def check(self) -> None:
        """Raise if the process is to end.

        Raises:
            SystemExit: with code 143.
        """
        if self.requested:
            raise SystemExit(EXIT_CODE)

    def handle(self, *_: object) -> None:
        """The signal came; a second one changes nothing, as the first is being obeyed."""
        if os.getpid() != self._process:  # a worker that was forked while this was the handler
            os._exit(EXIT_CODE)
        if not self.requested:
            self.requested = True
            if not self.must_wait():
                self.check()


@contextmanager
def saves_on_sigterm(wanted: bool = True) -> Iterator[Termination]:
    """Let SIGTERM raise `SystemExit` inside, so that what was counted is saved on the way out.

    Only in the main thread, and only where there is no handler yet: one that raises has the counts saved as well, and
    with one that returns the run goes on.

    Args:
        wanted: False changes nothing.
    """
    termination = Termination()
    in_main_thread = threading.current_thread() is threading.main_thread()
    is_handled = wanted and in_main_thread and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if is_handled:
        signal.signal(signal.SIGTERM, termination.handle)
    try:
        yield termination
    finally:
        if is_handled:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        termination.must_wait = lambda: False  # it held what ran, whose temporary files end with it
