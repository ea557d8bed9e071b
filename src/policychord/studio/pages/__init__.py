"""The pages of the studio. One more is a file like these, and its name here."""

from .base import Page
from .choices import CHOICES
from .flight import FLIGHT
from .flock import FLOCK
from .gate import GATE
from .policies import POLICIES

PAGES: dict[str, Page] = {page.name: page for page in (GATE, POLICIES, FLOCK, CHOICES, FLIGHT)}
