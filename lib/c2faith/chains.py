"""Public names of `c2faith.dataset.chains`."""

from c2faith.dataset.chains import Chain, load_chains

__all__ = ["Chain", "load_chains"]
