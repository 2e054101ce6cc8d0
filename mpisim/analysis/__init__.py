"""Plots and tables from logs alone."""
