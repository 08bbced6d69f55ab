"""A small model answers from what it is given: the packet, or five chunks of an ordinary splitter.

Run: python benchmarks/local_agent.py SET FOLDER --url http://127.0.0.1:8080 [--most N]

SET is that of `packet.py`; FOLDER has, or gets, its databases. A question needs places. It may have
`answer`; without one, the text of its places stands for it. The server is any with the API of
OpenAI (`/v1/chat/completions`): Ollama, llama.cpp, LM Studio.

right       answers with the *facts* of the expected answer: its numbers and names (words with a
            digit, a capital within, or marks of code) that the question has not. With an `answer`
            all of them; of the text of places, which has more than the answer, one
tokens      of the prompt, as the server counts them, median
seconds     of an answer, median
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any
from urllib.request import Request, urlopen

import numpy as np
from packet import Corpus

from rolebundle.embedding.static import StaticProvider

CHUNK, OVERLAP, CHUNKS, SHARE = 1_000, 200, 5, 0.5
"""An ordinary splitter: characters of a chunk and of its overlap, chunks, the vectors' share."""
MAX_ANSWER_TOKENS = 120
_FACT = re.compile(
    r"`[^`\n]+`|[\w./:@%-]*\d[\w./:@%-]*|\w+(?:[._/:-]\w+)+|--[\w-]+|\w*[a-z][A-Z]\w*"
)
_WORD = re.compile(r"\w+")
PROMPT = (
    "Answer the question from the text in one or two sentences. Copy names and numbers exactly. "
    "If the text does not answer it, say so.\n\n{text}\n\nQuestion: {question}"
)


def facts(text: str, question: str) -> set[str]:
    """The numbers and names of a text that the question has not, in small letters."""
    found = {fact.strip("`.,:;-/").lower() for fact in _FACT.findall(text)}
    return {fact for fact in found if fact and fact not in question.lower()}


class FiveChunks:
    """Chunks of a fixed size; the five best by BM25 and cosine, each scaled to its maximum."""

    def __init__(self, files: Path) -> None:
        step = CHUNK - OVERLAP
        self.texts = [
            text[start : start + CHUNK]
            for path in sorted(files.rglob("*"))
            if path.is_file()
            for text in [path.read_text("utf-8", "replace")]
            for start in range(0, max(1, len(text) - OVERLAP), step)
        ]
        self.provider = StaticProvider()
        vectors = self.provider.embed_passages(self.texts)
        self.vectors = vectors / np.maximum(1e-9, np.linalg.norm(vectors, axis=1, keepdims=True))
        self.counts: dict[str, dict[int, int]] = {}
        self.sizes = np.zeros(len(self.texts))
        for number, text in enumerate(self.texts):
            words = _WORD.findall(text.lower())
            self.sizes[number] = len(words)
            for word in words:
                having = self.counts.setdefault(word, {})
                having[number] = having.get(number, 0) + 1

    def text(self, question: str) -> str:
        """The five best chunks."""
        scores, count = np.zeros(len(self.texts)), len(self.texts)
        lengths = 0.25 + 0.75 * self.sizes / self.sizes.mean()
        for word in {*_WORD.findall(question.lower())}:
            having = self.counts.get(word, {})
            idf = np.log(1 + (count - len(having) + 0.5) / (len(having) + 0.5))
            for number, times in having.items():
                scores[number] += idf * 2.2 * times / (times + 1.2 * lengths[number])
        cosines = self.vectors @ self.provider.embed_queries([question])[0]
        total = (1 - SHARE) * scores / max(1e-9, scores.max()) + SHARE * cosines / cosines.max()
        best = np.argsort(-total, kind="stable")[:CHUNKS]
        return "\n\n".join(self.texts[number] for number in best)


def ask(url: str, model: str, prompt: str) -> tuple[str, int, float]:
    """The answer of the server, the tokens of the prompt, and the seconds that it took."""
    fields = {
        "model": model,
        "messages": [{"role": "user", "content": prompt}],
        "temperature": 0,
        "max_tokens": MAX_ANSWER_TOKENS,
    }
    header = {"Content-Type": "application/json"}
    started = perf_counter()
    request = Request(f"{url}/v1/chat/completions", json.dumps(fields).encode(), header)
    with urlopen(request, timeout=600) as reply:
        answer: Any = json.load(reply)
    text = answer["choices"][0]["message"]["content"] or ""
    return text, answer["usage"]["prompt_tokens"], perf_counter() - started


def is_right(answer: str, question: Mapping[str, Any], corpus: Corpus) -> bool | None:
    """Whether an answer has the expected facts; ``None`` if none are known."""
    expected = question.get("answer") or "\n".join(
        line
        for place in question["places"]
        for line in corpus.lines(place["path"])[place["lines"][0] - 1 : place["lines"][1]]
    )
    wanted, said = facts(expected, question["question"]), answer.lower()
    has = [fact in said for fact in wanted]
    return (all(has) if "answer" in question else any(has)) if has else None


def main() -> None:
    """Ask the questions in each form, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("set", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--url", required=True)
    parser.add_argument("--model", default="default")
    parser.add_argument("--most", type=int, default=60)
    parser.add_argument("--chars", type=int, nargs="*", default=[1_500, 2_800, 6_000])
    arguments = parser.parse_args()
    lines = (arguments.set / "questions.jsonl").read_text("utf-8").splitlines()
    questions = [question for question in map(json.loads, lines) if question["places"]]
    questions = questions[:: max(1, len(questions) // arguments.most)][: arguments.most]
    arguments.folder.mkdir(exist_ok=True)
    names = sorted({question["corpus"] for question in questions})
    folders = {name: arguments.set / "corpus" / name for name in names}
    corpora = {name: Corpus(folders[name], arguments.folder / f"{name}.db") for name in names}
    splitters = {name: FiveChunks(folders[name]) for name in names}

    def packet_of(most: int) -> Callable[[Mapping[str, Any]], str]:
        return lambda question: corpora[question["corpus"]].operations.text(
            "retrieve", {"task": question["question"], "max_chars": most}
        )

    forms = {f"packet of {most:,} characters": packet_of(most) for most in arguments.chars}
    forms[f"{CHUNKS} chunks"] = lambda question: splitters[question["corpus"]].text(
        question["question"]
    )
    print("| given | right | tokens | seconds |\n| --- | --- | --- | --- |")
    for name, text_of in forms.items():
        judged, tokens, seconds = [], [], []
        for question in questions:
            prompt = PROMPT.format(text=text_of(question), question=question["question"])
            answer, size, took = ask(arguments.url, arguments.model, prompt)
            verdict = is_right(answer, question, corpora[question["corpus"]])
            judged += [] if verdict is None else [verdict]
            tokens.append(size)
            seconds.append(took)
        right = f"{sum(judged)} of {len(judged)}"
        print(f"| {name} | {right} | {median(tokens):,.0f} | {median(seconds):.1f} |", flush=True)


if __name__ == "__main__":
    main()
