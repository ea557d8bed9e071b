"""The rooms of the studio. One more is a file like these, and its name here."""

from .base import Room
from .choices import CHOICES
from .flight import FLIGHT
from .flock import FLOCK
from .gate import GATE

ROOMS: dict[str, Room] = {room.name: room for room in (GATE, FLOCK, CHOICES, FLIGHT)}
