"""The rules: what may be created, how it may change, what its status may say.

In:  objects in their internal form, with defaults; switches and what else a rule must know as a `Context`.
Out: every broken rule as a FieldError with its path, in the words of Kubernetes. Pure: no clock, no I/O.

`drop_disabled_fields` comes first, then one of the `validate_…` functions.
"""

from drakit.validation.context import Context, empty_lists
from drakit.validation.disabled.claims import drop_deallocated_devices
from drakit.validation.disabled.objects import drop_disabled_fields
from drakit.validation.fields.metadata import check_field_manager
from drakit.validation.resource.adminaccess import has_admin_access
from drakit.validation.resource.expressions import EXPRESSION_LENGTH, judge_expression
from drakit.validation.rules import validate_create, validate_status_update, validate_update
from drakit.validation.warnings.dropped import dropped_fields
from drakit.validation.warnings.findings import FieldWarning
from drakit.validation.warnings.objects import has_warnings, warnings_about

__all__ = [
    "EXPRESSION_LENGTH",
    "Context",
    "FieldWarning",
    "check_field_manager",
    "drop_deallocated_devices",
    "drop_disabled_fields",
    "dropped_fields",
    "empty_lists",
    "has_admin_access",
    "has_warnings",
    "judge_expression",
    "validate_create",
    "validate_status_update",
    "validate_update",
    "warnings_about",
]
