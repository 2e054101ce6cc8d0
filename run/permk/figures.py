"""Permutation compressors for provably faster distributed nonconvex optimization."""

from functools import partial
from typing import Any

from mpisim.analysis.study import Figure, Grid, Measurement
from mpisim.runs.log.reader import Log

from . import autoencoder_claims as claimed
from . import groups, mg, quadratic, table5, topk
from .autoencoder import BITS, COMPRESSORS, SENT, all_steps, best_step, draw, unregularised
from .quadratic_claims import against_randk, against_topk, best_steps, table_4, table_6, under_pl

MULTIPLES = [2**i for i in range(20)]  # the published runs'
MARINA, EF21 = '{ name = "marina", theorem = "permk" }', '{ name = "ef21" }'


def pairs(n: int, k: int, bits: float) -> list[str]:
    """The three methods on n workers, K = k, with a budget of ``bits`` for each worker."""
    below = [0.5, *MULTIPLES]  # PermK's best step is 1 at n = 10,000 with noise 0.8
    compressors = (
        (MARINA, f'{{ name = "randk", k = {k} }}', below),
        (MARINA, '{ name = "permk" }', below),
        (EF21, f'{{ name = "topk", k = {k} }}', MULTIPLES),
    )
    return [
        f"{{ problem.workers = {n}, method = {method}, compressor = {compressor},"
        f" run.stop.paper_bits_up = {bits}, multiples = {steps} }}"
        for method, compressor, steps in compressors
    ]


PAIRS = pairs(10, 100, 125e6) + pairs(1000, 1, 1.28e6) + pairs(10_000, 1, 640e3)
LONG = [f"sweep.pair=[{', '.join(PAIRS)}]", "run.log_every=100", "sweep.run.seed=[1, 2, 3, 4, 5]"]
PL = ["problem.lambda=1e-4", "method.stepsize.condition=PL"]  # the steps of Theorems 5 and 7
PL += ["title=PermK paper, Figures 3, 5 and 7", "sweep.folder=logs/permk-fig3"]
QUADRATIC = Grid("quadratic", {"quick": [], "paper": LONG})
QUADRATIC_PL = Grid("quadratic", {"quick": PL, "paper": [*PL, *LONG]})
NOISES = "sweep.problem.noise=[0.0, 0.05, 0.1, 0.2, 0.8]"
TABLE4 = Grid("table4", {"quick": [], "paper": [NOISES]})
THEOREM_5 = 'method.stepsize={ theory = 1.0, condition = "PL" }'
PL_THEORY = ["problem.lambda=1e-4", THEOREM_5, "title=PermK paper, Table 6"]
PL_THEORY += ["sweep.folder=logs/permk-table6"]
TABLE6 = Grid("table4", {"quick": PL_THEORY, "paper": [*PL_THEORY, NOISES]})

# As in the paper: all of MNIST, n = 1000, d = 25,088, K = 26, and its code's steps around the best.
STEPS = (
    '{method = {name = "marina"}, compressor = {name = "permk"}, steps = [0.5, 1, 2, 4, 8, 16]}',
    '{method = {name = "marina"}, compressor = {name = "randk", k = 26},'
    " steps = [0.125, 0.25, 0.5, 1, 2, 4, 8]}",
    '{method = {name = "ef21"}, compressor = {name = "topk", k = 26},'
    " steps = [0.25, 0.5, 1, 2, 4, 8]}",
)
STOP = (
    "run.stop={ paper_bits_up = 4.13e6, divergence = 1e4 }"  # 4000 rounds of EF21, 2000 of MARINA
)
ALL_OF_MNIST = ["problem.workers=1000", "problem.images=60000", "problem.code_size=16"]
ALL_OF_MNIST += ["run.rounds=4000", STOP, f"sweep.pair=[{', '.join(STEPS)}]"]
ONE = "sweep.run.seed=[1]"  # of Figures 8 to 10, whose runs add up to 12 hours. Figure 2 has three.
THREE = "sweep.run.seed=[1, 2, 3]"
GROUPS, TOPK = Grid("groups"), Grid("topk")
MNIST = Grid("autoencoder", {"quick": [], "paper": [*ALL_OF_MNIST, ONE]})
PUBLISHED_STEPS = [2.0**i / 784 for i in range(-5, 4)]  # 784 features
BARE = "sweep.problem.lambda=[0.0]"
MNIST_BARE = Grid("autoencoder", {"quick": [BARE], "paper": [*ALL_OF_MNIST, THREE, BARE]})
LONG_RUNS = [  # the table's step is that of Figure 2, tuned over its 4000 rounds
    f"sweep.method.stepsize={PUBLISHED_STEPS}",
    "sweep.rows=[{ run = { rounds = 10, log_every = 10 } },"
    " { run = { rounds = 4000, log_every = 100 } }]",
]
TABLE5 = Grid("table5", {"quick": [], "paper": LONG_RUNS})
SPLITS = {"quick": 200, "paper": 2000}
MG = Measurement(f"{__package__}.measure_mg", "logs/permk-mg", SPLITS, mg.read)

