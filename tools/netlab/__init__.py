"""A network that is really there: hosts in network namespaces, links shaped by the kernel."""
