"""Each rule with pages it is about, and with content it must leave alone."""

from __future__ import annotations

import pytest

from geomi.extract import text
from geomi.history.walls import RULES, Look, reason_of, rule_of

STORY = "The council met and spoke at length about the bridge over the river. " * 40


def look(document: str) -> Look:
    found = text.of_document(document)
    return Look(
        title=found.title, heading=found.heading, main=found.main, labels=found.labels,
        alerts=found.alerts, fields=found.fields, passwords=found.passwords, forms=found.forms,
        links=found.links, sends_to=found.sends_to, words=len(found.main.split()),
    )  # fmt: skip


WALLS = [
    ("login", "<title>x</title><form>ID <input name=id> 비밀번호 <input type=password name=pw>"
     "<input type=submit value=로그인></form>"),
    ("login", "<h1>Sign in</h1><form><input name=user><input type=password></form>"),
    ("login-title", f"<title>Log in - Wiki</title><p>{STORY[:1500]}"
     "<form><input type=password></form>"),
    ("login-redirect", '<meta http-equiv=refresh content="0;url=/member/login.do?u=%2Fa">'),
    ("login-redirect", "<script>location.href='/sso/auth?next=/';</script>"),
    ("login-asked", "<script>alert('로그인이 필요한 서비스입니다.');history.back();</script>"),
    ("login-asked", "<title>Board</title><p>You must be logged in to read this board."),
    ("realname", "<title>실명확인</title><form><input name=name> 주민등록번호 <input name=n1> -"
     "<input type=password name=n2></form>"),
    ("realname", "<title>게시판</title><p>본인인증 후 이용하실 수 있습니다. 휴대폰 인증,"
     " 아이핀 중에서 고르십시오.<form><button>확인</button></form>"),
    ("denial", "<title>Access denied</title><p>You do not have permission to see this page."),
    ("denial", "<title>안내</title><p>접근 권한이 없습니다."),
    ("denial", "<h1>403 Forbidden</h1>"),
    ("robot", "<title>Just a moment</title><p>Checking your browser before accessing."),
    ("robot", "<p>자동입력 방지 문자를 넣으십시오.<form><input name=c></form>"),
    ("consent", "<title>Before you continue</title><form><button>Accept all</button></form>"),
    ("consent", "<p>성인인증이 필요한 내용입니다.<form><button>19세 이상</button></form>"),
    ("error-lost", "<title>404</title><p>The page /a/b was not found on this server."),
    ("error-lost", "<title>안내</title><p>요청하신 페이지를 찾을 수 없습니다."),
    ("error-lost", "<p>존재하지 않는 게시물입니다."),
    ("error", "<p>Warning: mysql_connect(): Too many connections in /home/db.php on line 12"),
    ("error", "<title>오류</title><p>일시적인 장애로 서비스가 중단되었습니다. 잠시 후 다시"
     " 시도하십시오."),
    ("error", "<h1>Service temporarily unavailable</h1>"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "document"), WALLS)
def test_a_wall_is_known_by_its_rule(rule: str, document: str) -> None:
    assert rule_of(look(document)) == rule


CONTENT = {
    "a story with a login box": f"<title>News</title><p>{STORY}<form>로그인 <input name=id>"
    "<input type=password></form>",
    "a report on errors": f"<title>How to mend errors</title><p>{STORY} page not found, access"
    " denied, internal server error, try again later",
    "a registration": "<title>Join</title><form><input name=id><input type=password name=a>"
    "<input type=password name=b></form>",
    "a search form": "<title>Search</title><form><input name=q><button>Search</button></form>",
    "a picture": "<title>Photo 12</title><img src=a.jpg>",
    "a list": "<title>Members</title>" + "".join(f"<a href={k}>{k}</a>" for k in range(50)),
    "a class of exceptions": "<title>CredentialNotFoundException</title><p>Signals that a"
    " credential was not found. " + "uses of this class " * 15,
    "a page that sends on": '<meta http-equiv=refresh content="0;url=/new/place.html">',
    "a notice about cookies under a story": f"<p>{STORY}<p>Accept all cookies <button>OK</button>",
    "nothing": "",
}


@pytest.mark.parametrize("name", CONTENT)
def test_content_is_left_alone(name: str) -> None:
    assert rule_of(look(CONTENT[name])) == ""


def test_every_rule_has_a_page_here_and_a_reason() -> None:
    assert {rule for rule, _ in WALLS} == {rule.name for rule in RULES}
    assert all(reason_of(rule.name) != rule.name for rule in RULES)
    assert reason_of("of another version") == "of another version"
