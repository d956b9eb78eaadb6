"""A forked agent that waits for its orders, with as much of `subprocess.Popen` as engines use."""

from __future__ import annotations

import os
import resource
import select
import signal
import subprocess
import sys
import traceback
from typing import NoReturn

#: What tells an agent that its standard input is a pipe from its supervisor.
SUPERVISED = {"GEOMI_SUPERVISED": "1"}


class Forked:
    """A child of this process. It ends without a word if its standard input is closed."""

    def __init__(self) -> None:
        from geomi.cluster import shell  # noqa: F401 - once here, instead of in every agent

        theirs, ours = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self._code: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            _be_an_agent(theirs)
        os.close(theirs)
        os.set_inheritable(ours, False)
        self.stdin = os.fdopen(ours, "wb", 0)
        self._handle = os.pidfd_open(self.pid)

    def poll(self) -> int | None:
        if self._code is None and os.waitid(os.P_PIDFD, self._handle, _PEEK) is not None:
            self.wait()
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        if self._code is None:
            if not select.select([self._handle], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("agent", timeout or 0.0)
            _, status = os.waitpid(self.pid, 0)
            self._code = os.waitstatus_to_exitcode(status)
            os.close(self._handle)
        return self._code

    def send_signal(self, number: int) -> None:
        if self._code is None:
            signal.pidfd_send_signal(self._handle, number)


_PEEK = os.WEXITED | os.WNOHANG | os.WNOWAIT


def _be_an_agent(stdin: int) -> NoReturn:
    """From here on this is another process: nothing of the supervisor may be used or closed."""
    code = 4
    try:
        from geomi.cluster.__main__ import main

        os.setsid()  # Ctrl-C comes to the supervisor alone
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        os.dup2(stdin, 0)
        os.closerange(3, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        sys.stdin = os.fdopen(0, closefd=False)  # nothing read by the supervisor is in it
        os.environ.update(SUPERVISED)
        code = main()
    except BaseException:  # the border of the process
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
