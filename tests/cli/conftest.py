from .command import here

__all__ = ["here"]
