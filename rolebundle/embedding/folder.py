"""Sentence models and cross-encoders of BERT's class in a folder, as they are distributed.

The layout is that of Sentence Transformers (https://sbert.net). What is hashed is what is used,
whatever happens to the files afterwards.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from hashlib import sha256
from math import inf, isfinite, tanh
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from rolebundle.contracts.documents import ModelIdentity
from rolebundle.embedding import transformer
from rolebundle.embedding.packaged import cores
from rolebundle.embedding.provider import folder_name, prefixes_for, prepared, windows_of
from rolebundle.errors import EmbedderError
from rolebundle.lazy import numpy as np

PREPARATION = "folder-1"  # of how texts are tokenized and computed; part of the digest
_WEIGHTS = "model.safetensors"
_KINDS = "embeddings.token_type_embeddings.weight"
_ARCHITECTURE = {
    "model_type": ("bert", "roberta", "xlm-roberta", "camembert"),
    "hidden_act": tuple(transformer.ACTIVATIONS),
    "position_embedding_type": ("absolute", None),
    "is_decoder": (False, None),
}


class _Folder:
    """The files of a model.

    Raises:
        EmbedderError: ``model_missing``: a file; ``model_unusable``: damaged, too large, or parts
            that do not fit; ``model_unsupported``: another architecture.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.hash = path, sha256(PREPARATION.encode())
        self.config = self.settings("config.json")
        for key, known in _ARCHITECTURE.items():
            if (found := self.config.get(key)) not in known:
                names = ", ".join(str(name) for name in known if name)
                reason = f"config.json: {key} is {found!r:.60}; those that can be read: {names}"
                raise self.error("model_unsupported", reason)
        self.is_bert = self.config["model_type"] == "bert"
        self.tokenizer = self._read_tokenizer()
        self.tensors = self._read_tensors()

    def error(self, code: str, reason: str) -> EmbedderError:
        hint = "name a folder with a model of BERT's class, complete as it is distributed"
        return EmbedderError(code, f"the model in {self.path}: {reason}", hint)

    @contextmanager
    def fits(self, reason: str) -> Iterator[None]:
        """Report what is missing, or does not fit, when it is used."""
        try:
            yield
        except (LookupError, ValueError, TypeError, AttributeError, ArithmeticError) as error:
            detail = f"{type(error).__name__}: {error!s:.100}"
            raise self.error("model_unusable", f"{reason} ({detail})") from error

    def content(self, name: str, default: bytes = b"") -> bytes:
        """The content of a file, or the default of one that may be missing."""
        path, most = self.path / name, 4 << 30 if name == _WEIGHTS else 64 << 20
        if default and not path.exists():
            return default
        if not path.is_file():
            missing = f"{name} is missing" if self.path.is_dir() else "there is no such folder"
            raise self.error("model_missing", missing)
        try:
            if path.stat().st_size > most:
                raise self.error("model_unusable", f"{name} has more than {most >> 20:,} MiB")
            content = path.read_bytes()
        except OSError as error:
            reason = f"{name} cannot be read ({error.strerror})"
            raise self.error("model_unusable", reason) from error
        self.hash.update(f"{name} {sha256(content).hexdigest()}".encode())
        return content

    def settings(self, name: str, default: bytes = b"", kind: type = dict) -> Any:
        """The settings in a JSON file."""
        try:
            settings = json.loads(self.content(name, default))
        except (ValueError, RecursionError):
            settings = None
        if not isinstance(settings, kind):
            raise self.error("model_unusable", f"{name} is not JSON of its form")
        return settings

    def linear(self, *names: str) -> transformer.Step:
        weights = [self.tensors[f"{name}.weight"] for name in names]
        biases = [self.tensors[f"{name}.bias"] for name in names]
        return transformer.affine(np.concatenate(weights).T, np.concatenate(biases))

    def network(self, *, takes_first: bool = True) -> transformer.Network:
        config, tensors = self.config, self.tensors
        options = self.settings("sentence_bert_config.json", b"{}")
        tokens = self.settings("tokenizer_config.json", b"{}")
        words = tensors["embeddings.word_embeddings.weight"]
        # RoBERTa counts positions from the number of its padding token, plus 1.
        first = 0 if self.is_bert else config.get("pad_token_id", 1) + 1
        positions = tensors["embeddings.position_embeddings.weight"][first:] + tensors[_KINDS][0]
        most = options.get("max_seq_length") or inf, tokens.get("model_max_length") or inf

        def norm(name: str) -> transformer.Step:
            values = tensors[f"{name}.weight"], tensors[f"{name}.bias"]
            return transformer.normalization(*values, config["layer_norm_eps"])

        def token_ids(text: str) -> list[int]:
            text = text.lower() if options.get("do_lower_case") else text
            [encoded] = self.tokenizer.encode_batch_fast([text])
            return [*encoded.ids]

        def embeddings(ids: list[int]) -> Any:
            if max(ids) >= len(words):
                raise self.error("model_unusable", f"{_WEIGHTS} lacks tokens of tokenizer.json")
            return words[ids] + positions[: len(ids)]

        layers = transformer.encoder_layers(
            config["num_hidden_layers"],
            config["num_attention_heads"],
            self.linear,
            norm,
            transformer.ACTIVATIONS[config["hidden_act"]],
        )
        if len(token_ids("")) < 2:
            raise self.error("model_unsupported", "tokenizer.json puts no marks around a text")
        context, last = int(min(len(positions), *most)), norm("embeddings.LayerNorm")
        return transformer.Network(token_ids, embeddings, last, layers, takes_first, context)

    def _read_tensors(self) -> dict[str, transformer.Floats]:
        from safetensors import SafetensorError
        from safetensors.numpy import load

        try:
            stored = load(self.content(_WEIGHTS))
        except (SafetensorError, KeyError) as error:  # a type of numbers that numpy has not
            raise self.error("model_unusable", f"{_WEIGHTS} cannot be read ({error})") from error
        return {
            name.removeprefix("bert.").removeprefix("roberta."): np.asarray(values, np.float32)
            for name, values in stored.items()
            if values.dtype.kind == "f"
        }

    def _read_tokenizer(self) -> Any:
        """The tokenizer, to which the words of its special tokens are ordinary text (law 4)."""
        from tokenizers import Tokenizer

        stored = self.settings("tokenizer.json")
        try:
            added, model = stored["added_tokens"], stored["model"]
            special = {token["content"]: "\0" for token in added if token["special"]}
            stored["added_tokens"] = [token for token in added if not token["special"]]
            stored["truncation"] = stored["padding"] = None
            # No text has a NUL character. WordPiece needs its unknown token under its name.
            special.pop(model.get("unk_token"), None)
            if isinstance(words := model["vocab"], dict):
                model["vocab"] = {special.get(word, "") + word: n for word, n in words.items()}
            else:
                model["vocab"] = [(special.get(word, "") + word, n) for word, n in words]
            return Tokenizer.from_str(json.dumps(stored))
        # The tokenizers library raises a bare Exception if it cannot read a file.
        except Exception as error:
            reason = f"tokenizer.json cannot be read ({error!s:.100})"
            raise self.error("model_unusable", reason) from error


