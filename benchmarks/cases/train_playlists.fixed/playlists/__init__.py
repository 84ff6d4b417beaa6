from .data import load_plays
