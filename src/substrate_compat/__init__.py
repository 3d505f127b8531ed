"""Can this worker restore this sandbox snapshot, and if not, exactly why not?

The modules are the API: write ``from substrate_compat.match import explain``.
"""

__version__ = "0.1.0"
