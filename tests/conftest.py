"""How every test is run."""

from hypothesis import settings

# A machine that does something else at the same time is slow, not wrong.
settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")
