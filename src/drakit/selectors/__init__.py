"""Device selectors: CEL bound to devices.

In:  the text of a selector and devices of ResourceSlices.
Out: `compile_selector(text)` gives a Selector, `bind(driver, device)` a BoundDevice, and
     `selector.evaluate(bound)` a SelectorOutcome.
"""

from drakit.selectors.devices import BoundDevice, bind
from drakit.selectors.environment import COST_LIMIT, MAX_LENGTH, Gates, environment
from drakit.selectors.hints import without_hint
from drakit.selectors.selector import MATCH, NO_MATCH, Selector, SelectorOutcome, compile_selector

__all__ = [
    "COST_LIMIT",
    "MATCH",
    "MAX_LENGTH",
    "NO_MATCH",
    "BoundDevice",
    "Gates",
    "Selector",
    "SelectorOutcome",
    "bind",
    "compile_selector",
    "environment",
    "without_hint",
]
