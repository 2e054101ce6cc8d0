"""Messages of workers and server, and their bytes on the wire.

A `Message` holds what a block of workers sends in one round. Its `Form` is what server and worker
both know before; it decodes the bytes. A compressor says which form its messages have.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
