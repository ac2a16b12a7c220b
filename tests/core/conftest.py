"""Settings of Hypothesis: this machine is shared, so the time of one example says nothing."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("shared machine", deadline=None)
settings.load_profile("shared machine")
