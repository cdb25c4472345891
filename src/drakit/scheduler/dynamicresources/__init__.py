"""The DynamicResources plugin: claims, devices and extended resources of pods."""
