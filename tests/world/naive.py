"""A slow, plain crawler over `World.answer`, written without the generator's knowledge."""

from __future__ import annotations

import gzip
import re
from collections import deque
from urllib.parse import quote, urljoin, urlsplit

from publicsuffixlist import PublicSuffixList
from selectolax.lexbor import LexborHTMLParser

from geomi.world import World

_SUFFIXES = PublicSuffixList()
_CALL = re.compile(r"(?:location\.href = |location\.href=|window\.open\()'([^']*)'")
_CSS = re.compile(r"""(?:url\(|@import )['"]([^'"]*)['"]""")
_LOC = re.compile(r"<loc>([^<]*)</loc>")
_TAGS = (
    ("a", "href", "a"), ("area", "href", "a"), ("frame", "src", "f"), ("iframe", "src", "f"),
    ("img", "src", "e"), ("script", "src", "e"),
)  # fmt: skip


class Naive:
    def __init__(
        self, world, *, scope="site", robots=True, requisites=True, sitemaps=False, at=0.0,
        agent="geomi", reader=None, traps=True,
    ):  # fmt: skip
        """`reader` takes (url, fields of the head, body) and gives (kind, URL); None: our own."""
        self.reader = reader
        self.traps = traps
        self.world: World = world
        self.scope = scope
        self.robots = robots
        self.requisites = requisites
        self.sitemaps = sitemaps
        self.at = at
        self.agent = agent
        self.rules: dict[str, object] = {}
        self.cookies: dict[str, dict[str, str]] = {}  # by host and port; paths are not looked at

    def crawl(self, seeds) -> dict[str, str]:
        places = set()
        for seed in seeds:
            url = seed
            for _ in range(6):
                places.add(self._place(url))
                outcome, to, _links = self._visit(url)
                if outcome != "code" or not to:
                    break
                url = to
        waiting, found, mapped = deque(seeds), {}, set()
        while waiting:
            url = waiting.popleft()
            if url in found or not any(self._inside(url, place) for place in places):
                continue
            outcome, to, links = self._visit(url)
            found[url] = outcome
            waiting += [to] if to else []
            waiting += [
                link
                for kind, link in links
                if (kind != "e" or self.requisites) and (self.traps or not self.world.trap(link))
            ]
            host = urlsplit(url).netloc
            if self.sitemaps and host not in mapped:
                mapped.add(host)
                waiting += self._mapped(host)
        return found

    def _place(self, url):
        parts = urlsplit(url)
        if self.scope == "site":
            return parts.netloc
        if self.scope == "domain":
            return _SUFFIXES.privatesuffix(parts.hostname) or parts.hostname
        return url.partition("?")[0].rpartition("/")[0] + "/"

    def _inside(self, url, place):
        return url.startswith(place) if self.scope == "prefix" else self._place(url) == place

    def _answer(self, url):
        parts = urlsplit(url)
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        kept = self.cookies.setdefault(parts.netloc, {})
        headers = {"cookie": "; ".join(f"{k}={v}" for k, v in kept.items())} if kept else {}
        answer = self.world.answer(
            parts.netloc, target, scheme=parts.scheme, at=self.at, headers=headers
        )
        for name, value in answer.headers:
            if name == "Set-Cookie":
                key, _, text = value.partition(";")[0].partition("=")
                kept[key] = text
        return answer

    def _visit(self, url):
        parts = urlsplit(url)
        literal = parts.netloc[0] == "[" or parts.hostname.replace(".", "").isdigit()
        addresses, _ = ((parts.hostname,), 0) if literal else self.world.resolve(parts.hostname)
        if not addresses:
            return "noIP", "", []
        if addresses[0].startswith("127.127."):
            return "cErr", "", []
        if self.robots and parts.path != "/robots.txt":
            rules = self._rules(parts)
            if isinstance(rules, str):
                return rules, "", []
            if not self._allowed(parts, rules):
                return "deny", "", []
        answer = self._answer(url)
        if answer.fault:
            return answer.fault, "", []
        headers = dict(answer.headers)
        if "Location" in headers:
            return "code", self._url(url, headers["Location"]), []
        if answer.status != 200:
            return "code", "", []
        if self.reader:
            fields = {name.lower(): value for name, value in answer.headers}
            return "OK", "", self.reader(url, fields, answer.body)
        kind, _, label = headers["Content-Type"].partition("; charset=")
        if kind == "text/css":
            found = _CSS.findall(answer.body.decode())
            return "OK", "", [("e", self._url(url, ref)) for ref in found]
        return "OK", "", self._links(url, answer.body, label) if kind == "text/html" else []

    def _links(self, url, body, label):
        if not label:
            match = re.search(rb'charset="?([\w-]+)', body[:1024])
            label = match[1].decode() if match else "utf-8"
        codec = "cp949" if label.lower() in ("euc-kr", "ks_c_5601-1987") else label
        text = body.decode(codec)
        tree = LexborHTMLParser(text)
        found = []
        for tag, attribute, kind in _TAGS:
            found += [(kind, n.attributes[attribute]) for n in tree.css(f"{tag}[{attribute}]")]
        for node in tree.css("link[href]"):
            kind = "h" if node.attributes["rel"] == "alternate" else "e"
            found.append((kind, node.attributes["href"]))
        for node in tree.css("meta[http-equiv=refresh]"):
            found.append(("h", node.attributes["content"].partition("url=")[2]))
        for node in tree.css("[onclick]"):
            found += [("h", ref) for ref in _CALL.findall(node.attributes["onclick"])]
        for node in tree.css("script"):
            found += [("h", ref) for ref in _CALL.findall(node.text())]
        return [
            (kind, self._url(url, ref))
            for kind, ref in found
            if not ref.startswith(("#", "mailto:", "javascript:"))
        ]

    @staticmethod
    def _url(base, ref):
        return quote(urljoin(base, ref), safe="/:?&=%.-_~[]")

    def _rules(self, parts):
        """Rules; True or False for all or nothing; a network state if robots.txt has one."""
        base = f"{parts.scheme}://{parts.netloc}"
        if base not in self.rules:
            self.rules[base] = self._read_rules(base)
        return self.rules[base]

    @staticmethod
    def _allowed(parts, rules):
        if isinstance(rules, bool):
            return rules
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        best = max(((len(p), allow) for allow, p, rx in rules if rx.match(target)), default=(0, 1))
        return bool(best[1])

    def _read_rules(self, base):
        url = f"{base}/robots.txt"
        for _ in range(6):
            answer = self._answer(url)
            if answer.fault:
                return answer.fault
            fields = dict(answer.headers)
            if "Location" not in fields:
                break
            url = fields["Location"]
        else:
            return True
        if answer.status >= 500 or answer.status == 429:
            return False
        if answer.status >= 400:
            return True
        body = answer.body
        if fields.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        text = body[:512_000].decode("latin-1").removeprefix("ï»¿")
        groups, agents, fresh = {}, [], True
        for line in re.split("[\r\n]+", text):
            name, _, value = (part.strip() for part in line.partition("#")[0].partition(":"))
            if name.lower() == "user-agent":
                agents = [*([] if fresh else agents), value.lower()]
                fresh = False
                groups.setdefault(value.lower(), [])
            elif name.lower() in ("allow", "disallow"):
                fresh = True
                if value:
                    regex = re.escape(value).replace(r"\*", ".*").replace(r"\$", "$")
                    rule = (int(name.lower() == "allow"), value, re.compile(regex))
                    for agent in agents:
                        groups[agent].append(rule)
        return groups.get(self.agent, groups.get("*", []))

    def _mapped(self, host):
        answer = self._answer(f"http://{host}/robots.txt")
        if answer.status != 200 or self._visit(f"http://{host}/robots.txt")[0] != "OK":
            return []
        waiting = re.findall(r"Sitemap: (\S+)", answer.body.decode())
        urls = []
        while waiting:
            name = waiting.pop()
            body = self._answer(name).body
            text = (gzip.decompress(body) if name.endswith(".gz") else body).decode()
            found = [ref.replace("&amp;", "&") for ref in _LOC.findall(text)]
            if "<sitemapindex" in text:
                waiting += found
            else:
                urls += found
        return urls
