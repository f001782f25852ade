"""The paper's experimental study, and the comparison of accuracy with other libraries.

``make reproduce`` and ``make accuracy`` run them. Both turn a protocol into units of work, run the
units in processes, keep every result in a file, and write tables, figures and a document.

__main__.py        the command line; a study from its plan to its files
protocol.py        what is varied, and the units of work that follow from it
methods.py         the compared methods, and the adapters that build their models
cues.py            synthetic families whose classes differ in one property only
originals.py       the paper's data sets, from the archives of UCI
pool.py            public data sets with a fixed split, from one archive
problems.py        data sets, and which series a method trains, tunes and tests on
work.py            from a unit to its result
runner.py          units in processes; the file of results
missing.py         accuracy with missing values; a command of its own
statistics.py      scores by method and data set; intervals, tests, ranks
paper.py           what the paper publishes
paper_tables.py    from results to the tables of the paper
paper_document.py  the document about the paper's study
peer_tables.py     from results to the tables of the comparison
peer_document.py   the document about the comparison
pool_document.py   its section on the pool of public data sets
sentences.py       the sentences of both documents
figures.py         the figures of both studies
markdown.py        documents as Markdown
bounds.py          bounds from training series for docs/bounds.md; a command of its own

Only public names of `slts` are used, except in bounds.py and originals.py.
"""
