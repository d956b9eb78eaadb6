"""The small world: a seeded synthetic web, without sockets or served on loopback with its own DNS.

Takes a seed number and a few parameters (`Params`).
Gives answers, names and addresses, what changed when, and the truth about what is reachable.
"""

from geomi.world.model import Answer, Params, World
from geomi.world.running import Running, serve
from geomi.world.truth import Expected, reachable

__all__ = ["Answer", "Expected", "Params", "Running", "World", "reachable", "serve"]
