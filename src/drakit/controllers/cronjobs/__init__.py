"""Cron jobs: a job whenever it is time."""

from drakit.controllers.cronjobs.controller import CronJobController

__all__ = ["CronJobController"]
