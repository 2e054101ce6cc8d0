from .clock import Clock as Clock
from .ledger import Ledger as Ledger
from .network import Network as Network
from .network import Upload as Upload
from .star import Star as Star
