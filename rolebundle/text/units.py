"""Units of figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import cache

Units = list[tuple[str, Fraction]]
_PREFIXES = """-9 n nano;-6 µ micro;-6 μ micro;-6 u micro;-3 m milli;-2 c centi;3 k kilo;3 K kilo;
6 M mega;9 G giga;12 T tera;15 P peta"""
_BASES = """time 1 s second;length 1 m metre;length 1 m meter;mass 1 g gram;byte 1 B byte;
Hz 1 Hz hertz;W 1 W watt;J 1 J joule;J 3600 Wh Wh;V 1 V volt;A 1 A ampere;Pa 1 Pa pascal;
length3 1/1000 l litre;length3 1/1000 L liter;byte 1/8 b bit;byte 1/8 bit bit"""
_OTHERS = """time 60 min mins minute;time 3600 h hr hrs hour;time 86400 d day;time 604800 week wk;
time 1209600 fortnight;time 1 sec secs;month 1 month;month 12 year yr yrs;month 120 decade;
month 1200 century centuries;byte 1024 KiB kibibyte;byte 1048576 MiB mebibyte;
byte 1073741824 GiB gibibyte;byte 1099511627776 TiB tebibyte;bps 1000000 Mbps;bps 1000000000 Gbps;
length 0.0254 inch inches;length 0.3048 ft foot feet;length 0.9144 yard;length 1609.344 mi mile;
length 0.000001 micron;length2 10000 ha hectare;mass 1000000 t tonne;mass 453.59237 lb lbs pound;
mass 28.349523125 oz ounce;cal 1 cal calorie;cal 1000 kcal;Pa 100000 bar;°C 1 °C ℃ celsius;
°F 1 °F ℉ fahrenheit;° 1 ° degree deg;K 1 K kelvin;dB 1 dB decibel;px 1 px pixel;
dpi 1 dpi;fps 1 fps;rpm 1 rpm;ppm 1 ppm;% 1 % percent;% 0.1 ‰;pp 1 pp;x 1 x × times;
$ 1 $ USD dollar;$ 0.01 ¢ cent;
€ 1 € EUR euro;£ 1 £ GBP;£ 1 pound;¥ 1 ¥ JPY yen;₹ 1 ₹ INR rupee;franc 1 CHF franc"""


def _lines(table: str) -> Iterator[list[str]]:
    return (line.split() for line in table.split(";"))


@cache
def _units() -> dict[str, Units]:
    units: dict[str, Units] = {}

    def add(dimension: str, factor: Fraction, names: Iterable[str]) -> None:
        for name in names:
            of_name = units.setdefault(name, [])
            of_name += [] if (dimension, factor) in of_name else [(dimension, factor)]
            if len(name) > 2 and name.islower():
                units.setdefault(f"{name}s", of_name)
            if len(name) > 1:
                units.setdefault(name.lower(), of_name)

    for dimension, factor, *names in _lines(_OTHERS):
        add(dimension, Fraction(factor), names)
    for dimension, factor, sign, word in _lines(_BASES):
        add(dimension, Fraction(factor), (sign, word))
        for power, short, long in _lines(_PREFIXES):
            add(
                dimension,
                Fraction(factor) * Fraction(10) ** int(power),
                (short + sign, long + word),
            )
    for exponent, letter in ((1, "K"), (1, "k"), (2, "M"), (3, "G"), (4, "T"), (5, "P")):
        sizes = [("byte", Fraction(base) ** exponent) for base in (1000, 1024)]
        units |= {f"{letter}B": sizes, f"{letter}b".lower(): sizes}
    return units


MINUTE: Units = [("time", Fraction(60))]
"""What the letter m means behind hours, or directly at a number: "1h30m"."""


def units_of(name: str) -> Units:
    """The dimensions and factors of a unit's name or symbol; empty if it is none."""
    units = _units()
    return units.get(name) or (units.get(name.lower(), []) if len(name) > 1 else [])
