"""One contract, every implementation."""
