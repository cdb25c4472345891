"""The workloads of the scheduler's benchmark, and the cluster in one process on which they run."""
