"""Model files: one file per fitted classifier, with numbers and names only and no code.

model_file.py    save, load, describe
declarations.py  what is stored for each classifier, and how it must fit together
schema.py        the vocabulary of declarations: kinds of values, named sizes, structures
codec.py         values as JSON and named tensors, for a closed set of types
container.py     strict JSON and tensors as the bytes of a hashed safetensors file
"""

from slts.persistence.model_file import describe, load, save

__all__ = ["describe", "load", "save"]
