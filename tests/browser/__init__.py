"""A package, so that the fixtures of its conftest can end with its tests."""
