from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from archiver.embed import choose
from archiver.embed.choose import is_light, open_embedder
from store.errors import WwtError
from store.messages import text


def test_default_model_is_the_universal_one(embedder_cache: Path) -> None:
    embedder = open_embedder("use-multilingual", cache=embedder_cache)
    assert embedder is not None
    assert embedder.model.startswith("use-multilingual@")
    assert embedder.query("말").shape == (embedder.dimensions,)


def test_none_means_words_alone(tmp_path: Path) -> None:
    assert open_embedder("none", cache=tmp_path) is None


def test_only_transformers_are_heavy() -> None:
    assert [is_light(model) for model in ("use-multilingual", "none", "intfloat/multilingual-e5-small")] == [
        True,
        True,
        False,
    ]


def test_missing_extra_names_the_line_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(WwtError) as caught:
        open_embedder("intfloat/multilingual-e5-small", cache=tmp_path)
    assert "pip install 'wwt-archiver[sentence-transformers]'" in text(caught.value.key, **caught.value.fields)


def test_choosing_loads_no_engine_and_the_default_no_torch(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib, archiver.embed.choose as c; c.is_light('x'); assert 'numpy' not in sys.modules;"
        "c.open_embedder('use-multilingual', cache=pathlib.Path(sys.argv[1]));"
        "assert not {'torch', 'sentence_transformers', 'transformers'} & set(sys.modules)"
    )
    root = Path(choose.__file__).parents[2]
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=root, check=True)
