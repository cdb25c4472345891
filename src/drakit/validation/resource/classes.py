"""DeviceClass: the rules for what administrators name."""

from __future__ import annotations

from collections.abc import Iterator

from drakit.api import DeviceClass, DeviceClassConfiguration, DeviceClassSpec
from drakit.base.fields import FieldError, Path, invalid
from drakit.validation.context import Context
from drakit.validation.fields.metadata import check_form, check_metadata, check_metadata_update
from drakit.validation.fields.sequences import each
from drakit.validation.pods.resourcenames import is_extended
from drakit.validation.resource.expressions import check_selectors
from drakit.validation.resource.opaque import check_configuration

CONFIGURATIONS = 32
SPEC = Path("spec")


def check_device_class(device_class: DeviceClass, ctx: Context) -> Iterator[FieldError]:
    yield from check_metadata(device_class.metadata, namespaced=False, prefixed=False)
    yield from _check_spec(device_class.spec, None, ctx)


def check_device_class_update(new: DeviceClass, old: DeviceClass, ctx: Context) -> Iterator[FieldError]:
    yield from check_form(new.metadata, namespaced=False, prefixed=False)
    yield from check_metadata_update(new.metadata, old.metadata)
    yield from _check_spec(new.spec, old.spec, ctx)


def _check_spec(spec: DeviceClassSpec, old: DeviceClassSpec | None, ctx: Context) -> Iterator[FieldError]:
    """Selectors count as stored only if all of them are as before, in their order; so do configurations."""
    stored = old is not None and old.selectors == spec.selectors
    yield from check_selectors(spec.selectors, SPEC / "selectors", ctx, stored=stored)
    known = old is not None and old.config == spec.config

    def check(config: DeviceClassConfiguration, where: Path) -> Iterator[FieldError]:
        return check_configuration(config.opaque, where, stored=known)

    yield from each(spec.config, SPEC / "config", check, limit=CONFIGURATIONS)
    name = spec.extended_resource_name
    if name is not None and not is_extended(name):
        yield invalid(SPEC / "extendedResourceName", name, "must be a valid extended resource name")
