"""Overlay files for tests."""

import json
from pathlib import Path

from hypothesis import strategies as st


def write(folder: Path, role_id: str, name: str = "", **keys: object) -> Path:
    path = folder / f"{name or role_id}.json"
    path.write_text(json.dumps({"version": "1.0", "role_id": role_id, **keys}), encoding="utf-8")
    return path


phrases = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1).map(str.strip).filter(bool), max_size=3)  # fmt: skip
boosts = st.floats(0.1, 100)
overlays = st.fixed_dictionaries(
    {"version": st.just("1.0"), "role_id": st.just("a")},
    optional={
        "label": st.text(st.characters(codec="utf-8", exclude_characters="\x00")),
        "anti_goals": st.lists(st.sampled_from(["x", "y", ""])),
        "vocabulary": st.fixed_dictionaries(
            {}, optional={"boost_phrases": phrases, "synonyms": st.dictionaries(st.sampled_from("pqr"), phrases)}
        ),
        "source_policy": st.fixed_dictionaries(
            {},
            optional={
                "domain_boosts": st.dictionaries(st.sampled_from("def"), boosts),
                "forbidden_sources": st.lists(st.fixed_dictionaries({"pattern": st.sampled_from("mno")}, optional={"boost": st.none() | boosts}), max_size=2),
            },
        ),
        "retrieval_policy": st.fixed_dictionaries(
            {},
            optional={
                "min_score": st.floats(0, 2),
                "freshness_max_age_days": st.none() | st.floats(1, 900),
                "require_source_diversity": st.booleans(),
            },
        ),
    },
)  # fmt: skip
