"""Sentences, titles and names in Korean and English, from word lists of our own."""

from __future__ import annotations

from functools import cache
from random import Random

from geomi.world.chance import stream


def _words(text: str) -> list[str]:
    return text.split()


_NOUNS = _words(
    "거미 하늘 바다 시장 도서관 학교 기록 문서 주소 그물 나무 강물 마을 골목 역사 노래 그림 사진 "
    "편지 소식 안내 공지 자료 연구 통계 보고서 회의 위원회 시민 지역 농업 어업 교통 날씨 건강 병원 "
    "음식 김치 국수 여행 산책 축제 공연 영화 책방 신문 방송 연구원 교사 학생 부모 아이 이웃 친구"
)
_VERBS = _words(
    "찾았다 모았다 기록했다 나누었다 열었다 고쳤다 옮겼다 보냈다 읽었다 만들었다 지켰다 살폈다 "
    "알렸다 준비했다 이어 갔다 마쳤다 배웠다 가르쳤다 도왔다 바꾸었다"
)
_ADVERBS = _words("오늘 어제 지난주에 천천히 함께 다시 새로 해마다 조용히 널리 먼저 드디어 가끔 늘")
_SUBJECT = ("에서는", "에게", "까지", "부터", "의", "와 더불어", "도")
#: Syllables that CP949 has and EUC-KR lacks.
RARE = "똠방각하와 펲시콜라를 보고 햏햏 웃으며 뷁이라 썼다."
_EN = _words(
    "spider archive harbour library letter garden river market village record page network "
    "window mountain history weather school teacher student report council public record water "
    "bridge station museum paper ticket morning evening summer winter quiet early common useful "
    "modern careful local northern annual open small large second final simple recent"
)
_EN_VERBS = _words("keeps finds opens records gathers moves reads sends follows shows holds makes")

KOREAN_NAMES = _words(
    "haneul baram bada sarang namu gangmul byeol dal noeul saebyeok maeul hanok mirae nuri "
    "garam areum bom yeoreum gaeul gyeoul sol dotori"
)
ENGLISH_NAMES = _words(
    "river maple harbor cedar summit willow pioneer beacon meadow granite orchard lantern "
    "falcon copper juniper breeze"
)
FOLDERS = _words(
    "news board notice about data info archive research people event gallery docs report "
    "library press service guide help history center"
)
KOREAN_FOLDERS = ("소식", "자료실", "게시판", "알림마당")


def _korean_sentence(rng: Random) -> str:
    words: list[str] = [rng.choice(_ADVERBS)] if rng.random() < 0.5 else []
    for _ in range(rng.randint(1, 5)):
        words.append(rng.choice(_NOUNS) + rng.choice(_SUBJECT))
    words += [rng.choice(_NOUNS), rng.choice(_VERBS)]
    return " ".join(words) + "."


def _english_sentence(rng: Random) -> str:
    words = [rng.choice(("The", "A", "Every", "This"))]
    words += rng.choices(_EN, k=rng.randint(1, 4))
    words.append(rng.choice(_EN_VERBS))
    words += rng.choices(_EN, k=rng.randint(2, 8))
    return " ".join(words) + "."


@cache
def paragraphs(korean: bool) -> list[str]:
    """The 600 paragraphs of one language that pages are put together from: joining is cheap."""
    rng = stream("paragraphs", korean)
    sentence = _korean_sentence if korean else _english_sentence
    return [
        "<p>" + " ".join(sentence(rng) for _ in range(rng.randint(3, 9))) + "</p>\n"
        for _ in range(600)
    ]


def title(rng: Random, *, korean: bool) -> str:
    """Two or three words."""
    return " ".join(rng.choices(_NOUNS if korean else _EN, k=rng.randint(2, 3)))


def phrase(rng: Random, *, korean: bool) -> str:
    """The words of a link."""
    return rng.choice(_NOUNS if korean else _EN)
