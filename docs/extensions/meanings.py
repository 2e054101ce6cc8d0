"""What the keys of an experiment file mean, where the docstrings of their classes do not say it.

MEANINGS[NAME][KEY], with the name of a problem, method half or compressor, or of a table. A meaning
for all names of a table is under the table's.
"""

LEVELS = {"codec": 'how levels are encoded: "elias" (also "paper"), "e1" or "entropy"'}

CLIENTS = {
    "local_steps": "K, the steps of a client in a round",
    "server_stepsize": "eta_g, of the server's step; 1 averages the clients' points",
    "batch": "samples of a local gradient, or a share of m, drawn anew in each step, without"
    " replacement; full gradients unless given",
    "participants": "r, clients of a round, drawn without replacement; all unless given",
}

HESSIANS = {
    "hessian": "C, of vectors with the d (d + 1) / 2 numbers of a triangle",
    "option": '"A" raises the eigenvalues of H^k to at least mu, "B" adds l^k',
    "alpha": 'step size of the Hessians; "theory" is 1 / (1 + omega) of an unbiased C, else'
    " 1 - sqrt(1 - alpha)",
    "regularisation": 'mu of option "A"',
}

ADAPTIVE = {"nu": "keeps the denominator of the step above 0"}

MEANINGS: dict[str, dict[str, str]] = {
    "problem": {
        "data": "a name (`mpisim data list`), or the path of a file: LibSVM, CSV, .npz or parquet"
        " (plain, .gz, .bz2, .xz)",
        "label": "the column of the labels in CSV and parquet, by its name, or by its number from"
        " 1; the first one unless given",
        "test": "a test set, named as in `data`: the log gets columns of accuracy and test loss",
        "workers": "n, dealt to the ranks in contiguous blocks; one for each worker rank unless"
        " given",
        "split": "how rows are dealt to workers: in their order, shuffled by `run.seed`, sorted"
        ' by norm, all rows to every worker ("homogeneous"), with shares of the labels drawn from'
        ' a Dirichlet distribution ("dirichlet": Hsu et al., 2019), in pieces of the rows'
        ' sorted by label ("pathological": McMahan et al., 2017), partly at random and partly'
        ' sorted by label ("partly-shuffled"), or to the clients that own them ("natural")',
        "alpha": "of a Dirichlet split: the shares of a worker's labels are drawn from"
        " Dir(alpha q), q those of all rows; the smaller, the more workers differ",
        "pieces": "of each worker in a pathological split; 2 unless given, as in FedAvg's paper",
        "similarity": "of a partly shuffled split: the share of each worker's rows that are drawn"
        " from all rows; the others are dealt sorted by label",
        "client_ids": "of a natural split: a text file (plain, .gz, .bz2 or .xz) with a line for"
        " each row of the data, which names its client; n is the number of clients",
        "remainder": 'what happens to the last N mod n rows: "drop" leaves them out,'
        ' "spread" gives them to the first workers',
        "bias": "adds a leading feature 1",
        "scale": "divides each row, or each feature, by its largest absolute value",
        "l2": "adds (l2 / 2) |x|^2",
        "any_content": "true accepts a file whose content differs from the one registered"
        " under its name; otherwise that is an error",
    },
    "autoencoder": {
        "data": "an image set (`mpisim data list`), the path of an idx file, or"
        ' "sample", which is generated',
    },
    "logistic-nonconvex-reg": {
        "lambda": "weight of sum_j x_j^2 / (1 + x_j^2)",
    },
    "least-squares": {
        "reduction": "mean or sum over a worker's rows",
    },
    "torch": {
        "model": "resnet18, vgg16, wrn-16-4 (for 32 x 32 pixels), small-cnn, linear",
        "width": "multiplies the channels of every layer; 1 is the paper's network",
        "data": "cifar10, cifar100, mnist, cifar10-part (its first 4,000 and 1,000 images),"
        " generated, torchvision:NAME, or datasets:NAME",
        "split": "how rows are dealt to workers, as in `logistic`, which also has other splits",
        "samples": "uses only this many training samples, and at most this many test samples; 0:"
        " all",
        "log_samples": "computes the rows of the log on this many training samples, an equal"
        " share of each worker's, and on at most this many test samples; 0: on"
        " all. The method is not affected",
        "pool": "averages images over squares of this many pixels a side",
        "chunk": "the most samples that go through the model together",
        "augment": "shifts the images of minibatches by up to 4 pixels and mirrors them, at random",
        "tf32": "lets an NVIDIA accelerator round the float32 inputs of products and"
        " convolutions to TF32 (10 bits of mantissa)",
        "device": '"auto" uses an accelerator if there is one',
    },
    "method": {
        "stepsize": 'a number, "theory", { theory = 4.0 } for a multiple of the theory step, or {'
        ' theory = 1.0, condition = "PL" } for the theorem under the Polyak-Lojasiewicz'
        " condition",
        "smoothness": 'the constants behind a theory step: "sharp" (default), the best that'
        ' are known, or "published", those of the papers\' code',
        "estimator": "replaces the estimator of the pair; any pair runs",
        "optimizer": "replaces the optimizer of the pair, for instance by `adam`",
        "schedule": "{ at = [0.5, 0.75], factor = 0.1 } multiplies the step size by `factor` (0.1)"
        " at these rounds, or shares of `run.rounds`",
        "weight_decay": "adds this multiple of x^k to g^k in the step, uncompressed, as"
        " CD-Adam's code does",
        "momentum": "weight of the last step",
        "beta1": "weight of the last first moment",
        "beta2": "weight of the last second moment",
        "warmup": "rounds, or a share of `run.rounds`, before the second moment is frozen",
    },
    "adam": ADAPTIVE,
    "amsgrad": ADAPTIVE,
    "1bit-adam": ADAPTIVE,
    "ef21-sgdm": {
        "batch": "samples of a gradient, or a share of m, drawn in every round, without"
        " replacement; full gradients unless given",
        "direction": '"both": the server also compresses, as in EF21',
        "start": "how g_i^0 is sent, as in EF21",
    },
    "compressed-scaffnew": {
        "p": "the probability that the coin shows 1",
        "batch": "samples of a gradient, or a share of m; full gradients unless given",
    },
    "byz-dasha-page": {
        "a": 'momentum; "theory" is 1 / (2 omega + 1)',
        "start": 'g_i^0 = h_i^0 ("dense"), or 0 ("zero")',
        "batch": "B, a number of samples or a share of m, drawn with replacement",
        "p": 'of a round with full gradients; "theory" is B / (m + B)',
    },
    "fednl-ls": HESSIANS,
    "fednl-pp": HESSIANS,
    "tamuna": {
        "p": "the probability that the coin shows 1",
        "batch": "samples of a gradient, or a share of m; full gradients unless given",
    },
    "vr-diana": {
        "alpha": 'shift step size; "theory" is 1 / (1 + omega)',
    },
    "fedprox": CLIENTS,
    "scaffold": CLIENTS,
    "bernoulli": {
        "p": "the probability with which a worker sends its vector",
    },
    "rank-k": {
        "k": "the rank of the approximation",
    },
    "block-quant": LEVELS,
    "block-quant-plus": LEVELS,
    "qsgd": LEVELS,
    "sparse-dithering": LEVELS,
    "quant-plus": LEVELS,
    "stop": {
        "bits_up": "a worker's payload bits, on average, are at least the number",
        "paper_bits_up": "a worker's paper bits, on average, are at least the number",
        "oracle_calls": "a worker's gradients of single samples, on average, are at least the"
        " number",
        "grad_norm_sq": "|grad f(x^k)|^2 is at most the number",
        "loss": "f(x^k) is at most the number",
        "suboptimality": "f(x^k) - f(x*) is at most the number; needs `reference = true`",
        "distance_sq": "|x^k - x*|^2 is at most the number; needs `reference = true`",
        "divergence": "|grad f(x^k)|^2 is more than this number (above 1) times |grad"
        " f(x^0)|^2. `mpisim tune` leaves such a step out, like one that"
        " diverged",
    },
}
