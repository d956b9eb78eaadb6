"""The words by which walls are known, in Korean and English: one expression a line."""

from __future__ import annotations

import re


def _any(*words: str) -> re.Pattern[str]:
    return re.compile("|".join(words), re.IGNORECASE)


LOGIN = _any(
    r"\blog[- ]?[io]n\b",
    r"\bsign[- ]?in\b",
    r"\blogging in\b",
    "로그인",
    "로그 인",
    "인증센터",
    "회원 ?인증",
    r"\bauthenticat(?:e|ion)\b",
    r"\blog ?on\b",
    "パスワード",
    "ログイン",
)
ASKS_LOGIN = _any(
    "로그인이? ?(?:필요|하셔야|해야|하신|후)",
    "로그인 ?(?:하세요|하십시오|해 ?주)",
    "회원만 ?(?:이용|열람|접근)",
    "회원 ?전용",
    r"(?:must|need to|have to|please|required to)\s(?:first\s)?(?:be\slogged|log[- ]?in|"
    "sign[- ]?in)",
    "log[- ]?in (?:is )?required",
    "requires? (?:a |you to )?log(?:ged)?[- ]?in",
)
LOGIN_ADDRESS = _any(
    "(?:^|[/_.?=&-])(?:log_?-?in|sign-?_?in|logon|auth|sso|member/login|"
    "user/login)(?:[/_.?=&-]|[A-Z]|$|form|page)",
)
REAL_NAME = _any(
    "실명 ?(?:확인|인증)",
    "본인 ?(?:확인|인증)",
    "주민 ?(?:등록)? ?번호",
    "아이핀",
    r"\bi-pin\b",
    "휴대(?:폰|전화) ?인증",
    "real[- ]?name (?:check|verification|confirmation)",
    "verify your (?:identity|name)",
    r"\bRealName(?:Check)?\b",
)
REAL_NAME_TITLE = _any(
    "실명 ?(?:확인|인증)",
    "본인 ?(?:확인|인증)",
    "real[- ]?name",
    "identity verification",
    "휴대(?:폰|전화) ?인증",
)
DENIED = _any(
    r"\baccess (?:to [\w ]{1,60}? )?(?:is |has been |was )?(?:denied|forbidden|restricted)\b",
    r"\b(?:403 )?forbidden\b",
    r"\bpermission denied\b",
    r"\bnot (?:authori[sz]ed|permitted)\b",
    r"\bunauthori[sz]ed\b",
    r"\b(?:do(?:es)? not|don[’']t) have (?:the )?(?:required )?permission",
    r"\binsufficient (?:permission|privilege|right)s?\b",
    r"\brequest (?:was |has been )?blocked\b",
    r"\byou have been blocked\b",
    r"\bnot allowed to (?:access|view|see)\b",
    "접근 ?(?:이|을)? ?(?:권한|제한|거부|차단|금지|불가)",
    "접속 ?(?:이|을)? ?(?:제한|거부|차단|금지|불가)",
    "권한이 ?없",
    "열람 ?(?:권한|이 ?제한)",
    "허용되지 ?않(?:은|는|습)",
    "차단 ?(?:되었|된 ?페이지|안내)",
    "(?:이용|조회)(?:하실|할)? ?수 ?없는 ?(?:페이지|메뉴|자료)",
    "비공개 ?(?:게시물|글|자료)",
    "유해 ?사이트",
    "불법.{0,20}사이트",
)
ROBOT = _any(
    r"\bare you (?:a )?(?:human|robot)\b",
    r"\bverify (?:that )?you(?:’|'| a)re (?:not a robot|human)",
    r"\bchecking (?:if the site connection is secure|your browser)\b",
    r"\bcaptcha\b",
    r"\bunusual traffic\b",
    r"\benable (?:javascript and )?cookies to continue\b",
    "자동 ?(?:입력|등록|가입) ?방지",
    "보안 ?문자",
    "로봇이 ?아닙니다",
    "비정상적인? ?(?:접근|접속|트래픽)",
)
CONSENT = _any(
    r"\bbefore you continue\b",
    r"\b(?:accept|agree to|allow) (?:all |our |the |these )?cookies\b",
    r"\bcookie (?:consent|wall)\b",
    r"\bwe value your privacy\b",
    r"\bi (?:am|confirm).{0,30}(?:1[89]|2[01]|#) (?:years|or older)",
    r"\bage (?:verification|gate|check)\b",
    r"\b(?:must|to) (?:accept|agree to).{0,40}(?:terms|conditions|"
    "cookies).{0,40}(?:continue|proceed|access|enter)",
    "동의 ?(?:하고|하셔야|해야|후).{0,20}(?:계속|이용|진행|입장)",
    "성인 ?(?:인증|확인)",
    "청소년 ?유해",
    "(?:쿠키|개인정보).{0,30}(?:동의|허용).{0,20}(?:필요|계속|하셔야|해야)",
)
LOST = _any(
    r"\b(?:error )?404\b.{0,40}\b(?:not found|error)\b",
    r"\bnot found\b.{0,20}\b404\b",
    r"\b(?:page|file|document|site|url|resource|item|article|topic|post)s?\b[^.]{0,80}"
    r"\b(?:(?:was|is|were|could|can) not (?:be )?found|can(?:not|[’']t) (?:be found|find)"
    r"|couldn[’']t be found|not found|does(?:n[’']t| not) exist|is no longer available"
    r"|no longer exists|has (?:been (?:removed|moved|deleted)|moved)|is not available)\b",
    r"\b(?:cannot|can[’']t|could(?: not|n[’']t)) find (?:the|that|this) (?:page|file|document)",
    r"\bno such (?:page|file|document|topic|article)\b",
    r"\bnothing (?:was )?found (?:here|at this)",
    r"\btopic does not exist\b",
    "(?:페이지|문서|게시물|게시글|자료|파일|글|주소)(?:를|을|가|이|는|은)? ?(?:.{0,20})?"
    "(?:찾을 ?수 ?(?:없|가 ?없)|존재하지 ?않|없습니다|삭제되었|삭제된|이동되었)",
    "존재하지 ?않는 ?(?:페이지|게시|문서|자료|글|주소)",
    "삭제되었거나",
)
BROKEN = _any(
    r"\b(?:internal )?server error\b",
    r"\b(?:500|502|503|504) (?:error|internal|bad|service|gateway)",
    r"\bservice (?:is )?(?:temporarily )?unavailable\b",
    r"\bbad gateway\b",
    r"\bgateway time-?out\b",
    r"\bsomething went wrong\b",
    r"\ban (?:unexpected |unknown |internal )?error (?:has )?occurr?ed\b",
    r"\b(?:warning|fatal error|parse error|notice): .{1,300}? on line\b",
    r"\btoo many connections\b",
    r"\b(?:sql|odbc|jdbc|mysqli?|ora-|postgresql)\b.{0,40}\b(?:error|exception|failed)",
    r"\bstack trace\b",
    r"\bexception report\b",
    r"\b(?:under|scheduled) (?:maintenance|construction)\b",
    r"\bdown for maintenance\b",
    r"\bdatabase (?:error|connection)\b",
    r"\btry again later\b",
    "페이지를 ?(?:표시|불러올) ?(?:할)? ?수 ?없",
    "(?:오류|에러|장애)(?:가|이)? ?(?:발생|났)",
    "일시적(?:인|으로) ?(?:오류|장애|중단)",
    "서비스 ?(?:점검|중단|준비)",
    "시스템 ?(?:점검|오류|장애)",
    "잠시 ?후 ?다시",
    "잘못된 ?(?:접근|경로|요청|주소)",
    "정상적인? ?(?:접근|경로|접속)이? ?아닙",
    "준비 ?중 ?입니다",
    "공사 ?중",
)
#: Enough where it is the title or first heading.
LOST_AT_TOP = _any(r"\bnot found\b", r"^\W*(?:error\W+)?404\b", "찾을 ?수 ?없", "존재하지 ?않")
