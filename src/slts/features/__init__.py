"""Feature maps and models: a decision is a linear function of the features of a series.

feature_map.py       what feature maps have in common
row_map.py           the rows of a series that are aligned, and the way back to steps and channels
aligned_products.py  whole landmarks: aligned products, summed over banks of landmarks
snippets.py          short landmarks: how often each occurs
models.py            `LinearModel`: feature maps with coefficients; `Neighbours`; `Origins`: names
                     and classes of the training series that a model keeps
explanation.py       `explain`: the contributions to the decisions for one series, with names
summary.py           `summarize`: what a whole model uses
"""
