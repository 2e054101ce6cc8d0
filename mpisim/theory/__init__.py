"""Constants of problems and compressors, and the theorems' step sizes."""
