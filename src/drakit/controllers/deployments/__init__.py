"""Deployments: replica sets of one template after the other, rolled out, paused and rolled back."""

from drakit.controllers.deployments.controller import DeploymentController

__all__ = ["DeploymentController"]
