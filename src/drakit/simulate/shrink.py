"""The shortest run that still fails: steps and kinds of weather are left out one by one.

In:  a plan whose run breaks a rule.
Out: a plan with as few steps as could be found within a number of tries, and its result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from drakit.simulate.runs import RunPlan, RunResult, run

TRIES = 60


def shrink(failed: RunResult, *, tries: int = TRIES, play: Callable[[RunPlan], RunResult] = run) -> RunResult:
    """Every run that counts breaks a rule of the same kind as the first."""
    kind = kind_of(failed)
    best = failed
    progress = True
    while progress and tries > 0:
        progress = False
        for plan in smaller(best.plan):
            if tries <= 0:
                break
            tries -= 1
            result = play(plan)
            if result.violations and kind_of(result) == kind:
                best, progress = result, True
                break
    return best


def kind_of(result: RunResult) -> str:
    """The rule that was broken first, without the names of who broke it."""
    return " ".join(word for word in result.violations[0].split() if word.isalpha())


def smaller(plan: RunPlan) -> Iterator[RunPlan]:
    """Halves first, then one thing less."""
    steps = plan.steps
    if len(steps) > 3:
        yield replace(plan, steps=steps[: len(steps) // 2])
        yield replace(plan, steps=steps[len(steps) // 2 :])
    if plan.weather:
        yield replace(plan, weather=())
    for index in range(len(steps)):
        yield replace(plan, steps=steps[:index] + steps[index + 1 :])
    for each in plan.weather:
        yield replace(plan, weather=tuple(other for other in plan.weather if other != each))
