"""Ordinary documents in many languages, written for the scan's tests.

Each language has sentences that use what a scan might take for hidden text: joiners, marks, flags,
formulas, Latin names. A document is a heading and some sentences in an order of its own.
"""

import random

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"
DEVELOPER = "\U0001f469\U0001f3fd\u200d\U0001f4bb"
RAINBOW = "\U0001f3f3\ufe0f\u200d\U0001f308"
PIRATE = "\U0001f3f4\u200d\u2620\ufe0f"
HEART_ON_FIRE = "\u2764\ufe0f\u200d\U0001f525"
SCOTLAND = "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"
WALES = "\U0001f3f4\U000e0067\U000e0062\U000e0077\U000e006c\U000e0073\U000e007f"
EYE = "\U0001f441\ufe0f\u200d\U0001f5e8\ufe0f"

SENTENCES: dict[str, list[str]] = {
    "english": [
        "The tablet keeps its token for thirty days, then asks again.",
        "Offline sync writes a journal first; see docs/sync.md for details.",
        "Set `timeout_ms` to 10000 and restart the service.",
        "Naïve clients retry at once — that’s what the café’s Wi-Fi didn’t survive.",
        "The signal rises with νmax, and TNFα inhibits NFκB via IκBα.",
        "A 5 μm gap and a 10 kΩ resistor are enough; Δx is under 2 µs.",
    ],
    "persian": [
        "این برنامه می‌تواند بدون اینترنت کار کند.",
        "کتاب‌ها را در پوشه‌ی Documents‌ها نگه می‌داریم.",
        "برای نصب، فایل setup.exe\u200f را اجرا کنید.",
        "نسخه‌های پیشین هنوز پشتیبانی می‌شوند.",
        "کاربران می‌گویند که سرعت آن خوب است.",
    ],
    "arabic": [
        "افتح الملف config.json\u200f ثم أعد التشغيل.",
        "الإصدار \u2066v3.0.1\u2069 متاح الآن.",
        "راجع قسم \u202bالأمان (Security)\u202c قبل النشر.",
    ],
    "urdu": ["براہِ کرم فائل‌ کو محفوظ کریں۔", "نئی دستاویزات میں Python\u200f کی مثالیں ہیں۔"],
    "hebrew": [
        "פתחו את הקובץ README.md\u200f והמשיכו משם.",
        "הגרסה \u200eC++17\u200e נתמכת במלואה.",
        "ראו \u2067את הסעיף על אבטחה\u2069 בהמשך.",
    ],
    "hindi": ["क्\u200dष और श्\u200dर के रूप अलग दिखते हैं।", "राष्\u200cट्र शब्द में जोड़ रोका गया है।"],
    "bengali": ["র\u200d্যাব একটি সংক্ষিপ্ত নাম।", "উত্\u200cসব আগামী সপ্তাহে।"],
    "sinhala": ["ශ්\u200dරී ලංකාව දිවයිනකි.", "මෙම ලේඛනය ප්\u200dරයෝජනවත් වේ.", "ක්\u200dෂණිකව පිළිතුරු ලැබේ."],
    "malayalam": ["അവന്\u200d വീട്ടിൽ ഉണ്ട്.", "ഈ രേഖ എല്ലാവർക്കും വായിക്കാം.", "തമിഴ്\u200cനാട് അയൽ സംസ്ഥാനമാണ്."],
    "thai": ["เอกสาร\u200bนี้\u200bปรับปรุง\u200bทุก\u200bเดือน", "เปิดไฟล์\u200bREADME\u200bก่อนเริ่มงาน"],
    "khmer": [
        "ឯកសារ\u200bនេះ\u200bត្រូវ\u200bបាន\u200bធ្វើ\u200bបច្ចុប្បន្នភាព។",
        "ភាសា\u200bខ្មែរ\u200bសរសេរ\u200bដោយ\u200bគ្មាន\u200bដកឃ្លា។",
    ],
    "burmese": ["ဤ\u200bစာရွက်\u200bစာတမ်း\u200bကို ဖတ်ပါ။", "မြန်မာ\u200bဘာသာ\u200bစကား"],
    "lao": ["ເອກະສານ\u200bນີ້\u200bແມ່ນ\u200bໃໝ່.", "ພາສາ\u200bລາວ"],
    "mongolian": ["ᠮᠣᠩᠭᠣᠯ ᠬᠡᠯᠡ", "ᠪᠠᠢ\u180bᠭ᠎ᠠ ᠨᠣᠮ\u180e\u1820", "ᠨᠢ\u180c ᠭᠡᠷ"],
    "chinese": ["葛\U000e0100城区与辻\U000e0101先生的写法不同。", "标点，\ufe00也有变体。"],
    "japanese": ["葛\U000e0101飾区の担当者がREADMEを更新しました。"],
    "korean": ["옛한글 \u1112\u119e\u11ab 표기와 \u115f\u1161 자모도 있습니다."],
    "russian": [
        "API-ключ хранится только на устройстве, а URLы — в базе.",
        "Сохраните PDFку и проверьте IDшник в Wi-Fi-сети.",
    ],
    "greek": [
        "Η ενέργεια είναι E = hν και η πυκνότητα ρ.",
        "Αντίσταση 10 kΩ, μήκος κύματος λ = 5 μm.",
        "Η σταθερά α και ο λόγος ΔE/Δt μετρήθηκαν.",
    ],
    "german": ["Die Donau\u00addampf\u00adschiff\u00adfahrt ist lang."],
    "tamil": ["இந்த நிரல் இணையம் இல்லாமல் இயங்கும்.", "க்\u200cஷ எழுத்து வேறு."],
    "emoji": [
        f"Family {FAMILY} and {DEVELOPER} say hello {RAINBOW}.",
        f"Fly {SCOTLAND} and {WALES}, not {PIRATE}!",
        f"Press 1\ufe0f\u20e3, then #\ufe0f\u20e3 or *\ufe0f\u20e3. {HEART_ON_FIRE}",
        f"Call \u260e\ufe0e or \u260e\ufe0f, check \u2714\ufe0f, warn \u26a0\ufe0f, seen {EYE}.",
        "Up \u2b06\ufe0f, down \u2b07\ufe0f, \u00a9\ufe0f and \u2122\ufe0f, \u263a\ufe0f \U0001f44d\U0001f3fd.",
    ],
    "mathematics": [
        "Let 𝑓(𝑥) = 𝑎𝑥² + 𝑏 for all 𝑥 ∈ ℝ, with 𝒢 a group.",
        "α, β and γ rays; the αβ-crystallin chain; ∑ xᵢ ≤ ∞.",
        "The union ∩\ufe00 is drawn with serifs, and 0\ufe00 with a slash.",
    ],
    "braille": ["⠓⠑⠇⠇⠕⠀⠺⠕⠗⠇⠙", "⠃⠗⠁⠊⠇⠇⠑"],
}


def documents(count: int, seed: int = 5) -> list[tuple[str, str]]:
    """Documents as pairs of language and text; every language in turn."""
    chance = random.Random(seed)
    names = sorted(SENTENCES)
    found = []
    for number in range(count):
        name = names[number % len(names)]
        own = SENTENCES[name]
        body = [chance.choice(own) for _ in range(chance.randint(3, 9))]
        if number % 4 == 0 and name not in {"mongolian", "braille"}:
            body.append(chance.choice(SENTENCES["emoji"]))
        if number % 7 == 0:
            body.append(chance.choice(SENTENCES["english"]))
        text = f"# {number}. {own[number // len(names) % len(own)]}\n\n" + chance.choice(
            ["\n", " "]
        ).join(body)
        found.append((name, ("\ufeff" if number % 50 == 49 else "") + text + "\n"))
    return found
