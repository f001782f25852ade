"""Model files: one file per fitted classifier, numbers and names only, nothing to execute.

model_file.py   save, load, describe
models.py       which classifiers can be saved, and what each holds
consistency.py  how the parts of each must fit together
kinds.py        what a value may be
records.py      dataclasses that files may hold
codec.py        values as JSON and named tensors, through a closed set of types
container.py    JSON and tensors as the bytes of a safetensors file, with a hash over all of them
strict_json.py  JSON without duplicate keys, NaN, deep nesting or endless numbers
"""

from slts.persistence.model_file import describe, load, save

__all__ = ["describe", "load", "save"]
