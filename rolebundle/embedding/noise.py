"""The scale of cosines: noise and related texts, measured on a fixed sample."""

from __future__ import annotations

from rolebundle.contracts.documents import ModelIdentity, Noise
from rolebundle.embedding.provider import EmbeddingProvider, unit_vectors
from rolebundle.lazy import numpy as np

# A line with a question begins a pair; the lines up to the next one are its passage.
_SAMPLE = """\
Why should every account have its own password?
If one website leaks its customers' passwords, attackers try them at other sites at once. A
different password for each account limits the damage to the one that leaked. A password manager
remembers them all.
How much electricity does a solar panel on the roof produce?
A household panel yields about 400 watts in full sun, and far less under clouds. Over a year,
orientation and shade matter more than the brand. Most roofs are wired to the grid, so surplus
power is sold.
What helps against high blood pressure besides pills?
Patients with mild hypertension are first advised to eat less salt, lose weight and move more.
These measures can lower the systolic value by ten points. Medication follows if the readings stay
high after some months.
How long does a broken arm stay in plaster?
A simple fracture of the forearm is usually kept in a cast for six weeks. The doctor takes another
X-ray before it is removed. Physiotherapy then restores the strength of the muscles.
Can a landlord keep the deposit when the tenant moves out?
The deposit belongs to the tenant unless rent is unpaid or the flat was damaged. Ordinary wear and
tear is not damage. The landlord must list every deduction in writing.
When does a trademark expire?
A registered mark is protected for ten years and can be renewed without limit. If the owner does
not use the sign for five years, a competitor may apply to have it cancelled.
How do I keep a sourdough starter alive?
Feed the starter with equal parts of flour and water once a day. In the refrigerator it rests for
a week between feedings. Bubbles and a sour smell show that the yeast is active and the dough will
rise.
Why does rice stick to the pot?
Starch on the surface of the grains turns to glue when it is heated. Rinsing the rice until the
water runs clear removes most of it. Cook it on a low flame with the lid on, and do not stir.
What counts as offside in football?
A player is offside if he is nearer to the opponents' goal line than both the ball and the
second-last defender at the moment of the pass. Arms do not count. There is no offside from a
throw-in.
How should a beginner train for a marathon?
Most training plans last sixteen weeks and raise the weekly distance slowly. One long run at an
easy pace prepares the legs for the race. Runners who add mileage too fast often get injured.
Who built the aqueducts of ancient Rome?
Roman engineers led spring water to the cities over distances of up to ninety kilometres. The
channels fell only slightly, and arches carried them across valleys. Soldiers, slaves and hired
masons did the work.
What changed after the printing press was invented?
Gutenberg's movable type made books cheap enough for townspeople. Within fifty years printers in
two hundred cities had produced millions of volumes. Pamphlets spread the ideas of the
Reformation.
How does compound interest make savings grow?
Interest that stays in the account earns interest itself. At four percent a year a sum doubles in
about eighteen years. The longer the money is left alone, the steeper the curve becomes.
Is my luggage insured if the airline loses it?
The carrier is liable for checked baggage up to a fixed amount. Report the missing suitcase at the
airport counter and keep the form. A travel policy may pay the difference for valuables.
How do storks find their way to Africa?
Migrating birds steer by the sun, the stars and the magnetic field of the earth. Young storks
follow older ones on their first flight. They avoid the open sea, because warm air that carries
them rises only over land.
What do bees do in winter?
The colony forms a tight cluster around its queen and shivers to keep warm. It lives on the honey
that was stored in summer. On mild days workers leave the hive briefly.
What makes a volcano erupt explosively?
Thick magma traps the gases that are dissolved in it. When the pressure exceeds the strength of
the rock above, the mountain bursts and throws out ash and pumice. Runny lava flows out quietly
instead.
Why are there two high tides a day?
The moon pulls the ocean on the near side towards itself, and leaves a second bulge on the far
side. As the earth turns, each coast passes through both. At full and new moon the range is
greatest.
How often must a piano be tuned?
Makers recommend two tunings a year for an instrument at home. Dry air in the heating season
shrinks the soundboard, and the strings go flat. A concert grand is tuned before every
performance.
Where did jazz come from?
Jazz grew in New Orleans around 1900 from blues, ragtime and brass band music. Black musicians
improvised over marching rhythms. Trumpeters such as Louis Armstrong then made the soloist the
centre of the band.
Which documents do I need to renew my passport?
Bring the old passport, a recent biometric photograph and proof of your address. The office takes
your fingerprints at the appointment. Processing takes about four weeks, or three days for an
extra fee.
Why do the leaves of my tomato plants turn yellow?
Yellow lower leaves often mean that the plant lacks nitrogen or stands too wet. Spots with dark
rings point to blight, and those leaves should be cut off. Water the soil, not the foliage.
How can I stop my cat from scratching the sofa?
Cats scratch to sharpen their claws and to mark territory. Place a sturdy post beside the
furniture and rub catnip on it. Punishing the animal only frightens it.
How do I repair a dripping tap?
Turn off the water and unscrew the handle. In most cases a worn washer or cartridge no longer
seals and has to be replaced. Clean the lime from the seat before you put the valve together
again.
What tyre pressure is right for a car?
The value is printed on a sticker in the driver's door. Measure while the tyres are cold, since
driving heats the air inside. Underinflated wheels wear at the edges and use more fuel.
What is the fastest way to learn Spanish vocabulary?
Flash cards that return at growing intervals fix new words in memory. Learners who read short
stories and speak from the first week remember more than those who only study lists of verbs.
Which paper is best for watercolour painting?
Heavy cotton paper of 300 grams does not buckle when it gets wet. A rough surface lets pigment
settle in the hollows, while a hot-pressed sheet suits fine brush lines. Stretch thinner sheets on
a board.
How were cartoons animated before computers?
Artists drew every frame by hand, and assistants traced the drawings onto transparent sheets.
These were laid over a painted background and photographed one after another. A second of film
took up to twenty-four pictures.
When may the king castle in chess?
Castling is allowed if neither the king nor the rook has moved and no piece stands between them.
The king may not be in check, nor cross an attacked square. It moves two squares, and the rook
jumps over.
Why does iron rust faster near the sea?
Rust forms when metal meets oxygen and moisture. Salt in the spray makes the water film conduct
better, which speeds up the corrosion. Zinc coating or paint keeps steel safe.
How far away is a thunderstorm?
Count the seconds between the lightning and the thunder and divide by three to get kilometres.
Sound travels slowly, light at once. Seek shelter when the gap is under half a minute.
How many stitches do I cast on for a wool hat?
Knit a small swatch and count the stitches across ten centimetres. Multiply by the circumference
of the head and subtract a tenth, because ribbing stretches. Most adult hats start with about
ninety.
Which shutter speed freezes a running dog in a photo?
Moving animals need an exposure of a thousandth of a second or less. Open the aperture and raise
the sensitivity to let in enough light. Burst mode gives several frames to choose from.
How many hours of sleep do teenagers need?
Adolescents should sleep eight to ten hours a night. Their body clock shifts during puberty, so
they get tired late and wake late. Schools that start after half past eight report more alert
pupils.
How are votes turned into seats in parliament?
Under proportional representation each party receives mandates according to its share of the
ballot. In single-member districts only the candidate with the most votes is elected. Many
countries set a threshold of a few percent.
Why are glaciers in the Alps retreating?
Warm summers melt more ice than winter snowfall replaces. Since 1850 alpine glaciers have lost two
thirds of their volume. Meltwater fills new lakes in the valleys they leave behind.
What does a dentist do about a cavity?
The decayed part of the tooth is drilled out under local anaesthetic. The hole is then filled with
composite resin, which hardens under blue light. Deep decay that reaches the nerve needs a root
canal.
How is cheese made from milk?
Rennet and bacteria make the milk curdle. The curd is cut, drained and pressed into moulds, then
salted. Hard kinds ripen for months in a cellar, where a rind grows.
What should be in a letter of application for a job?
State the position, why it attracts you, and what you have achieved in earlier work. One page is
enough. Employers compare the letter with the résumé, so dates and titles have to agree.
How do ships pass through the locks of a canal?
A vessel enters the chamber and the gates close behind it. Valves let water in or out until the
level equals that of the next section. Then the forward gates open, and no pump is needed.
"""


