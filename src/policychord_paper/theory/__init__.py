"""The theory study: what the paper proves, checked by measurement."""
