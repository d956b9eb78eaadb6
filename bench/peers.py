"""Who is measured: how each is called, and Scrapy's spider with warcio.

peers.py scrapy FOLDER URL...     one crawl by Scrapy, each response written by warcio
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

HERE = Path(__file__).parent


Seeds = tuple[str, ...]
#: Scrapy has a place of its own, so that what it installs is not beside geomi (`make bench`).
PEERS = HERE.parent / ".make" / "peers" / "bin" / "python"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One program, or several at once, that crawl all seeds into `folder`."""

    name: str
    commands: Callable[[Seeds, Path], list[list[str]]]
    needs: Callable[[], str] = lambda: ""  # what is missing to run it; empty: nothing
    good_exits: frozenset[int] = frozenset({0})


def _geomi(agents: int) -> Callable[[Seeds, Path], list[list[str]]]:
    def commands(seeds: Seeds, folder: Path) -> list[list[str]]:
        start = [sys.executable, "-c", "import sys; from geomi.cli import main; sys.exit(main())"]
        own = [word for seed in seeds for word in ("--own", urlsplit(seed).netloc)]
        # Several copies of a corpus are served: as revisits they would cost less than others pay.
        own += ["--set", "archive.duplicates=false"]
        where = ["crawl", str(folder / "geomi"), *seeds, *own]
        return [[*start, *where, "--agents", str(agents), "--json"]]

    return commands


def _wget(seeds: Seeds, folder: Path) -> list[list[str]]:
    options = ["-q", "-r", "-l", "inf", f"--warc-file={folder / 'wget'}", "-P", str(folder)]
    return [["wget", *options, *seeds]]


def _wget2(seeds: Seeds, folder: Path) -> list[list[str]]:
    options = ["-q", "-r", "-l", "inf", "--max-threads=32", "-P", str(folder)]
    return [["wget2", *options, *seeds]]


def _plain(seeds: Seeds, folder: Path) -> list[list[str]]:
    return [
        [sys.executable, str(HERE / "plain_loop.py"), seed, str(folder / str(number)), "8"]
        for number, seed in enumerate(seeds)
    ]


def _scrapy(seeds: Seeds, folder: Path) -> list[list[str]]:
    return [[str(PEERS), str(HERE / "peers.py"), "scrapy", str(folder), *seeds]]


def _program(name: str) -> Callable[[], str]:
    return lambda: "" if shutil.which(name) else f"program {name}"


def _installed() -> str:
    return "" if PEERS.exists() else "Scrapy (make bench installs it)"


# wget and wget2 end with 8 when the server answered an error to any request.
_WGET_EXITS = frozenset({0, 8})

PLAIN = Contender(name="plain loop", commands=_plain)
GEOMI = Contender(name="geomi", commands=_geomi(1))
GEOMI_2 = Contender(name="geomi, 2 agents", commands=_geomi(2))
WGET = Contender(
    name="wget --warc-file", commands=_wget, needs=_program("wget"), good_exits=_WGET_EXITS
)
WGET2 = Contender(
    name="wget2, no archive", commands=_wget2, needs=_program("wget2"), good_exits=_WGET_EXITS
)
SCRAPY = Contender(name="Scrapy + warcio", commands=_scrapy, needs=_installed)
#: On two hosts at once, where two agents can share the work.
TWO_PLAIN = Contender(name="2 plain loops", commands=_plain)
PAIR = (TWO_PLAIN, GEOMI, GEOMI_2)

#: What `--suite` chooses from: contenders, and how often each runs.
SUITES: dict[str, tuple[tuple[Contender, ...], int]] = {
    "quick": ((PLAIN, GEOMI, WGET, WGET2), 1),
    "peers": ((PLAIN, GEOMI, WGET, WGET2, SCRAPY), 1),
    "full": ((PLAIN, GEOMI, WGET, WGET2, SCRAPY), 3),
}


def crawl_with_scrapy(seeds: Seeds, folder: Path) -> None:
    """Follow all links of the seeds' hosts and write request and response records."""
    from io import BytesIO

    import scrapy
    from scrapy.crawler import CrawlerProcess
    from warcio.statusandheaders import StatusAndHeaders
    from warcio.warcwriter import WARCWriter

    folder.mkdir(parents=True, exist_ok=True)
    hosts = {urlsplit(seed).netloc for seed in seeds}

    with (folder / "scrapy.warc.gz").open("wb") as stream:
        writer = WARCWriter(stream, gzip=True)

        def flat(headers: Any) -> list[tuple[str, str]]:
            return [
                (name.decode("latin-1"), value.decode("latin-1"))
                for name, values in headers.items()
                for value in values
            ]

        def keep(response: Any) -> None:
            line = StatusAndHeaders(f"{response.status} OK", flat(response.headers), "HTTP/1.1")
            record = writer.create_warc_record(
                response.url, "response", payload=BytesIO(response.body), http_headers=line
            )
            target = urlsplit(response.url).path
            asked = StatusAndHeaders(
                f"GET {target} HTTP/1.1", flat(response.request.headers), is_http_request=True
            )
            writer.write_request_response_pair(
                writer.create_warc_record(response.url, "request", http_headers=asked), record
            )

        class Spider(scrapy.Spider):
            name = "bench"
            start_urls = seeds
            handle_httpstatus_all = True

            def parse(self, response: Any) -> Any:
                keep(response)
                if not hasattr(response, "css"):
                    return
                if b"text/html" not in response.headers.get("Content-Type", b""):
                    return
                found = response.css("a::attr(href), area::attr(href)").getall()
                found += response.css("frame::attr(src), iframe::attr(src)").getall()
                for link in found:
                    url = response.urljoin(link)
                    if urlsplit(url).netloc in hosts:
                        yield response.follow(url, self.parse)

        process = CrawlerProcess(
            {
                "LOG_LEVEL": "ERROR",
                "CONCURRENT_REQUESTS": 128,
                "CONCURRENT_REQUESTS_PER_DOMAIN": 128,
                "DOWNLOAD_DELAY": 0,
                "ROBOTSTXT_OBEY": True,
                "TELNETCONSOLE_ENABLED": False,
                "COOKIES_ENABLED": False,
            }
        )
        process.crawl(Spider)
        process.start()


if __name__ == "__main__":
    crawl_with_scrapy(tuple(sys.argv[3:]), Path(sys.argv[2]))
