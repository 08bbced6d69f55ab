"""Function words per language: removed from queries, and used to detect the language of a text.

They come from lists of the most frequent words. A word that several languages share is in the list
of each of them, so that it does not favour one.
"""

from __future__ import annotations

ENGLISH_STOP_WORDS = frozenset(
    """
    a about above after again all also am an and any are as at be because been before being below
    between both but by can could did do does doing down during each few for from further get gets
    getting had has have having he her here hers him his how i if in into is it its itself just
    let like make makes making many may me might more most much must my need needed needs no nor
    not now of off on once one only or other our ours out over own per please put said same say
    says shall she should so some such tell than that the their theirs them then there these
    they this those through to too under until up upon us use used uses using very want wants was
    way ways we were what when where whether which while who whom whose why will with within
    without work works would yes yet you your yours
    """.split()
)

NEGATIONS = frozenset("no not never none nobody nothing neither nor cannot without nowhere".split())
"""English words that deny; besides the contractions that end with "n't"."""

NUMBER_WORDS: dict[str, float] = {
    word: float(number)
    for number, word in enumerate(
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
        "sixteen seventeen eighteen nineteen twenty".split(),
        start=1,
    )
}
NUMBER_WORDS |= {
    word: 10.0 * number
    for number, word in enumerate("thirty forty fifty sixty seventy eighty ninety".split(), start=3)
}
"""English numbers as words, and their values."""


_WORDS = {
    "da": "og det er ikke som på til af den med har de en at vi kan jeg et hvad hvor hvordan der"
    " blev ved eller fra efter",
    "de": "und der die das ist nicht ein eine einer eines einem einen mit auf für von dem den des"
    " im zu sich wird werden auch als wie was wer wo wann welche welcher welches oder sind"
    " bei aus durch nach wenn kann können über zum zur wurde hat haben sie ich wir ihr es er"
    " man warum wieviel viele",
    "es": "el la los las de del que y en un una es por con para se no su al lo como más qué cuál"
    " cuándo dónde quién cómo cuántos cuántas son está fue ha o sobre entre este esta si"
    " cuando también pero sin",
    "fr": "le la les des du de et en un une est que qui dans pour pas sur au aux avec ce cette ne"
    " se il elle sont par plus ou où quel quelle quels quelles comment quand pourquoi"
    " combien a été leur nous vous si l d",
    "it": "il lo la gli le di del della dei delle che e è un una in per con non si da al alla nel"
    " nella come più sono quale quali quando dove chi perché quanti anche o ma questo questa"
    " i",
    "pt": "o a os as do da dos das que e em um uma é para com não se por no na nos nas ao mais"
    " como são qual quais quando onde quem quantos foi ou seu sua também mas está",
    "nl": "de het een en van is niet dat op te met voor zijn er aan door ook wordt worden bij of"
    " wat hoe waar wie welke wanneer waarom als naar uit over kan werd hebben heeft deze die",
    "sv": "och att det som en på är av för med den till inte om har de ett vad hur var vem vilken"
    " vilka när varför kan från vid eller jag vi så",
    "no": "og det er ikke som på til av den med har de en et for hva hvor hvordan hvem når"
    " hvilken kan fra ved eller jeg vi blir ble etter",
    "fi": "ja on ei se että oli hän mutta kuin ovat mitä missä milloin kuka miten mikä tai myös"
    " joka jotka voi sen tämä niin kun jos ole",
    "hu": "a az és hogy nem is egy van volt meg ez azt mi hol mikor ki hogyan melyik vagy de csak"
    " már mint el ha kell lehet",
    "ro": "și în la cu de pe nu este un o care din ce să se mai pentru sunt al ale cum când unde"
    " cine cât câte sau fost prin",
    "ca": "el la els les de del dels que i en un una és per amb no es al com més què quan on qui"
    " són va aquest aquesta o però també",
    "cs": "a je v se na že s z do to o i jak co kde kdy kdo jaký která které nebo by není jsou"
    " pro od po při jako byl bylo",
    "pl": "i w na z do nie się jest że to o jak co gdzie kiedy kto jaki która które lub dla od po"
    " przez był było są oraz przy ile",
    "tr": "ve bir bu için ile olan da de ne nasıl nerede kim hangi kaç olarak daha gibi çok en ya"
    " veya değil ise kadar sonra var mı mi",
    "id": "dan yang di dari untuk dengan ini itu dalam pada adalah tidak ke akan oleh apa siapa"
    " bagaimana kapan atau juga bisa dapat sebagai ada berapa mana",
    "vi": "và của là có được cho không các trong một những với này để khi người từ đã gì nào như"
    " thế ở đâu ai bao nhiêu hoặc bạn trên theo",
    "lt": "ir yra kad su iš į tai ne bet kaip kas kur kada arba nuo už jis ji buvo apie taip pat",
    "et": "ja on ei et see oli mis kus millal kes kuidas või ka aga kui seda nii oma mida",
}
STOP_WORDS = {code: frozenset(words.split()) for code, words in _WORDS.items()} | {
    "en": ENGLISH_STOP_WORDS
}
"""Language code (ISO 639-1) → function words."""