def sentence_model(path: Path) -> tuple[ModelIdentity, transformer.Network]:
    """The sentence model in a folder, identified by its files.

    Raises:
        EmbedderError: it cannot be used.
    """
    folder = _Folder(path)
    modules = folder.settings("modules.json", kind=list)
    with folder.fits("modules.json is not of its form"):
        kinds = [module["type"].rpartition(".")[2] for module in modules]
        if [*kinds, "Normalize"][:3] != ["Transformer", "Pooling", "Normalize"] or kinds[3:]:
            raise folder.error("model_unsupported", f"modules.json: {', '.join(kinds)}")
        file = f"{modules[1]['path']}/config.json"
    pooling = folder.settings(file)
    modes = [key[13:] for key, value in pooling.items() if "pooling_mode_" in key and value is True]
    mode = str(pooling.get("pooling_mode") or "+".join(modes)).partition("_tokens")[0]
    if mode not in ("mean", "cls", "cls_token") or pooling.get("include_prompt") is False:
        raise folder.error("model_unsupported", f"{file}: pooling by {mode or 'nothing'}")
    options = folder.settings("config_sentence_transformers.json", b"{}")
    compared = options.get("similarity_fn_name") or "cosine"
    if kinds[2:] == [] and compared != "cosine":
        raise folder.error("model_unsupported", f"its vectors are compared by {compared}")
    name, prompts = folder_name(str(path)), options.get("prompts") or {}

    def prompt(*names: str) -> str:
        found = (prompts.get(name) for name in (*names, options.get("default_prompt_name")))
        return next(filter(None, found), "")

    with folder.fits(f"{_WEIGHTS} does not fit the other files"):
        prefixes = prompt("query"), prompt("document", "passage", "corpus")
        network = folder.network(takes_first=mode != "mean")
        [width] = network.vector(network.token_ids("")).shape
    digest = folder.hash.hexdigest()[:16]
    prefixes = prefixes if any(prefixes) else prefixes_for(name)
    return ModelIdentity("folder", name, digest, width, *prefixes), network


