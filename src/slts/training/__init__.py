"""Learning, one function for each family of classifiers, that reads from top to bottom.

training_set.py    what fits take and return: distinct series in the order of their keys; options
scans.py           what is accepted as a scan, its batches, and a sample of it
landmarks.py       which series to compare with
held_out.py        splits, and the choice of parameters by held-out accuracy
local_fit.py       the local classifier
landmark_fit.py    SLTS and BBS
neighbour_fit.py   classifiers that keep all series: nearest neighbours, LDMLT, the SVM
"""
