"""Container runtimes behind one contract: `process`, `crun`, `cri`, `simulated`."""
