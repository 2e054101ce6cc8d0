"""Messages, and the bytes they are on the wire."""
