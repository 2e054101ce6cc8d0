"""Seconds of a fleet: what a run takes if each client has a link and a speed of its own."""
