"""`python -m policychord` is the `policychord` command."""

from .cli import main

main()
