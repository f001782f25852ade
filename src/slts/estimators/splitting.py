from slts.training.splits import make_splits as _m


def make_splits(cv, codes, random_state=0):
    import numpy as np

    return _m(
        cv,
        codes,
        np.random.RandomState(random_state).randint(0, 2**31, len(codes)).astype(np.uint64),
        name="cv",
        classes=np.unique(codes),
    )
