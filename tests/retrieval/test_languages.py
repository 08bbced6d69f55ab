"""A corpus in many languages is searched as well as an English one. Identifiers match exactly."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rolebundle.admin import Admin
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.engine import Engine
from rolebundle.ingest.options import IngestOptions

DOCUMENTS = {
    "de": "Die Schlüssel der Server werden vom Betrieb jeden Monat erneuert und geprüft.",
    "de2": "Der Speicher für die Anhänge ist in der Regel voll, wenn viele Bilder darin liegen.",
    "es": "Las copias de seguridad se guardan en otro edificio y se comprueban cada semana.",
    "ru": "Резервные копии хранятся в другом здании, и мы проверяем их каждую неделю.",
    "uk": "Резервні копії зберігаються в іншій будівлі, і ми їх перевіряємо щотижня.",
    "zh": "服务器的密钥每月由运维团队轮换一次，使用rolectl-v2.1.3版本。",
    "zh2": "附件的存储空间通常会因为图片太多而不足。",
    "ja": "サーバーの鍵は毎月運用チームが更新します。",
    "th": "กุญแจของเซิร์ฟเวอร์จะถูกเปลี่ยนทุกเดือนโดยทีมปฏิบัติการ",
    "ar": "يتم تجديد مفاتيح الخوادم كل شهر من قبل فريق العمليات.",
    "hi": "सर्वर की कुंजियाँ हर महीने संचालन दल द्वारा बदली जाती हैं।",
    "en": "The operations team rotates the keys of the servers every month. See E_CONFLICT:409.",
}
QUESTIONS = {
    "de": "Wer erneuert den Schlüssel eines Servers?",
    "de2": "Warum ist das Bild eines Anhangs nicht gespeichert?",
    "es": "¿Dónde se guarda la copia?",
    "ru": "Где хранится резервная копия?",
    "uk": "Де зберігають резервну копію і як її перевіряють?",
    "zh": "密钥多久轮换？",
    "zh2": "为什么存储不足？",
    "ja": "鍵の更新は誰がしますか",
    "th": "ใครเปลี่ยนกุญแจ",
    "ar": "من يجدد مفتاح الخادم؟",
    "hi": "कुंजी कौन बदलता है?",
    "en": "Who rotates a server's key?",
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = tmp_path_factory.mktemp("languages")
    (folder / "wiki").mkdir()
    for name, text in DOCUMENTS.items():
        (folder / "wiki" / f"{name}.txt").write_text(text, encoding="utf-8")
    with Engine(folder / "c.db") as opened:
        Admin(opened.workspace).ingest([folder / "wiki"], IngestOptions(lexical_only=True))
        yield opened


def first(engine: Engine, task: str) -> str:
    found = engine.retrieve(RetrievalRequest(task=task, lexical_only=True)).selected
    return found[0].document_id if found else ""


@pytest.mark.parametrize("language", QUESTIONS)
def test_a_task_finds_the_document_in_its_language(engine: Engine, language: str) -> None:
    assert first(engine, QUESTIONS[language]) == f"wiki/{language}.txt"


@pytest.mark.parametrize(
    ("task", "name"),
    [("rolectl-v2.1.3", "zh"), ("rolectl", "zh"), ("v2.1.3", "zh"), ("E_CONFLICT:409", "en")],
)
def test_identifiers_stay_exact(engine: Engine, task: str, name: str) -> None:
    found = engine.retrieve(RetrievalRequest(task=task, lexical_only=True)).selected
    assert [passage.document_id for passage in found] == [f"wiki/{name}.txt"]
