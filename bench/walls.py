"""How well rules tell walls from content on pages that nobody here wrote.

    bench/walls.py [--documents N] [--port 9180] [--verbose]

Walls: login pages of web applications that Debian packages, run on loopback with PHP's own server,
in several languages, and what they show to a reader who is not logged in. Content: other pages of
the same applications, and the documentation that Debian ships. Needs the packages php-cli,
php-sqlite3, php-xml, php-mbstring, php-intl, adminer, phpliteadmin, phpldapadmin, dokuwiki,
mediawiki, roundcube-core, roundcube-sqlite3, sqlite3, phpmyadmin, and as fresh ones
ldap-account-manager, icingaweb2, simplesamlphp, zabbix-frontend-php, postfixadmin; and the
documentation sets. What is not installed is left out and named.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.cookiejar import CookieJar
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src")]

from geomi.cluster.scanning import features_of  # noqa: E402
from geomi.extract import text  # noqa: E402

DOCUMENTS = (
    "/usr/share/doc/python3/html",
    "/usr/share/doc/postgresql-doc-15/html",
    "/usr/share/doc/openjdk-17-doc/api",
)
_WAIT_S = 20.0


@dataclass(frozen=True)
class App:
    """One application. Paths by what they are: walls, content, and neither."""

    name: str
    root: str
    walls: tuple[str, ...]
    content: tuple[str, ...] = ()
    prepare: tuple[str, ...] = ()  # a command; {scratch} and {port} are filled in
    files: dict[str, str] = field(default_factory=dict)  # to write into the scratch directory
    env: dict[str, str] = field(default_factory=dict)
    is_fresh: bool = False  # nobody looked at it while the rules were written


LANGUAGES = ("en", "ko", "de", "ja", "ru", "zh", "fr")
MEDIAWIKI = "/usr/share/mediawiki"
ROUNDCUBE = """<?php
$config = ['db_dsnw' => 'sqlite:///{scratch}/rc.db?mode=0640', 'language' => null,
  'des_key' => '0123456789abcdef01234567', 'plugins' => [], 'skin' => 'elastic',
  'log_dir' => '{scratch}', 'temp_dir' => '{scratch}'];
