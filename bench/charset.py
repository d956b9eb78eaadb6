"""How often the encoding of a Korean page is told right, by encoding and label.

Run: python bench/charset.py [pages a row] [directory of Korean .html, .txt or man pages]...
Without a directory the text is made of the words below; with one, of the text in it.
"""

from __future__ import annotations

import gzip
import random
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from geomi.extract import Extractor

TEXT = (
    "공지사항 자료실 게시판 로그인 회원가입 처음으로 오시는 길 이용 안내 "
    "개인정보 처리방침 저작권 정책 누리집 국립중앙도서관은 해마다 모든 공공기관의 "
    "자료를 수집하여 보존한다 연구자에게 큰 도움이 되었습니다 대한민국 서울특별시 "
    "부산광역시 민원 신청 서류를 제출하시기 바랍니다 담당자 전화번호 첨부파일 "
    "내려받기 조회수 작성일 이전 글 다음 글 목록 검색 결과가 없습니다 문의하기 "
    "자주 묻는 질문 채용 공고 입찰 보도자료 그리고 그러나 우리는 웹을 천천히 "
    "예의 바르게 모읍니다 거미가 실을 잣듯이 한 쪽씩 읽고 적어 둔다 봄 여름 "
    "가을 겨울 하늘 컨테이너를 배포하려면 매니페스트를 작성하고 클러스터에 "
    "적용한다 파드 서비스 노드 네임스페이스 디플로이먼트 kubectl apply "
    "-f pod.yaml 명령을 실행하면 스케줄러가 노드를 고른다 API 서버 "
    "v1.28 etcd 백업 YAML 설정 학교 교육과정 입학 안내 교수 소개 "
    "학과 사무실 연락처 도서 대출 반납 예약 열람실 좌석 현황 시간표 수강 신청 "
    "쇼핑몰 장바구니 주문 배송 조회 반품 교환 상품평 별점 할인 쿠폰 적립금 "
    "무료배송 품절 임박 최저가 인기 상품 "
)
RARE_TEXT = "똠방각하 펲시콜라 찦차를 햏자 뷁 쓩쓩 샾에서 믜웠다 뢔 꿻"
HAS_KOREAN = re.compile("[가-힣]")
TLDS = ("kr", "com", "net", "org")

Label = Callable[[str], tuple[str, str]]  # charset -> (Content-Type, in the head)


def _unlabelled(charset: str) -> tuple[str, str]:
    return "text/html", ""


def _header(charset: str) -> tuple[str, str]:
    return f"text/html; charset={charset}", ""


def _meta(charset: str) -> tuple[str, str]:
    return "text/html", f'<meta charset="{charset}">'


def _http_equiv(charset: str) -> tuple[str, str]:
    content = f"text/html; charset={charset}"
    return "text/html", f"<META HTTP-EQUIV='Content-Type' CONTENT='{content}'>"


def _late_meta(charset: str) -> tuple[str, str]:
    return "text/html", "<script>" + "var a = 1;\n" * 200 + f"</script><meta charset={charset}>"


def _declaration(charset: str) -> tuple[str, str]:
    return "text/html", f"<?xml version='1.0' encoding='{charset}'?>"


def _xhtml(charset: str) -> tuple[str, str]:
    return "application/xhtml+xml", f"<?xml version='1.0' encoding='{charset}'?>"


LABELS: dict[str, Label] = {
    "header": _header,
    "meta": _meta,
    "http-equiv": _http_equiv,
    "late meta": _late_meta,
    "declaration": _declaration,
    "xhtml": _xhtml,
}
#: What a page is in, the codec that writes it, whether rare syllables are mixed in, the answer.
ENCODINGS = (
    ("euc-kr", "euc_kr", False, "euc-kr"),
    ("cp949", "cp949", True, "euc-kr"),
    ("utf-8", "utf-8", True, "utf-8"),
    ("iso-2022-kr", "iso2022_kr", False, "replacement"),
)
#: The label, what the page is in, and what is right: the label wherever it is possible.
MISLABELLED = (
    ("utf-8", "euc_kr", "euc-kr"),
    ("utf-8", "cp949", "euc-kr"),
    ("euc-kr", "utf-8", "utf-8"),
    ("gbk", "utf-8", "utf-8"),
    ("shift_jis", "utf-8", "utf-8"),
    ("iso-8859-1", "euc_kr", "windows-1252"),
    ("gbk", "euc_kr", "gbk"),
)


