"""Neural networks in PyTorch: data, models, gradients. Only the problem ``torch`` imports it."""