class FolderCrossEncoder:
    """The cross-encoder in a folder.

    A passage that is longer than its context is read in windows, and has the score of the best.

    Raises:
        EmbedderError: it cannot be used.
    """

    def __init__(self, path: str) -> None:
        self._folder = folder = _Folder(Path(path))
        inner, outer = "pooler.dense", "classifier"
        if not folder.is_bert:
            inner, outer = "classifier.dense", "classifier.out_proj"
        if len(folder.tensors.get(f"{outer}.weight", ())) != 1:
            raise folder.error("model_unsupported", f"{_WEIGHTS} has no {outer} with one output")
        with folder.fits(f"{_WEIGHTS} does not fit the other files"):
            self._network, self._kinds = folder.network(), folder.tensors[_KINDS]
            self._inner, self._outer = folder.linear(inner), folder.linear(outer)
            self._logit("", "")

    def scores(self, question: str, passages: Sequence[str]) -> list[float]:
        """The scores of passages, in their order, from 0 to 1.

        Raises:
            EmbedderError: the question is as long as the context, or a score is not a number.
        """
        [query, *texts] = prepared([question, *passages], "")
        with threadpool_limits(1), ThreadPoolExecutor(cores()) as pool:
            logits = [*pool.map(self._logit, [query] * len(texts), texts)]
        if not all(map(isfinite, logits)):
            raise self._folder.error("model_failed", "a score is not a number")
        return [(1 + tanh(logit / 2)) / 2 for logit in logits]

    def _tokens(self, question: str, passage: str) -> Any:
        [encoded] = self._folder.tokenizer.encode_batch_fast([(question, passage)])
        return encoded

    def _logit(self, question: str, passage: str) -> float:
        context = self._network.context
        windows = windows_of(passage, "", context, lambda text: len(self._tokens(question, text)))
        return max(self._of_window(self._tokens(question, window)) for window, _ in windows)

    def _of_window(self, tokens: Any) -> float:
        # RoBERTa has one kind.
        kinds = self._kinds[np.minimum(tokens.type_ids, len(self._kinds) - 1)] - self._kinds[0]
        states = self._network.states(self._network.embeddings(tokens.ids) + kinds)
        return float(self._outer(np.tanh(self._inner(states[:1]))).item())


cross_encoder = lru_cache(maxsize=2)(FolderCrossEncoder)
"""The cross-encoder in a folder, once for all threads of a process."""
