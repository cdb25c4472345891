"""Jobs: pods that run until enough of them have succeeded, or too many have failed; and what is left of a job later."""

from drakit.controllers.jobs.controller import JobController
from drakit.controllers.jobs.expiry import FinishedJobs

__all__ = ["FinishedJobs", "JobController"]
