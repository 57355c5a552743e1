"""The blocking face: a store, its cells, runs and transactions, and queues. `holdfast` exports it."""
