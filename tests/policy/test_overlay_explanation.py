"""Each value of an overlay has the file that gives it, or is a default or rescaled."""

from pathlib import Path

from rolebundle.contracts.overlay import WEIGHTS
from rolebundle.policy.explained import explained_values
from rolebundle.policy.overlays import load_file
from support.overlay_files import write


def origins(path: Path) -> dict[str, tuple[str, str | None]]:
    values = explained_values(load_file(path, [path.parent]))
    return {value.place: (value.origin, value.path and Path(value.path).stem) for value in values}


def test_the_nearest_file_that_gives_a_value_is_its_origin(tmp_path: Path) -> None:
    write(
        tmp_path,
        "base",
        label="Base",
        mission="Read.",
        vocabulary={"boost_phrases": ["one"], "synonyms": {"auth": ["login"], "token": ["key"]}},
        retrieval_policy={"freshness_max_age_days": 90, "max_selected_chunks": 4},
    )
    path = write(
        tmp_path,
        "child",
        extends="base",
        label="Child",
        vocabulary={"synonyms": {"token": ["secret"]}},
        source_policy={"forbidden_sources": [{"pattern": "a"}, {"path": "b", "boost": None}]},
        retrieval_policy={"freshness_max_age_days": None},
    )
    found = origins(path)
    assert found["label"] == found["role_id"] == found["extends"] == ("file", "child")
    assert found["mission"] == found["vocabulary.boost_phrases"] == ("file", "base")
    assert found["vocabulary.synonyms.auth"] == ("file", "base")
    assert found["vocabulary.synonyms.token"] == ("file", "child")
    assert found["source_policy.forbidden_sources[1]"] == ("file", "child")
    assert found["retrieval_policy.max_selected_chunks"] == ("file", "base")
    assert found["retrieval_policy.freshness_max_age_days"] == ("default", None)
    assert found["retrieval_policy.lexical_weight"] == ("default", None)
    values = explained_values(load_file(path, [tmp_path]))
    [rule] = [value.value for value in values if value.place.endswith("sources[1]")]
    assert rule == {"path": "b"}


def test_a_rescaled_weight_names_the_file_that_gives_the_others(tmp_path: Path) -> None:
    write(tmp_path, "base", retrieval_policy={"lexical_weight": 0.4, "semantic_weight": 0.2})
    path = write(tmp_path, "child", extends="base", retrieval_policy={"semantic_weight": 0.6})
    found = origins(path)
    rescaled = [name for name in WEIGHTS if found[f"retrieval_policy.{name}"][0] == "rescaled"]
    assert rescaled == ["lexical_weight", "metadata_weight", "rerank_weight"]
    assert found["retrieval_policy.lexical_weight"] == ("rescaled", "child")
    assert found["retrieval_policy.semantic_weight"] == ("file", "child")
