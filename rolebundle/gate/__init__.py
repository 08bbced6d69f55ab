"""The completion gate: whether the work of a contract is done."""