# How many of the best steps of each compressor are shown.
theory = partial(quadratic.draw, {"randk": 1, "permk": 1})
best = partial(quadratic.draw, {"randk": 1, "permk": 1, "topk": 1})
with_randk = partial(quadratic.draw, {"randk": 3, "permk": 3})
with_topk = partial(quadratic.draw, {"topk": 3, "permk": 3})


def fig2(logs: list[Log]) -> Any:
    """Figure 8 without a regulariser."""
    return draw("PermK paper, Figure 2", best_step, COMPRESSORS, (BITS, SENT), unregularised(logs))


fig8 = partial(draw, "PermK paper, Figure 8", best_step, COMPRESSORS, (BITS, SENT))
fig9 = partial(draw, "PermK paper, Figure 9", all_steps, ("permk", "randk"), (BITS,))
fig10 = partial(draw, "PermK paper, Figure 10", all_steps, ("permk", "topk"), (BITS,))

against_randk_pl = partial(against_randk, table=6)
ON_QUADRATICS = "MARINA with RandK and PermK, EF21 with TopK on quadratic tasks"
BY_HOMOGENEITY = "PermK, RandK and TopK on the autoencoder by homogeneity"
OF_SPLITS = "L_+ and L_± of linear regression over random splits of mg"
FIGURES = [
    Figure("fig1", ON_QUADRATICS, QUADRATIC, best, best_steps),
    Figure("fig2", BY_HOMOGENEITY, MNIST_BARE, fig2, claimed.fig2),
    Figure("fig3", "Figure 1 with lambda = 1e-4", QUADRATIC_PL, best, under_pl),
    Figure("fig4", "RandK and PermK over step sizes", QUADRATIC, with_randk, against_randk),
    Figure("fig5", "Figure 4 with lambda = 1e-4", QUADRATIC_PL, with_randk, against_randk_pl),
    Figure("fig6", "TopK and PermK over step sizes", QUADRATIC, with_topk, against_topk),
    Figure("fig7", "Figure 6 with lambda = 1e-4", QUADRATIC_PL, with_topk, against_topk),
    Figure("fig8", "the autoencoder by the regulariser, too", MNIST, fig8, claimed.fig8),
    Figure("fig9", "RandK and PermK on the autoencoder by step", MNIST, fig9, claimed.fig9),
    Figure("fig10", "TopK and PermK on the autoencoder by step", MNIST, fig10, claimed.fig10),
    Figure("groups", "PermK in two groups with A and B", GROUPS, groups.draw, groups.claims),
    Figure("topk", "EF21 with TopK by K, up to K = d", TOPK, topk.draw, topk.claims),
    Figure("mg", OF_SPLITS, MG, mg.draw, mg.claims),
    Figure("table4", "RandK and PermK with the theory steps", TABLE4, theory, table_4),
    Figure("table6", "Table 4 under PL, with lambda = 1e-4", TABLE6, theory, table_6),
    Figure("table5", "the adaptive ratios of the autoencoder", TABLE5, table5.draw, table5.claims),
]
