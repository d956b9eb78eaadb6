"""An agent process: `python -m geomi.cluster`, started by the engine with its orders on stdin."""

from __future__ import annotations

import gc
import sys
import traceback

import msgspec

from geomi import config
from geomi.cluster.collection import Collection
from geomi.cluster.engine import Orders
from geomi.cluster.shell import Shell
from geomi.errors import GeomiError, OperatorError


def main() -> int:
    line = sys.stdin.buffer.readline()
    if not line:
        return 0  # made ready, and not needed
    orders = msgspec.json.decode(line, type=Orders)
    shell = Shell(
        Collection(orders.collection),
        config.restore(orders.settings),
        agent=orders.agent,
        run=orders.run,
    )
    # What is there by now stays; of what comes little is in cycles (3 % of the CPU of a page).
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    try:
        shell.run()
    except OperatorError as error:
        print(f"geomi: {orders.agent}: {error}", file=sys.stderr)
        return 2
    except GeomiError as error:
        print(f"geomi: {orders.agent}: {error}", file=sys.stderr)
        return 3
    except Exception:  # the border of the process: say it, the supervisor acts
        traceback.print_exc()
        return 4
    return 0


if __name__ == "__main__":
    sys.exit(main())
