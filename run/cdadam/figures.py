"""Communication-compressed adaptive gradient method for distributed nonconvex optimization."""

from collections.abc import Collection
from functools import partial

from mpisim.analysis.curves import EPOCHS
from mpisim.analysis.study import Figure, Grid

from . import errors, fig11, logistic, pi, table2
from .equal_cost import BITS
from .images import FIG1, FIG3, LOOKS, RIVALS, Curves, over

CIFAR = ["problem.data=cifar10", "problem.samples=0", "problem.augment=true"]
INSTEAD = {"cifar10-part": "generated"}
PAPER_FILE = {"paper": "images-paper"}
BIG = ["problem.width=1.0", "problem.pool=1", "run.rounds=4882", "run.log_every=98"]
START = ["problem.workers=8", "method.batch=128", "run.rounds=490", "run.log_every=10"]
# The quick figures' networks: README.md says how they were found.
STANDS_IN = "ResNet-18 (quick: small-cnn)"
SMALL = ["problem.model=small-cnn", "problem.width=2.0", "problem.workers=4"]
SHORT = ["problem.workers=4", "run.rounds=1800", "sweep.run.seed=[1,2,3]"]
THIN = [*SHORT, "problem.width=0.25", "problem.pool=4"]
# The paper's networks, images and batch, on the quick figures' part of the data, for accelerators.
# TF32 is PyTorch's own default for convolutions.
WHOLE = ["problem.pool=1", "problem.augment=true", "problem.tf32=true", "method.batch=128"]
WHOLE += ["run.rounds=2000", "run.log_every=20", "sweep.run.seed=[1]"]
TABLE2 = ["problem.model=resnet18", "sweep.folder=logs/cdadam-table2", "run.ranks=all"]
TABLE2 += ["run.rounds=48", "run.columns=[]", "sweep.run.seed=[1,2,3,4,5]"]  # pi has its figure


def _trained(model: str, folder: str, methods: Collection[str], quick: list[str]) -> Grid:
    """The runs of a network, which figures share."""
    settings = [f"problem.model={model}", f"sweep.folder=logs/cdadam-{folder}"]
    scales = {"quick": [*settings, *quick], "whole": [*settings, *WHOLE], "paper": settings}
    return Grid("images", scales, PAPER_FILE, methods, INSTEAD)


def _images(name: str, title: str, runs: Grid, shown: Curves) -> Figure:
    return Figure(name, title, runs, shown.draw, shown.claims)


COMPRESSED = "cd-adam", *RIVALS
WITH_AMSGRAD = _trained("resnet18", "fig1", LOOKS, SMALL)
RESNET = _trained("resnet18", "fig1", COMPRESSED, SMALL)
VGG = _trained("vgg16", "fig7", COMPRESSED, [*SHORT, "problem.width=0.125"])
WIDE = _trained("wrn-16-4", "fig9", COMPRESSED, THIN)
# Seconds count, so each run has all ranks; a few rounds show what each takes and sends.
QUICK = [*TABLE2, "problem.width=0.125", "method.batch=32"]
TIMED = Grid("images", {"quick": QUICK, "paper": TABLE2}, PAPER_FILE, table2.METHODS, INSTEAD)
SIZES = Grid("fig11", {"quick": [], "paper": [*CIFAR, *BIG]}, instead=INSTEAD)
FOUR_SETS = ['sweep.problem.data=["phishing", "mushrooms", "a9a", "w8a"]']
LONG = [*FOUR_SETS, "run.rounds=10000", "run.log_every=10"]
LOGISTIC = Grid("logistic", {"quick": [], "paper": LONG})
ERRORS = Grid("errors", {"quick": [], "paper": ["run.rounds=10000"]})
PI = Grid("pi", {"quick": [], "paper": [*CIFAR, *START]}, instead=INSTEAD)

sign, top_1 = (partial(logistic.draw, compressor) for compressor in (logistic.SIGN, logistic.TOP_1))
FIGURES = [
    _images("fig1", f"{STANDS_IN}: bits of CD-Adam, AMSGrad, 1-bit Adam", WITH_AMSGRAD, FIG1),
    Figure("fig2", "four ways of compressing AMSGrad, scaled sign", LOGISTIC, sign, logistic.fig2),
    _images("fig3", "the same network: CD-Adam, EF21, 1-bit Adam", RESNET, FIG3),
    Figure("fig4", "the four ways of Figure 2 with Top-1", LOGISTIC, top_1, logistic.fig4),
    _images("fig5", f"{STANDS_IN} over bits, training and test", RESNET, over(BITS, 5)),
    _images("fig6", f"{STANDS_IN} over epochs, training and test", RESNET, over(EPOCHS, 6)),
    _images("fig7", "VGG-16 over bits", VGG, over(BITS, 7)),
    _images("fig8", "VGG-16 over epochs", VGG, over(EPOCHS, 8)),
    _images("fig9", "WideResNet-16-4 over bits", WIDE, over(BITS, 9)),
    _images("fig10", "WideResNet-16-4 over epochs", WIDE, over(EPOCHS, 10)),
    Figure("fig11", "the number of workers and the batch size", SIZES, fig11.draw, fig11.claims),
    Figure("errors", "compression errors and v", ERRORS, errors.draw, errors.claims),
    Figure("pi", "the measured pi of the scaled sign on ResNet-18", PI, pi.draw, pi.claims),
    Figure("table2", "seconds and bits of a round", TIMED, table2.draw, table2.claims),
]
