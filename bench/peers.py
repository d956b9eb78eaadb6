"""Who is measured: how each is called, and Scrapy's spider with warcio.

peers.py scrapy URL FOLDER     one crawl by Scrapy, each response written by warcio
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One program that crawls `seed` into `folder`."""

    name: str
    command: Callable[[str, Path], list[str]]
    needs: Callable[[], str] = lambda: ""  # what is missing to run it; empty: nothing
    good_exits: frozenset[int] = frozenset({0})


def _geomi(agents: int) -> Callable[[str, Path], list[str]]:
    def command(seed: str, folder: Path) -> list[str]:
        start = [sys.executable, "-c", "import sys; from geomi.cli import main; sys.exit(main())"]
        where = ["crawl", str(folder / "geomi"), seed, "--own", urlsplit(seed).netloc]
        return [*start, *where, "--agents", str(agents), "--json"]

    return command


def _wget(seed: str, folder: Path) -> list[str]:
    options = ["-q", "-r", "-l", "inf", f"--warc-file={folder / 'wget'}", "-P", str(folder)]
    return ["wget", *options, seed]


def _wget2(seed: str, folder: Path) -> list[str]:
    options = ["-q", "-r", "-l", "inf", "--max-threads=32", "-P", str(folder)]
    return ["wget2", *options, seed]


def _plain(seed: str, folder: Path) -> list[str]:
    return [sys.executable, str(HERE / "plain_loop.py"), seed, str(folder), "8"]


def _scrapy(seed: str, folder: Path) -> list[str]:
    return [sys.executable, str(HERE / "peers.py"), "scrapy", seed, str(folder)]


def _program(name: str) -> Callable[[], str]:
    return lambda: "" if shutil.which(name) else f"program {name}"


def _module(name: str) -> Callable[[], str]:
    def missing() -> str:
        try:
            return "" if importlib.util.find_spec(name) else f"Python module {name}"
        except ModuleNotFoundError:
            return f"Python module {name}"

    return missing


# wget and wget2 end with 8 when the server answered an error to any request.
_WGET_EXITS = frozenset({0, 8})

PLAIN = Contender(name="plain loop", command=_plain)
GEOMI = Contender(name="geomi", command=_geomi(1), needs=_module("geomi.cli"))
GEOMI_2 = Contender(name="geomi, 2 agents", command=_geomi(2), needs=_module("geomi.cli"))
WGET = Contender(
    name="wget --warc-file", command=_wget, needs=_program("wget"), good_exits=_WGET_EXITS
)
WGET2 = Contender(
    name="wget2, no archive", command=_wget2, needs=_program("wget2"), good_exits=_WGET_EXITS
)
SCRAPY = Contender(name="Scrapy + warcio", command=_scrapy, needs=_module("scrapy"))

#: What `--suite` chooses from: contenders, and how often each runs.
SUITES: dict[str, tuple[tuple[Contender, ...], int]] = {
    "quick": ((PLAIN, GEOMI, WGET, WGET2), 1),
    "peers": ((PLAIN, GEOMI, WGET, WGET2, SCRAPY), 1),
    "full": ((PLAIN, GEOMI, GEOMI_2, WGET, WGET2, SCRAPY), 3),
}


def crawl_with_scrapy(seed: str, folder: Path) -> None:
    """Follow all links of the seed's host and write request and response records."""
    from io import BytesIO

    import scrapy
    from scrapy.crawler import CrawlerProcess
    from warcio.statusandheaders import StatusAndHeaders
    from warcio.warcwriter import WARCWriter

    folder.mkdir(parents=True, exist_ok=True)
    host = urlsplit(seed).netloc

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
            start_urls = (seed,)
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
                    if urlsplit(url).netloc == host:
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
    crawl_with_scrapy(sys.argv[2], Path(sys.argv[3]))