def _pairs() -> list[tuple[str, str]]:
    pairs: list[tuple[str, list[str]]] = []
    for line in _SAMPLE.splitlines():
        if line.endswith("?"):
            pairs.append((line, []))
        else:
            pairs[-1][1].append(line)
    return [(question, " ".join(lines)) for question, lines in pairs]


PAIRS = tuple(_pairs())


UNRELATED_PERCENTILE = 95
RELATED_PERCENTILE = 90
"""High, because the best passage of many in a corpus is closer than an average related one."""
_DECIMALS = 4
"""Rounded, because a model's last bits depend on the number of threads."""

_measured: dict[ModelIdentity, Noise] = {}


def noise_of(provider: EmbeddingProvider) -> Noise:
    """What the cosines of a provider mean; measured once per process and model.

    Raises:
        EmbedderError: the model could not embed the sample.
    """
    model = provider.identity
    if model not in _measured:
        _measured[model] = _measure(provider)
    return _measured[model]


def _measure(provider: EmbeddingProvider) -> Noise:
    # Delayed: an index usually has the figures.

    size, dimensions = len(PAIRS), provider.identity.dimensions
    questions = provider.embed_queries([question for question, _ in PAIRS])
    passages = provider.embed_passages([passage for _, passage in PAIRS])
    cosines = (
        unit_vectors(questions, size, dimensions) @ unit_vectors(passages, size, dimensions).T
    ).clip(-1, 1)
    are_related = np.eye(size, dtype=bool)
    return Noise(
        floor=round(float(np.percentile(cosines[~are_related], UNRELATED_PERCENTILE)), _DECIMALS),
        related=round(float(np.percentile(cosines[are_related], RELATED_PERCENTILE)), _DECIMALS),
    )
