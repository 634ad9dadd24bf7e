"""Which faults of a device counts find in themselves: faults are injected into a pretended one."""