class Pages:
    """Korean pages of 300 bytes to 40 KB, from a seed."""

    def __init__(self, texts: list[list[str]], seed: int) -> None:
        self._texts = texts
        self._chance = random.Random(seed)

    def page(self, codec: str, inside: str, *, is_rare: bool, is_cut: bool = False) -> bytes:
        chance = self._chance
        size = int(300 * (40_000 / 300) ** chance.random())
        words = chance.choice(self._texts)
        start = chance.randrange(len(words))
        title = f"<title>{self._line(words, start, is_rare)}</title>"
        is_first = inside.startswith("<?")
        pieces = [inside if is_first else "", "<html><head>", "" if is_first else inside, title]
        pieces.append("</head><body><div id='wrap' class='content'>\n")
        length = sum(map(len, pieces))
        while length < size:
            start += 10
            line = self._line(words, start, is_rare)
            number = chance.randrange(10_000)
            piece = chance.choice(
                (
                    f"<li><a href='/board/view.do?no={number}'>{line}</a></li>\n",
                    f"<p class='text'>{line}. {self._line(words, start + 10, is_rare)}.</p>\n",
                    f"<td width='120' bgcolor='#ffffff'>{line}</td><td>{number}</td>\n",
                )
            )
            pieces.append(piece)
            length += 2 * len(piece)
        body = "".join(pieces).encode(codec, "ignore") + b"</div></body></html>"
        if is_cut:
            high = [place for place, byte in enumerate(body) if byte > 0x7F]
            place = chance.choice(high[len(high) // 2 :])
            body = body[:place] + body[place + 1 :]
        return body

    def _line(self, words: list[str], start: int, is_rare: bool) -> str:
        count = self._chance.randint(2, 9)
        line = [words[(start + number) % len(words)] for number in range(count)]
        if not any(map(HAS_KOREAN.search, line)):
            line.append("안내")
        if is_rare and self._chance.random() < 0.3:
            line.append(self._chance.choice(RARE_TEXT.split()))
        return " ".join(line)


def read_texts(roots: list[Path]) -> list[list[str]]:
    """Words of each Korean document below the directories."""
    texts = []
    for path in sorted(path for root in roots for path in root.rglob("*") if path.is_file()):
        if path.suffix not in (".html", ".txt", ".gz"):
            continue
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8", "ignore")
        text = re.sub(r"<(script|style).*?</\1>|<[^>]*>|&\w+;|[<>&]", " ", text, flags=re.DOTALL)
        words = text.split()
        if sum(1 for word in words if HAS_KOREAN.search(word)) >= max(20, len(words) // 5):
            texts.append(words)
    return texts


def rows(pages: Pages) -> Iterator[tuple[str, Callable[[], tuple[str, bytes]], str]]:
    """What a row is called, a maker of (Content-Type, body), and the right answer."""

    def made(
        codec: str, label: Label, charset: str, *, is_rare: bool = False, is_cut: bool = False
    ) -> Callable[[], tuple[str, bytes]]:
        mime, inside = label(charset)
        return lambda: (mime, pages.page(codec, inside, is_rare=is_rare, is_cut=is_cut))

    for name, codec, is_rare, answer in ENCODINGS:
        yield f"{name}, no label", made(codec, _unlabelled, "", is_rare=is_rare), answer
    for name, codec, is_rare, answer in ENCODINGS[:3]:
        maker = made(codec, _unlabelled, "", is_rare=is_rare, is_cut=True)
        yield f"{name}, no label, one byte lost", maker, answer
    for name, codec, is_rare, answer in ENCODINGS:
        for kind, label in LABELS.items():
            if (kind, name) not in (("late meta", "iso-2022-kr"), ("declaration", "")):
                yield f"{name}, {kind}", made(codec, label, name, is_rare=is_rare), answer
    for charset, codec, answer in MISLABELLED:
        yield f"{codec} labelled {charset}", made(codec, _header, charset, is_rare=True), answer


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    texts = read_texts([Path(name) for name in sys.argv[2:]]) or [TEXT.split()]
    print(f"{len(texts)} texts, {count} pages a row")
    print(f"{'encoding, label':36} {'right is':12} {'right':>7}  wrong answers")
    for number, (name, make, answer) in enumerate(rows(Pages(texts, seed=1))):
        wrong: dict[str, int] = {}
        extractor = Extractor(cache_targets=10_000)
        for turn in range(count):
            mime, body = make()
            url = f"http://site{number}.{TLDS[turn % len(TLDS)]}/p"
            charset = extractor.page(url, {"content-type": mime}, body).charset
            if charset != answer:
                wrong[charset] = wrong.get(charset, 0) + 1
        share = 100 * (1 - sum(wrong.values()) / count)
        print(f"{name:36} {answer:12} {share:6.2f}%  {wrong or ''}")


if __name__ == "__main__":
    main()
