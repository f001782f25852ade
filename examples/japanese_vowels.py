"""Tell nine speakers apart by one vowel: train, compare with the paper, look at an alignment."""

import argparse
import os
import time
from pathlib import Path

import numpy as np

import slts
from slts.extras import import_extra
from slts.plots import plot_alignment

PAPER = {"1NN": 93.8, "BBS": 97.1, "SLTS": 97.1}


def main() -> None:
    """Print accuracies and what the model looks at; write a picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder to write to")
    parser.add_argument("--seed", type=int, default=0, help="seed of landmarks and tuning")
    options = parser.parse_args()

    X, y = slts.datasets.load("japanese_vowels", "train")
    X_test, y_test = slts.datasets.load("japanese_vowels", "test")
    print(f"train: {X!r}\ntest:  {X_test!r}\n")
    models = {
        "1NN": slts.OneNNClassifier(n_jobs=-1),
        "BBS": slts.BBSClassifierCV(0.5, random_state=options.seed, n_jobs=-1),
        "SLTS": slts.SLTSClassifierCV(0.5, random_state=options.seed, n_jobs=-1),
    }
    print(f"{'method':<8}{'accuracy %':>11}{'paper':>8}{'landmarks':>11}{'seconds':>9}")
    for name, model in models.items():
        begin = time.perf_counter()
        accuracy = 100 * model.fit(X, y).score(X_test, y_test)
        seconds = time.perf_counter() - begin
        coef = getattr(model, "coef_", None)
        used = len(X) if coef is None else int(np.count_nonzero(coef.any(axis=0)))
        print(f"{name:<8}{accuracy:>11.2f}{PAPER[name]:>8.1f}{used:>11}{seconds:>9.1f}")

    model = models["SLTS"]
    print(f"\nchosen on held-out training series: {model.best_params_}")
    speaker = int(np.argmax(model.decision_function(X_test[:1])))
    landmark = int(np.argmax(np.abs(model.coef_[speaker])))
    print(
        f"the first test utterance is said to be of speaker {model.classes_[speaker]} "
        f"(it is of speaker {y_test[0]}); here it is beside the landmark that weighs most"
    )

    import_extra("matplotlib", "plots").use("agg")
    ax = plot_alignment(X_test[0], model.landmarks_[landmark], objective="cost")
    options.out.mkdir(parents=True, exist_ok=True)
    picture = options.out / "alignment.png"
    unfinished = picture.with_suffix(".tmp.png")
    ax.figure.savefig(unfinished, dpi=150, bbox_inches="tight")
    os.replace(unfinished, picture)
    print(f"picture: {picture}")


if __name__ == "__main__":
    main()
