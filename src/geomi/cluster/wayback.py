"""pywb in a process of its own: `python -m geomi.cluster.wayback BIND PORT` in a directory with a
config.yaml. The only file that names pywb. Shell.

Says its address on standard output once it listens, and ends when standard input does: so it never
outlives who started it.
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    from gevent.monkey import patch_all  # before anything that opens sockets

    patch_all()
    import gevent
    from pywb.apps.frontendapp import FrontEndApp
    from pywb.utils.geventserver import GeventServer, RequestURIWSGIHandler

    bind, port = sys.argv[1], int(sys.argv[2])
    server = GeventServer(
        FrontEndApp("config.yaml"), port=port, hostname=bind, handler_class=RequestURIWSGIHandler
    )
    print(f"http://[{bind}]:{server.port}" if ":" in bind else f"http://{bind}:{server.port}")
    sys.stdout.flush()
    # Nobody reads what it says from now on: a pipe that is full would stop it, a file would grow.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    # In a thread of its own: a file or a terminal as standard input cannot be waited for otherwise.
    while gevent.get_hub().threadpool.apply(os.read, (0, 1)):
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
