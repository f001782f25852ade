"""Model files: one file per fitted classifier, with numbers and names only and no code.

model_file.py  save, load, describe; the classifiers and dataclasses that files may contain
codec.py       values as JSON and named arrays, checked against annotations; the bytes of a file
"""

from slts.persistence.model_file import describe, load, save

__all__ = ["describe", "load", "save"]
