"""Names of numbers, months, days and units in the languages whose figures can be read. Pure.

English names come from ``unit_names.py`` and ``stop_words.py``. Units have exact factors here:
three months are not 90 days, 1 GB is 1000 MB, and 1 GiB is 1024 MiB.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from typing import NamedTuple

from rolebundle.text.stop_words import NUMBER_WORDS, ORDINALS
from rolebundle.text.unit_names import MONTHS, SCALES, UNITS, WEEKDAYS


class Unit(NamedTuple):
    """A unit: what it measures, and its size in the base unit of that dimension."""

    dimension: str
    factor: Fraction


class Words(NamedTuple):
    """Names in one language, in lower case.

    Attributes:
        numbers: cardinal numbers that are one word.
        scales: what multiplies the number before it: "hundred", "million", "k".
        ordinals: ordinal numbers that are one word.
        months: 1 to 12.
        weekdays: their English names.
        joins: words between the parts of a number, or of a date.
    """

    numbers: dict[str, int]
    scales: dict[str, int]
    ordinals: dict[str, int]
    months: dict[str, int]
    weekdays: dict[str, str]
    joins: frozenset[str]


COMMA_LANGUAGES = frozenset(
    "ca cs da de es et fi fr hu id it lt nl no pl pt ro ru sr sv tr uk vi".split()
)
"""Languages that write 1,5 for one and a half, and 1.500 for fifteen hundred."""

# -- units -----------------------------------------------------------------------------------------

# Dimension, factor, names. A name with a capital letter is only that name: Mb are bits, MB bytes.
# Two words are joined by a space. A name on several lines may mean any of them.
_UNITS = """
time    1e-9       ns|nanosecond|nanoseconds
time    1e-6       µs|μs|us|microsecond|microseconds
time    1e-3       msec|msecs|millis|millisekunden|millisecondes|milisegundos|millisecondi
time    1          sekunde|sekunden|seconde|secondes|seconden|segundo|segundos|secondo|secondi
time    60         m|minuten|minuto|minutos|minuti|minuut
time    3600       std|stunde|stunden|heure|heures|hora|horas
time    86400      d|tag|tage|tagen|jour|jours|día|días|dia|dias|giorno|giorni|dag|dagen
time    86400      calendar day|calendar days
time    604800     wk|wks|woche|wochen|semaine|semaines|semana|semanas
time    604800     settimana|settimane|weken
month   1          month|months|mo|mos|mois|mes|meses|mese|mesi|mês
month   1          monat|monate|monaten|maand|maanden
month   3          quarter|quarters|quartal|quartale|trimestre|trimestres
month   12         year|years|yr|yrs|jahr|jahre|jahren
month   12         ans|année|années|año|años|anno|anni|ano|anos|jaar
month   120        decade|decades|jahrzehnt|jahrzehnte|décennies
month   1200       century|centuries|jahrhundert|jahrhunderte|siècles|siglos|secoli
workday 1          workday|workdays|working day|working days|business day|business days|weekdays
workday 1          arbeitstag|arbeitstage|arbeitstagen|werktag|werktage|werktagen
size    1/8        bit|bits
size    1          octet|octets
size    1000       KB
size    1000000    MB
size    1000000000 GB
size    1e12       TB
size    1e15       pb|petabyte|petabytes
size    125        kbit|Kb|kilobit|kilobits
size    125000     mbit|Mb|megabit|megabits
size    125000000  gbit|Gb|gigabit|gigabits
size    1024       kib|kibibyte|kibibytes
size    1048576    mib|mebibyte|mebibytes
size    1073741824 gib|gibibyte|gibibytes
size    1099511627776 tib|tebibyte|tebibytes
%       1          pct|prozent|procent|per cent|pour cent|por ciento|por cento|per cento
%       1/10       ‰
point   1          pp|ppt|percentage point|percentage points|prozentpunkt|prozentpunkte
point   1/100      bp|bps|basis point|basis points
length  1e-9       nm|nanometer|nanometers|nanometre|nanometres
length  1e-6       µm|μm|um|micrometer|micrometers|micrometre|micrometres|micron|microns
length  1/100      zentimeter
length  1          m|mètre|mètres|metro|metros|metri
length  1000       kilomètre|kilomètres|kilómetros
foot    1          foot|feet|ft
foot    1/12       inch|inches
foot    3          yard|yards|yd|yds
foot    5280       mile|miles|mi
mass    1e-6       µg|μg|mcg|microgram|micrograms
mass    1          gramm|gramme|grammes|gramos|grammi
mass    1000       kilogramm
mass    1000000    t|tonne|tonnes|tonnen|toneladas|tonnellate
ton     1          ton|tons
ounce   1          oz|ounce|ounces
ounce   16         lb|lbs|pound|pounds
volume  1/100      cl|centilitre|centilitres|centiliter|centiliters
volume  1          l|litro|litros|litri
volume  1000       m³|cubic meter|cubic meters|cubic metre|cubic metres|kubikmeter
gallon  1          gal|gallon|gallons
gallon  1/4        quart|quarts
gallon  1/8        pint|pints
area    1          m²|sqm|square meter|square meters|square metre|square metres|quadratmeter
area    10000      ha|hectare|hectares|hektar
area    1000000    km²|square kilometer|square kilometers|square kilometre|square kilometres
acre    1          acre|acres
sqft    1          ft²|sqft|square foot|square feet
mi²     1          square mile|square miles
celsius 1          °c|celsius|degrees celsius|degree celsius|grad celsius|degrees c
degf    1          °f|fahrenheit|degrees fahrenheit|degree fahrenheit|degrees f
kelvin  1          kelvin|kelvins
degree  1          °|degree|degrees|grad|degrés|grados|gradi
hertz   1          hz|hertz
hertz   1000       khz|kilohertz
hertz   1000000    mhz|megahertz
hertz   1000000000 ghz|gigahertz
watt    1e-3       mW|milliwatt|milliwatts
watt    1          w|watt|watts
watt    1000       kw|kilowatt|kilowatts
watt    1000000    MW|megawatt|megawatts
watt    1000000000 gw|gigawatt|gigawatts
energy  1          wh|watt hours
energy  1000       kwh|kilowatt hour|kilowatt hours
energy  1000000    mwh|megawatt hour|megawatt hours
energy  1000000000 gwh|gigawatt hours
joule   1          joule|joules
joule   1000       kj|kilojoule|kilojoules
calorie 1          cal
calorie 1000       kcal|calorie|calories|kilocalories
volt    1e-3       mv|millivolt|millivolts
volt    1          v|volt|volts
volt    1000       kv|kilovolt|kilovolts
ampere  1e-3       ma|milliamp|milliamps
ampere  1          amp|amps|ampere|amperes
pascal  1          pa|pascal|pascals
pascal  100        hpa|mbar
pascal  1000       kpa
pascal  100000     bar
decibel 1          db|decibel|decibels
pixel   1          px|pixel|pixels
pixel   1000000    mp|megapixel|megapixels
knot    1          knot|knots|kn
times   1          x|×|times|fold|mal|fois|veces|vezes|volte|keer
$       1          us$|us dollar|us dollars|u.s. dollar|u.s. dollars|american dollars|bucks
$       1/100      cent|cents|¢
€       1/100      cent|cents
£       1          pound|pounds|sterling|quid|pounds sterling|british pounds
£       1/100      p|penny|pence
¥       1          ¥|yen|jpy
yuan    1          ¥|yuan|rmb|cny|renminbi
₹       1          ₹|rs|rupee|rupees|inr
franc   1          sfr|franken|swiss franc|swiss francs
aud     1          aud|a$|au$|australian dollar|australian dollars
cad     1          cad|c$|ca$|canadian dollar|canadian dollars
nzd     1          nzd|nz$
hkd     1          hkd|hk$
sgd     1          sgd|s$
won     1          ₩|won|krw
rouble  1          ₽|rub|rouble|roubles|ruble|rubles
real    1          r$|brl|reais
sek     1          sek
nok     1          nok
dkk     1          dkk
zloty   1          zł|pln|złoty|zlotys
btc     1          ₿|btc|bitcoin|bitcoins
"""
MONEY = frozenset(
    "$ € £ ¥ yuan ₹ franc aud cad nzd hkd sgd won rouble real sek nok dkk zloty btc".split()
)
"""The dimensions that are currencies."""
# In `unit_names.py` they are converted with a tolerance, or measure nothing.
_INEXACT = frozenset(
    "month months quarter quarters year years kib mib gib tib am pm st nd rd th".split()
)


def _units() -> Iterator[tuple[str, Unit]]:
    for name, (kind, factor) in UNITS.items():
        if name not in _INEXACT:
            yield name, Unit(kind, Fraction(str(factor)))
    for line in _UNITS.strip().splitlines():
        dimension, factor_text, names = line.split(maxsplit=2)
        for name in names.split("|"):
            yield name, Unit(dimension, Fraction(factor_text))


def _by_name() -> dict[str, tuple[Unit, ...]]:
    units: defaultdict[str, dict[Unit, None]] = defaultdict(dict)
    for name, unit in _units():
        units[name][unit] = None
    return {name: tuple(meanings) for name, meanings in units.items()}


UNITS_BY_NAME = _by_name()
"""Name → the units that it may mean. Look a name up as it is written, then in lower case."""

# -- words -----------------------------------------------------------------------------------------

# Numbers from zero on, each "|" separates two; months; days from Monday on.
_NUMBERS = {
    "de": "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn "
    "vierzehn fünfzehn "
    "sechzehn siebzehn achtzehn neunzehn",
    "fr": "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize "
    "quatorze quinze seize",
    "es": "cero un dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince "
    "dieciséis diecisiete dieciocho diecinueve veinte veintiuno veintidós veintitrés veinticuatro "
    "veinticinco veintiséis veintisiete veintiocho veintinueve",
    "it": "zero un due tre quattro cinque sei sette otto nove dieci undici dodici tredici "
    "quattordici "
    "quindici sedici diciassette diciotto diciannove",
    "pt": "zero um dois três quatro cinco seis sete oito nove dez onze doze treze quatorze quinze "
    "dezesseis dezessete dezoito dezenove",
    "nl": "nul een twee drie vier vijf zes zeven acht negen tien elf twaalf dertien "
    "veertien vijftien "
    "zestien zeventien achttien negentien",
}
_TENS = {
    "de": "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig",
    "fr": "vingt trente quarante cinquante soixante",
    "es": "veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa",
    "it": "venti trenta quaranta cinquanta sessanta settanta ottanta novanta",
    "pt": "vinte trinta quarenta cinquenta sessenta setenta oitenta noventa",
    "nl": "twintig dertig veertig vijftig zestig zeventig tachtig negentig",
}
_SCALES_OF = {
    "en": "k 3 m 6 mm 6 mn 6 mio 6 b 9 bn 9 t 12 tn 12 trillion 12 trillions 12 thousands "
    "3 millions 6 "
    "billions 9 hundreds 2 lakh 5 crore 7",
    "de": "hundert 2 tausend 3 million 6 millionen 6 mio 6 milliarde 9 milliarden 9 mrd 9 "
    "billion 12 "
    "billionen 12 bio 12",
    "fr": "cent 2 cents 2 mille 3 million 6 millions 6 milliard 9 milliards 9 md 9 mds 9",
    "es": "cien 2 ciento 2 mil 3 millón 6 millones 6 billón 12 billones 12",
    "it": "cento 2 mila 3 mille 3 milione 6 milioni 6 miliardo 9 miliardi 9 mln 6 mld 9",
    "pt": "cem 2 cento 2 mil 3 milhão 6 milhões 6 bilhão 9 bilhões 9 mi 6 bi 9",
    "nl": "honderd 2 duizend 3 miljoen 6 mln 6 miljard 9 mld 9",
}
_MORE_NUMBERS = {
    "en": "zero 0",
    "de": "eins 1 eine 1 einen 1 einem 1 einer 1 zwo 2 dreissig 30",
    "fr": "une 1",
    "es": "uno 1 una 1 doscientos 200 trescientos 300 cuatrocientos 400 quinientos 500 "
    "seiscientos 600 "
    "setecientos 700 ochocientos 800 novecientos 900 doscientas 200 trescientas 300",
    "it": "uno 1 una 1 ventuno 21 ventotto 28 trentuno 31 trentotto 38",
    "pt": "uma 1 duas 2 catorze 14 duzentos 200 trezentos 300 quatrocentos 400 quinhentos "
    "500 seiscentos "
    "600 setecentos 700 oitocentos 800 novecentos 900",
    "nl": "één 1",
}
_MONTHS_OF = {
    "de": "januar jan|februar feb|märz mär|april apr|mai|juni jun|juli jul|august aug"
    "|september sep sept"
    "|oktober okt|november nov|dezember dez",
    "fr": "janvier janv|février févr|mars|avril avr|mai|juin|juillet juil|août"
    "|septembre sept|octobre oct"
    "|novembre nov|décembre déc",
    "es": "enero ene|febrero feb|marzo|abril abr|mayo|junio jun|julio jul|agosto"
    "|septiembre setiembre sept"
    "|octubre oct|noviembre nov|diciembre dic",
    "it": "gennaio gen|febbraio feb|marzo mar|aprile apr|maggio mag|giugno giu|luglio lug"
    "|agosto ago"
    "|settembre set|ottobre ott|novembre nov|dicembre dic",
    "pt": "janeiro jan|fevereiro fev|março mar|abril abr|maio|junho jun|julho jul"
    "|agosto ago|setembro set"
    "|outubro out|novembro nov|dezembro dez",
    "nl": "januari jan|februari feb|maart mrt|april apr|mei|juni jun|juli jul|augustus aug"
    "|september sept"
    "|oktober okt|november nov|december dec",
}
_WEEKDAYS_OF = {
    "de": "montag dienstag mittwoch donnerstag freitag samstag sonntag",
    "fr": "lundi mardi mercredi jeudi vendredi samedi dimanche",
    "es": "lunes martes miércoles jueves viernes sábado domingo",
    "it": "lunedì martedì mercoledì giovedì venerdì sabato domenica",
    "pt": "segunda-feira terça-feira quarta-feira quinta-feira sexta-feira sábado domingo",
    "nl": "maandag dinsdag woensdag donderdag vrijdag zaterdag zondag",
}
_JOINS_OF = {"en": "and", "de": "und", "fr": "et", "es": "y", "it": "e", "pt": "e", "nl": "en"}
_DAYS = tuple(dict.fromkeys(WEEKDAYS.values()))
LANGUAGES = ("en", *_NUMBERS)
"""ISO 639-1 codes of the languages whose figures can be read."""


@cache
def words_of(language: str) -> Words:
    """The names of one of the ``LANGUAGES``; abbreviated English months count in all of them."""
    if language == "en":
        numbers = {word: int(value) for word, value in NUMBER_WORDS.items()}
        scales = {word: int(value) for word, value in SCALES.items()}
        weekdays, ordinals = WEEKDAYS, _english_ordinals()
        # A short text does not always show its language.
        months = {name: n for code in _MONTHS_OF for name, n in _months(code) if _is_clear(name)}
        months |= MONTHS
    else:
        numbers = _numbers_of(language)
        scales, ordinals = {}, {}
        months = MONTHS | dict(_months(language))
        weekdays = dict(zip(_WEEKDAYS_OF[language].split(), _DAYS, strict=True))
    numbers |= _pairs(_MORE_NUMBERS[language])
    scales |= {word: 10**power for word, power in _pairs(_SCALES_OF[language]).items()}
    joins = frozenset(_JOINS_OF[language].split())
    return Words(numbers, scales, ordinals, months, weekdays, joins)


def _months(language: str) -> Iterator[tuple[str, int]]:
    for number, names in enumerate(_MONTHS_OF[language].split("|"), start=1):
        for name in names.split():
            yield name, number


def _is_clear(month: str) -> bool:
    """Whether a name of another language is no English word."""
    return len(month) > 4 or month in ("mai", "mei", "märz", "juin", "août", "mayo", "maio")


def _pairs(text: str) -> dict[str, int]:
    parts = text.split()
    return dict(zip(parts[::2], map(int, parts[1::2]), strict=True))


def _english_ordinals() -> dict[str, int]:
    ordinals = {word: int(value) for word, value in ORDINALS.items()}
    for word, value in NUMBER_WORDS.items():
        if value > 10:
            stem = "twelf" if word == "twelve" else word
            ordinals[f"{stem[:-1]}ieth" if stem.endswith("y") else f"{stem}th"] = int(value)
    return ordinals | {"hundredth": 100, "thousandth": 1000, "millionth": 1_000_000}


def _numbers_of(language: str) -> dict[str, int]:
    """Zero to ninety-nine, as far as they are one word, and German and Dutch compounds."""
    units = {word: value for value, word in enumerate(_NUMBERS[language].split())}
    tens = {word: 10 * value for value, word in enumerate(_TENS[language].split(), start=2)}
    numbers = units | tens
    digits = [(word, value) for word, value in units.items() if 1 <= value <= 9]
    if language in ("de", "nl"):
        hundred, thousand, join = (
            ("hundert", "tausend", "und") if language == "de" else ("honderd", "duizend", "en")
        )
        for word, value in digits:
            # "twee" and "drie" take a diaeresis.
            joined = word + ("ën" if language == "nl" and word.endswith("e") else join)
            numbers |= {joined + ten: value + ten_value for ten, ten_value in tens.items()}
            numbers |= {word + hundred: 100 * value, word + thousand: 1000 * value}
    if language == "it":
        numbers |= {
            ten + word: value + ten_value
            for ten, ten_value in tens.items()
            for word, value in digits
        }
        numbers |= {word + "cento": 100 * value for word, value in digits}
        numbers |= {word + "mila": 1000 * value for word, value in digits}
    if language == "fr":
        numbers |= {"quatre-vingts": 80, "quatre-vingt": 80}
    return numbers
