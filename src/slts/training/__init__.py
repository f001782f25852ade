"""Learning, one function for each family of classifiers, that reads from top to bottom.

training_set.py    distinct series in the order of their keys: arrays, or the sample of a scan
sampling.py        the sample of a scan, drawn in one pass
scans.py           what is accepted as a scan, which workers read it, its batches
options.py         parameters that fits share
landmarks.py       which series to compare with
held_out.py        splits, and the choice of parameters by held-out accuracy
local_fit.py       the local classifier; feature_blocks.py standardises its features
landmark_fit.py    SLTS and BBS; alignments.py solves their problems
neighbour_fit.py   classifiers that keep all series: nearest neighbours, LDMLT, the SVM
"""
