"""English names of units, months, days and numbered things. Pure."""

from __future__ import annotations

UNITS: dict[str, tuple[str, float]] = {
    name: (kind, factor)
    for kind, factor, names in (
        ("time", 0.001, "ms millisecond milliseconds"),
        ("time", 1, "s sec secs second seconds"),
        ("time", 60, "min mins minute minutes"),
        ("time", 3600, "h hr hrs hour hours"),
        ("time", 86_400, "day days"),
        ("time", 604_800, "week weeks"),
        ("time", 1_209_600, "fortnight fortnights"),
        ("time", 2_592_000, "month months"),
        ("time", 7_776_000, "quarter quarters"),
        ("time", 31_536_000, "year years"),
        ("size", 1, "byte bytes"),
        ("size", 1e3, "kb kib kilobyte kilobytes"),
        ("size", 1e6, "mb mib megabyte megabytes"),
        ("size", 1e9, "gb gib gigabyte gigabytes"),
        ("size", 1e12, "tb tib terabyte terabytes"),
        ("mass", 0.001, "mg milligram milligrams"),
        ("mass", 1, "g gram grams"),
        ("mass", 1000, "kg kgs kilogram kilograms kilo kilos"),
        ("length", 0.001, "mm millimeter millimeters millimetre millimetres"),
        ("length", 0.01, "cm centimeter centimeters centimetre centimetres"),
        ("length", 1, "meter meters metre metres"),
        ("length", 1000, "km kms kilometer kilometers kilometre kilometres"),
        ("volume", 0.001, "ml milliliter milliliters millilitre millilitres"),
        ("volume", 1, "liter liters litre litres"),
        ("%", 1, "% percent"),
        ("$", 1, "$ dollar dollars usd"),
        ("€", 1, "€ euro euros eur"),
        ("£", 1, "£ pound pounds gbp"),
        ("franc", 1, "chf franc francs"),
        ("clock", 1, "am pm"),
        ("th", 1, "st nd rd th"),
    )
    for name in names.split()
}
FREQUENCIES = {
    "hourly": "hour",
    "daily": "day",
    "weekly": "week",
    "monthly": "month",
    "quarterly": "quarter",
    "yearly": "year",
    "annually": "year",
}
# The number after such a noun names a thing and measures nothing.
NUMBERED = frozenset(
    "version release chapter section page figure fig table step phase class type tier room floor "
    "level grade block ward line item article rule part no number issue ticket bug rfc pep example "
    "appendix volume column row category note bit kernel group zone".split()
)
SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "dozen": 12.0}
MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul",
            "august aug", "september sept sep", "october oct", "november nov", "december dec",
        ),
        start=1,
    )
    for name in names.split()
}  # fmt: skip
WEEKDAYS = {
    f"{day}{end}": day
    for day in "monday tuesday wednesday thursday friday saturday sunday".split()
    for end in ("", "s")
}
