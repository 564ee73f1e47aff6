"""An encoder in, its two distributions of cosines out: of questions with the notes that answer them, and with notes that do not.

What a cosine means differs between models: unrelated texts are at .05 for one and at .75 for another. Thirty-two questions and notes on
thirty-two different matters show it for any model, in the time of encoding sixty-four short texts.
"""

from __future__ import annotations

import json
import math
from contextlib import suppress
from dataclasses import astuple
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from memory_tools.encoders import Cosines
from memory_tools.errors import MemoryToolsError

if TYPE_CHECKING:
    from memory_tools.encoders import Encoder

_LEAST = 0.01  # between the two middles; below, a cosine says nothing
PAIRS = (
    ("When does the nightly backup run?", "The production database is dumped every night at 3 am and copied to object storage."),
    ("Which port does the staging API listen on?", "staging gateway: http on 8081, metrics on 9100"),
    ("What did Anna say about her new job?", "Anna: I started at the museum last week, and I love the people there!"),
    (
        "How should we handle rate limit errors?",
        "On HTTP 429 wait for the time that Retry-After names, then try again, at most five times.",
    ),
    ("What food is Leo allergic to?", "Leo can't eat peanuts; last time he ended up in hospital."),
    ("Where do we keep the signing keys?", "Release signing: private key lives in the hardware token, never on a laptop."),
    ("How did the trip to the mountains go?", "We hiked up to the lake on Saturday, the view was breathtaking but the kids were tired."),
    ("Why did we drop the message queue?", "Decision: remove RabbitMQ, the job table in Postgres is enough for forty jobs a minute."),
    ("What instrument is Maria learning?", "Maria has had violin lessons since spring and practises before breakfast."),
    ("Which font does the customer want?", "Brand guide says headings in Inter, body text never below 15 px."),
    ("Who takes care of the dog while we are away?", "Our neighbour Tom feeds Rex and walks him twice a day during the holidays."),
    ("How do I rerun a failed pipeline?", "CI: comment /retest on the pull request to start the checks once more."),
    ("用户喜欢什么样的回答风格？", "沟通偏好：先说结论，再列理由，不要客套话。"),
    ("测试环境的密码在哪里改？", "测试账号口令统一在保险库里维护，每季度轮换一次。"),
    ("上次发布为什么回滚？", "三月二号上线后支付回调全部超时，二十分钟内退回旧版本。"),
    ("妈妈什么时候做手术？", "母亲的白内障手术定在下个月十五号上午。"),
    ("发票应该开给谁？", "报销抬头一律写上海分公司，税号见共享表格。"),
    ("周末谁负责值班？", "本月周六周日由小李盯告警，电话全天开机。"),
    ("前端为什么换成了 Vue？", "技术选型记录：React 组件库太重，团队更熟悉 Vue。"),
    ("孩子的钢琴课是几点？", "每周三晚上七点送女儿去学琴。"),
    ("What is the budget for the new office?", "新办公室装修预算上限八十万，超出要总经理签字。"),
    ("Who is the contact at the logistics company?", "物流那边有问题就找陈经理，微信随时能联系到。"),
    ("How long do we keep the logs?", "日志保留三十天，之后转入冷存储。"),
    ("客户对价格有什么意见？", "The client finds the yearly licence too expensive and asks for monthly billing."),
    ("会議はいつに変更されましたか？", "定例ミーティングは来週から木曜の午後二時に移動。"),
    ("彼女の好きな作家は誰ですか？", "村上春樹の新刊を予約したと嬉しそうに話していた。"),
    ("Wie oft werden die Zertifikate erneuert?", "TLS: alle sechzig Tage stellt der Cronjob automatisch neue aus."),
    ("Was wünscht sich Jonas zum Geburtstag?", "Jonas hätte gern ein Teleskop, um den Saturn zu sehen."),
    ("Quel restaurant avons-nous choisi pour le dîner ?", "Table réservée chez Marcel, vendredi à 20 h, pour six personnes."),
    ("Pourquoi le site était-il lent hier ?", "L'index manquait sur la table des commandes, chaque page la lisait en entier."),
    ("¿Dónde está guardado el contrato de alquiler?", "El arrendamiento firmado quedó en la carpeta azul del despacho."),
    ("Какую версию Python мы используем?", "Договорились собирать всё на 3.12, старые интерпретаторы больше не поддерживаем."),
)


def kept(encoder: Encoder, folder: Path | None) -> Cosines:
    """As `measure`, from the file in `folder` where it was measured before. A file that cannot be read or written costs the measuring."""
    from memory_tools import durable

    path = None if folder is None else folder / f"cosines-{blake2b(repr((encoder.name, PAIRS)).encode(), digest_size=8).hexdigest()}.json"
    if path is not None:
        with suppress(OSError, ValueError, TypeError):
            numbers = [float(number) for number in json.loads(path.read_bytes())]
            if len(numbers) == 4 and all(map(math.isfinite, numbers)) and numbers[0] > numbers[2]:
                return Cosines(*numbers)
    found = measure(encoder)
    if path is not None:
        with suppress(MemoryToolsError):
            durable.replace(path, json.dumps(astuple(found)).encode())
    return found


def measure(encoder: Encoder) -> Cosines:
    """Middle and spread of both distributions, by quartiles, which few odd pairs cannot move. Unavailable as in `encode`."""
    import numpy as np

    questions = encoder.encode([question for question, _ in PAIRS], "query")
    notes = encoder.encode([note for _, note in PAIRS], "passage")
    read = questions.any(axis=1) & notes.any(axis=1)  # not every model reads every script
    if read.sum() < 2:
        return Cosines(1.0, 0.0, 0.0, 0.0)
    cosines = questions[read] @ notes[read].T
    right = np.eye(len(cosines), dtype=bool)

    def middle_and_spread(values: np.ndarray) -> tuple[float, float]:
        low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
        return round(float(middle), 3), round(0.741 * float(high - low), 3)

    answer, other = middle_and_spread(cosines[right]), middle_and_spread(cosines[~right])
    if answer[0] - other[0] < _LEAST:  # the model tells nothing apart: as if answers were far away, so that its cosines hardly count
        answer = (other[0] + 1.0, answer[1])
    return Cosines(*answer, *other)
