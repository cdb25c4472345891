"""Certificates for kubelets: requests approved by policy, and signed."""

from drakit.controllers.certificates.approver import RequestApprover
from drakit.controllers.certificates.signer import RequestSigner

__all__ = ["RequestApprover", "RequestSigner"]
