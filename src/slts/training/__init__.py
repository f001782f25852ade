"""The steps of training, the same for arrays, files and clusters; independent of estimators.

source.py                  series in parts: arrays and scans; which workers read the parts
sampling.py                a sample by hashes of the series
first_pass.py              count series and classes, draw the sample
landmark_choice.py         shared parameters; landmarks given, or chosen in the sample
held_out.py                splits from `cv`; choose parameters by held-out accuracy
memory_plan.py             estimate the memory, decide what is held in memory
alignments.py              alignments in memory, and one-vs-rest learning from them
metric_pipeline.py         metrics, similarities under them and separators, in parallel
partitioned_alignments.py  the same for alignments in files or on workers
partitioned_ridge.py       sums over all series for the local classifier
landmark_fit.py            BBS and SLTS: the whole sequence
local_fit.py               the local classifier: the whole sequence
snippet_features.py        features of snippets for the local classifier
local_metrics.py           features, Gram matrix and metrics of the local classifier
all_series_fit.py          SVM, nearest neighbours and LDMLT: what they learn from all series
"""
