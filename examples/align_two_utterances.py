"""Align two utterances of the Japanese Vowels data and draw the path."""

import argparse
import os
from pathlib import Path

from aeon.datasets import load_japanese_vowels

import slts
from slts.extras import import_extra
from slts.plots import plot_alignment


def main() -> None:
    """Print similarity and path; write a picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="index of the first utterance")
    parser.add_argument("--second", type=int, default=1, help="index of the second utterance")
    parser.add_argument("--objective", choices=["affinity", "cost"], default="cost")
    parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder to write to")
    options = parser.parse_args()

    X, speakers = load_japanese_vowels(split="train")
    if not (0 <= options.first < len(X) and 0 <= options.second < len(X)):
        parser.error(f"--first and --second must be between 0 and {len(X) - 1}")
    a, b = X[options.first], X[options.second]
    found = slts.align(a, b, objective=options.objective)
    print(f"{slts.as_series(X)!r}: Japanese Vowels, training part")
    for name, k, x in (("a", options.first, a), ("b", options.second, b)):
        print(f"{name}: utterance {k}, speaker {speakers[k]}, {x.shape[1]} steps")
    print(f"similarity {found.similarity:.4f}, path of {found.length} steps:")
    print(" ".join(f"({i},{j})" for i, j in found.path))

    import_extra("matplotlib", "plots").use("agg")
    ax = plot_alignment(a, b, alignment=found)
    options.out.mkdir(parents=True, exist_ok=True)
    picture = options.out / "alignment.png"
    unfinished = picture.with_suffix(".tmp.png")
    ax.figure.savefig(unfinished, dpi=150, bbox_inches="tight")
    os.replace(unfinished, picture)
    print(f"picture: {picture}")


if __name__ == "__main__":
    main()
