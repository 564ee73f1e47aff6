"""A model's name in, what stands before a query and before a passage out. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

VERSION = 1  # part of the encoders' names: another prefix makes other vectors


@dataclass(frozen=True, slots=True)
class Prefixes:
    query: str = ""
    passage: str = ""


_INSTRUCT = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: "
_SEARCHING = "Represent this sentence for searching relevant passages: "

# First match wins; from the models' own cards. A name matches anywhere in a path or a `owner/model:tag`, between separators.
_BY_NAME: tuple[tuple[str, Prefixes], ...] = (
    (r"e5-[\w.-]*instruct", Prefixes(_INSTRUCT)),
    (r"e5-(small|base|large)", Prefixes("query: ", "passage: ")),
    (r"bge-(small|base|large)-zh", Prefixes("为这个句子生成表示以用于检索相关文章：")),
    (r"bge-(small|base|large)(-en)?", Prefixes(_SEARCHING)),  # bge-m3 wants none
    (r"mxbai-embed-(large|xsmall)", Prefixes(_SEARCHING)),
    (r"(snowflake-)?arctic-embed-?[lm]-v2|(snowflake-)?arctic-embed2", Prefixes("query: ")),
    (r"(snowflake-)?arctic-embed", Prefixes(_SEARCHING)),
    (r"nomic-embed-(text|v)", Prefixes("search_query: ", "search_document: ")),
    (r"modernbert-embed", Prefixes("search_query: ", "search_document: ")),
    (r"embeddinggemma", Prefixes("task: search result | query: ", "title: none | text: ")),
    (r"qwen3-embedding", Prefixes(_INSTRUCT)),
    (r"gte-qwen2?[\w.-]*instruct", Prefixes(_INSTRUCT)),
    (r"ruri-v3", Prefixes("検索クエリ: ", "検索文書: ")),
)
_PATTERNS = tuple((re.compile(rf"(?:^|[^a-z0-9]){pattern}"), prefixes) for pattern, prefixes in _BY_NAME)


def prefixes_of(model: str) -> Prefixes:
    """Both empty for a model that wants none, and for one that is not known."""
    name = model.lower().replace("_", "-").replace("\\", "/")
    return next((prefixes for pattern, prefixes in _PATTERNS if pattern.search(name)), Prefixes())
