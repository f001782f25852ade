"""Model files: one file per fitted classifier, with numbers and names only and no code.

model_file.py  save, load, describe
classes.py     the classifiers and dataclasses that files may contain
codec.py       values as JSON and named arrays; fields checked against their annotations
container.py   JSON and arrays as the bytes of a safetensors file with a digest
"""

from slts.persistence.model_file import describe, load, save

__all__ = ["describe", "load", "save"]
