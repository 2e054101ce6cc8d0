"""Two examples for every command: the end of its --help."""

from __future__ import annotations

EXAMPLES = {
    "mpisim": ("mpisim run first.toml", "mpisim show logs"),
    "mpisim run": (
        "mpisim run first.toml --set run.rounds=100",
        "mpirun -n 4 mpisim run first.toml --set compressor.name=permk --out logs/permk.h5",
    ),
    "mpisim sweep": (
        "mpisim sweep grid.toml --jobs auto",
        "mpirun -n 8 mpisim sweep grid.toml --set 'sweep.run.seed=[1, 2, 3]'",
    ),
    "mpisim tune": (
        "mpisim tune grid.toml --multiples 0.5,1,2,4",
        "mpisim tune grid.toml --criterion mean-loss --jobs auto",
    ),
    "mpisim theory": (
        "mpisim theory first.toml",
        "mpisim theory first.toml --set compressor.k=1 --epsilon 1e-4",
    ),
    "mpisim show": ("mpisim show logs/marina.h5", "mpisim show logs --target grad_norm_sq=1e-3"),
    "mpisim plot": (
        "mpisim plot logs -o curves.png --x seconds",
        "mpisim plot logs -o report.html --network 10mbit,20ms",
    ),
    "mpisim fleet": (
        "mpisim fleet logs --fleet mlab:US --target grad_norm_sq=1e-3",
        "mpisim fleet logs/marina.h5 --fleet 10mbit/50mbit,20ms --draws 100",
    ),
    "mpisim export": (
        "mpisim export logs --out rows.csv",
        "mpisim export logs/marina.h5 --parquet",
    ),
    "mpisim verify": ("mpisim verify logs/marina.h5", "mpisim verify logs/marina.h5 --rerun"),
    "mpisim study": ("mpisim study run/permk", "mpisim study run/permk fig1 --scale quick"),
    "mpisim artifact": ("mpisim artifact mystudy", "mpisim artifact mystudy -o mystudy-1.0.zip"),
    "mpisim new": ("mpisim new compressor window", "mpisim new study mystudy"),
    "mpisim new compressor": (
        "mpisim new compressor window",
        "mpisim new compressor window --folder plugins",
    ),
    "mpisim new estimator": (
        "mpisim new estimator lazy",
        "mpisim new estimator lazy --folder plugins",
    ),
    "mpisim new method": (
        "mpisim new method mine --like scaffold",
        "mpisim new method mine --folder plugins",
    ),
    "mpisim new problem": (
        "mpisim new problem ridge",
        "mpisim new problem ridge --folder plugins",
    ),
    "mpisim new metric": (
        "mpisim new metric furthest",
        "mpisim new metric furthest --folder plugins",
    ),
    "mpisim new job": ("mpisim new job", "mpisim new job night.sbatch"),
    "mpisim new study": ("mpisim new study mystudy", "mpisim new study ../papers/mystudy"),
    "mpisim check": ("mpisim check window.py", "mpisim check my_package window.py"),
    "mpisim card": ("mpisim card natural", "mpisim card randk --set compressor.k=10 --d 100000"),
    "mpisim methods": ("mpisim methods", "mpisim methods marina"),
    "mpisim compressors": ("mpisim compressors", "mpisim compressors randk --plugin window.py"),
    "mpisim problems": ("mpisim problems", "mpisim problems logistic"),
    "mpisim data": ("mpisim data", "mpisim data fetch a9a"),
    "mpisim data list": ("mpisim data list", "mpisim data"),
    "mpisim data info": ("mpisim data info a9a", "mpisim data info mine.svm"),
    "mpisim data fetch": ("mpisim data fetch a9a", "mpisim data fetch mushrooms w8a"),
    "mpisim data sample": ("mpisim data sample", "mpisim data sample small.svm"),
    "mpisim data convert": (
        "mpisim data convert table.csv mine.svm --label 1",
        "mpisim data convert old.svm mine.svm --zero-based",
    ),
}
