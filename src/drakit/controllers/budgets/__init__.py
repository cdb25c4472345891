"""Pod disruption budgets: how many pods of a kind may be taken away at the same time."""

from drakit.controllers.budgets.controller import BudgetController

__all__ = ["BudgetController"]
