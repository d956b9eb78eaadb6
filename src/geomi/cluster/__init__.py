"""Where the stages meet: the agent (a step machine and its shells), the coordinator, the engine.

Takes a collection and its settings. Gives a crawl.
"""
