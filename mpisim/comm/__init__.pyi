from .clock import Clock as Clock
from .ledger import Ledger as Ledger
from .star import Star as Star
from .upload import Upload as Upload
