"""A local GitHub and fictional downstreams: the demo's outside world, and the tests' stand-in for it.

Top layer. It has no models and imports nothing of the hub: all it does reaches the hub through the front door.
"""