"""
ROUNDCUBE_TABLES = "/usr/share/dbconfig-common/data/roundcube/install/sqlite3"
APPS = (
    App(
        name="adminer", root="/usr/share/adminer",
        walls=(*(f"/adminer/?lang={one}" for one in LANGUAGES), "/editor/"),
    ),
    App(
        name="phpliteadmin", root="/usr/share/phpliteadmin",
        walls=("/phpliteadmin.php", "/phpliteadmin.php?view=structure"),
    ),
    App(
        name="phpldapadmin", root="/usr/share/phpldapadmin/htdocs",
        walls=("/cmd.php?cmd=login_form&server_id=1",), content=("/index.php",),
    ),
    App(
        name="dokuwiki", root="/usr/share/dokuwiki",
        walls=("/doku.php?do=login", "/doku.php?id=wiki:syntax&do=login", "/doku.php?do=admin",
               "/doku.php?do=profile"),
        content=("/doku.php?id=wiki:syntax", "/doku.php?id=wiki:dokuwiki",
                 "/doku.php?id=wiki:welcome", "/doku.php?do=index", "/doku.php?do=recent",
                 "/doku.php?do=search&q=wiki",
                 "/doku.php?id=wiki:syntax&do=media", "/doku.php?id=wiki:syntax&do=backlink"),
    ),
    App(
        name="mediawiki", root=MEDIAWIKI,
        prepare=("php", f"{MEDIAWIKI}/maintenance/install.php", "--dbtype", "sqlite", "--dbpath",
                 "{scratch}", "--pass", "a-long-Pass-77", "--server", "http://127.0.0.1:{port}",
                 "--scriptpath", "", "--confpath", "{scratch}", "Wiki", "admin"),
        env={"MW_CONFIG_FILE": "{scratch}/LocalSettings.php"},
        walls=(*(f"/index.php?title=Special:UserLogin&uselang={one}" for one in LANGUAGES),
               "/index.php?title=Special:Watchlist", "/index.php?title=Special:Preferences",
               "/index.php?title=Special:UserLogin&returnto=Main+Page"),
        content=("/index.php?title=Main_Page", "/index.php?title=Special:Version",
                 "/index.php?title=Special:RecentChanges", "/index.php?title=Special:SpecialPages",
                 "/index.php?title=Special:AllPages", "/index.php?title=Special:Search&search=a",
                 "/index.php?title=Main_Page&action=history",
                 "/index.php?title=Main_Page&action=info",
                 "/index.php?title=Special:ListUsers", "/index.php?title=Special:Statistics"),
    ),
    App(
        name="roundcube", root="/var/lib/roundcube/public_html",
        prepare=("sqlite3", "{scratch}/rc.db", f".read {ROUNDCUBE_TABLES}"),
        files={"config.inc.php": ROUNDCUBE, "mimetypes.php": "<?php return [];",
               "defaults.inc.php": "<?php include '/etc/roundcube/defaults.inc.php';"},
        env={"ROUNDCUBE_CONFIG_DIR": "{scratch}", "RCUBE_CONFIG_PATH": "{scratch}"},
        walls=("/", "/?_task=mail", "/?_task=settings"),
    ),
    App(
        name="phpmyadmin", root="/usr/share/phpmyadmin",
        walls=(*(f"/index.php?lang={one}" for one in LANGUAGES), "/index.php?route=/sql"),
    ),
    App(
        name="ldap-account-manager", root="/usr/share/ldap-account-manager", is_fresh=True,
        walls=("/templates/login.php", "/templates/config/conflogin.php",
               "/templates/config/mainlogin.php"),
        content=("/templates/config/index.php",),
    ),
    App(
        name="icingaweb2", root="/usr/share/icingaweb2/public", is_fresh=True,
        walls=("/", "/authentication/login"), content=("/setup",),
    ),
    App(
        name="simplesamlphp", root="/usr/share/simplesamlphp/www", is_fresh=True,
        walls=("/module.php/core/frontpage_welcome.php", "/module.php/core/frontpage_auth.php",
               "/module.php/core/login-admin.php?ReturnTo=/"),
    ),
    App(
        name="zabbix-frontend-php", root="/usr/share/zabbix", is_fresh=True, walls=(),
        content=("/setup.php",),
    ),
    App(
        name="postfixadmin", root="/usr/share/postfixadmin/public", is_fresh=True, walls=(),
        content=("/setup.php",),
    ),
)  # fmt: skip


@contextmanager
def served(app: App, port: int) -> Iterator[str]:
    """The application on loopback; its address."""
    with tempfile.TemporaryDirectory(prefix="geomi-walls-") as scratch:

        def filled(words: str) -> str:
            return words.replace("{scratch}", scratch).replace("{port}", str(port))

        for name, content in app.files.items():
            Path(scratch, name).write_text(filled(content))
        env = {**os.environ, **{name: filled(value) for name, value in app.env.items()}}
        if app.prepare:
            subprocess.run(
                [filled(word) for word in app.prepare], check=True, timeout=180,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        server = subprocess.Popen(
            ["php", "-d", "display_errors=0", "-d", "error_reporting=0", "-S", f"127.0.0.1:{port}",
             "-t", app.root],
            env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            _await(port)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(10)


def _await(port: int) -> None:
    end = time.monotonic() + _WAIT_S
    while time.monotonic() < end:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise SystemExit(f"php does not listen on port {port} after {_WAIT_S:g} s")


def fetched(url: str) -> tuple[int, dict[str, str], bytes]:
    """Code, header and body, after redirects, as a visitor with cookies and no password."""
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    try:
        with opener.open(url, timeout=_WAIT_S) as answer:
            head = {name.lower(): value for name, value in answer.headers.items()}
            return answer.status, head, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, {}, b""


def judged(url: str, head: dict[str, str], body: bytes) -> str:
    return features_of("", text.read(url, head, body)).hints


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--documents", type=int, default=2500, help="most of each set")
    parser.add_argument("--port", type=int, default=9180)
    parser.add_argument("--verbose", action="store_true")
    given = parser.parse_args()
    rows = []
    for place, app in enumerate(APPS):
        if not Path(app.root).is_dir():
            print(f"{app.name}: not installed, left out", file=sys.stderr)
            continue
        counts: Counter[str] = Counter()
        with served(app, given.port + place) as address:
            for path, is_wall in [(one, True) for one in app.walls] + [
                (one, False) for one in app.content
            ]:
                code, head, body = fetched(address + path)
                if code != 200:
                    counts["not 200"] += 1  # the code says what it is
                    continue
                rule = judged(address + path, head, body)
                counts[("found" if rule else "missed") if is_wall else
                       ("vain" if rule else "content")] += 1  # fmt: skip
                if given.verbose or bool(rule) != is_wall:
                    print(f"  {app.name}{path}: {rule or '-'}, wall: {is_wall}", file=sys.stderr)
        rows.append({"of": app.name, "fresh": app.is_fresh, **counts})
    for folder in DOCUMENTS:
        files = sorted(Path(folder).resolve().rglob("*.html")) if Path(folder).exists() else []
        if len(files) > given.documents:
            files = random.Random(1).sample(files, given.documents)
        counts = Counter()
        began = time.process_time()
        for file in files:
            rule = judged("http://a.example/", {"content-type": "text/html"}, file.read_bytes())
            counts["vain" if rule else "content"] += 1
            if rule:
                print(f"  {file}: {rule}", file=sys.stderr)
        if files:
            cost = (time.process_time() - began) / len(files)
            rows.append({"of": folder, **counts, "us": round(cost * 1e6)})
    for row in rows:
        print(json.dumps(row))
    for name, some in (
        (
            "all, rules were written with them in sight",
            [row for row in rows if not row.get("fresh")],
        ),
        ("all, fresh", [row for row in rows if row.get("fresh")]),
    ):
        keys = ("found", "missed", "vain", "content", "not 200")
        total = {key: sum(int(str(row.get(key, 0))) for row in some) for key in keys}
        print(json.dumps({"of": name, **total}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
