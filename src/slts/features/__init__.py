"""Feature maps and the linear model: a decision is a linear function of the features of a series.

feature_map.py       what feature maps have in common
row_map.py           the rows of a series that are aligned, and the way back to steps and channels
aligned_products.py  whole landmarks: aligned products, summed over banks of landmarks
snippets.py          short landmarks: how often each occurs
linear_model.py      feature maps with coefficients: decisions, parts of landmarks, contributions
neighbours.py        the model of nearest neighbours
origins.py           names and classes of the training series that a model keeps
explanation.py       `explain`: the contributions to the decisions for one series, with names
summary.py           `summarize`: what a whole model uses
"""
