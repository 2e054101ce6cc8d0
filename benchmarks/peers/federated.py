"""GD and FedAvg in pfl, Apple's simulator, in an environment with pfl, PyTorch and NumPy alone.

python federated.py DATA.npz BLOCK BLOCKS: reads rows (n, m, d), labels (n, m), l2, gamma, and the
steps and the batch of a client. Prints as JSON the iterate after BLOCK rounds, the CPU seconds of a
round in each of BLOCKS later blocks, and versions.
"""

from __future__ import annotations

import json
import sys
from time import process_time


def main(path: str, block: int, blocks: int) -> None:
    """Train, and time all blocks but the first."""
    import numpy as np
    import pfl
    import torch
    from pfl.aggregate.simulate import SimulatedBackend
    from pfl.algorithm.base import NNAlgorithmParams
    from pfl.algorithm.federated_averaging import FederatedAveraging
    from pfl.callback.base import TrainingProcessCallback
    from pfl.data.dataset import Dataset
    from pfl.data.federated_dataset import FederatedDataset
    from pfl.data.sampling import get_user_sampler
    from pfl.hyperparam import NNTrainHyperParams
    from pfl.metrics import Metrics
    from pfl.model.pytorch import PyTorchModel

    torch.set_num_threads(1)
    data = np.load(path)
    rows, labels = (torch.tensor(data[name], dtype=torch.float32) for name in ("rows", "labels"))
    n, l2, steps, batch = len(rows), float(data["l2"]), int(data["steps"]), int(data["batch"])

    class Logistic(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.x = torch.nn.Parameter(torch.zeros(rows.shape[2]))

        def loss(self, a, y):
            return torch.nn.functional.softplus(-y * (a @ self.x)).mean() + l2 / 2 * (
                self.x @ self.x
            )

        def metrics(self, a, y):
            return {}

    class Times(TrainingProcessCallback):
        def __init__(self):
            self.ends, self.x = [], None

        def after_central_iteration(self, aggregate_metrics, model, *, central_iteration):
            if (central_iteration + 1) % block == 0:
                self.ends.append(process_time())
                if self.x is None:
                    self.x = module.x.detach().tolist()
            return False, Metrics()

    users = [Dataset(raw_data=[rows[i], labels[i]]) for i in range(n)]
    sampler = get_user_sampler("minimize_reuse", list(range(n)))
    clients = FederatedDataset(lambda user: users[user], sampler)
    module, times = Logistic(), Times()
    model = PyTorchModel(module, torch.optim.SGD, torch.optim.SGD(module.parameters(), lr=1.0))
    full = batch >= rows.shape[1]  # then a step is an epoch
    training = NNTrainHyperParams(
        local_batch_size=None if full else batch,
        local_num_epochs=steps if full else None,
        local_num_steps=None if full else steps,
        local_learning_rate=float(data["gamma"]),
    )
    rounds = block * (blocks + 1)
    FederatedAveraging().run(
        algorithm_params=NNAlgorithmParams(
            central_num_iterations=rounds,
            evaluation_frequency=rounds + 1,
            train_cohort_size=n,
            val_cohort_size=0,
        ),
        backend=SimulatedBackend(training_data=clients, val_data=clients),
        model=model,
        model_train_params=training,
        callbacks=[times],
    )
    seconds = (np.diff(times.ends) / block).tolist()
    versions = f"pfl {pfl.__version__}, PyTorch {torch.__version__}, NumPy {np.__version__}"
    print(json.dumps({"x": times.x, "seconds": seconds, "versions": versions}))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
