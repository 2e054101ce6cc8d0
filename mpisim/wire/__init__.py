"""Messages of workers and server, and their bytes on the wire.

A `Message` holds what a block of workers sends in one round. Its `Form` is what server and worker
both know before; it decodes the bytes. A compressor says which form its messages have.
"""

from mpisim.wire.base import Form, Message, Packed, Precision
from mpisim.wire.composed import Composed, ComposedForm
from mpisim.wire.dense import Dense, DenseForm
from mpisim.wire.explicit import Explicit, ExplicitForm
from mpisim.wire.exponents import Exponents, ExponentsForm
from mpisim.wire.factors import Factors, FactorsForm
from mpisim.wire.levels import Levels, LevelsForm
from mpisim.wire.signs import Signs, SignsForm
from mpisim.wire.sparse import Seeded, SeededForm

__all__ = [
    "Composed",
    "ComposedForm",
    "Dense",
    "DenseForm",
    "Explicit",
    "ExplicitForm",
    "Exponents",
    "ExponentsForm",
    "Factors",
    "FactorsForm",
    "Form",
    "Levels",
    "LevelsForm",
    "Message",
    "Packed",
    "Precision",
    "Seeded",
    "SeededForm",
    "Signs",
    "SignsForm",
]
