"""What a fitted classifier consists of: plain data that maps series to rows and rows to decisions.

row_map.py          scaled channels and an optional constant: the rows of most classifiers
representations.py  the rows that the local classifier aligns: values, changes, levels
comparisons.py      a representation with an alignment objective, and the products they give
snippets.py         short landmarks that are compared at every step, and the decisions they give
origins.py          names and classes of the training series that a model keeps
linear_form.py      decisions as sums over landmarks, linear in the aligned products
"""
