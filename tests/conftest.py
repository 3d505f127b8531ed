"""How laws are tried: few examples for each, and no deadline, which a busy machine would break."""

from hypothesis import settings

settings.register_profile("substrate-compat", max_examples=50, deadline=None, database=None)
settings.load_profile("substrate-compat")
