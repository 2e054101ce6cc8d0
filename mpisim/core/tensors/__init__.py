"""Kernels for PyTorch tensors on a device, whose twins for NumPy arrays are compiled by Numba.

Only what already holds a tensor imports these modules, which import PyTorch.
"""
