"""The words that name months, weekdays, seasons and numbers in the languages that dates.py reads. Tables only."""

from __future__ import annotations

# One row a month: English, German, French, Spanish, Italian, Portuguese, Dutch, Russian (as after a number, and alone).
_MONTH_ROWS = (
    "january januar jänner janvier enero gennaio janeiro januari января январь январе",
    "february februar février fevrier febrero febbraio fevereiro februari февраля февраль феврале",
    "march märz maerz mars marzo março marco maart марта март марте",
    "april avril abril aprile апреля апрель апреле",
    "may mai mayo maggio maio mei мая май мае",
    "june juni juin junio giugno junho июня июнь июне",
    "july juli juillet julio luglio julho июля июль июле",
    "august août aout agosto augustus августа август августе",
    "september septembre septiembre setiembre settembre setembro сентября сентябрь сентябре",
    "october oktober octobre octubre ottobre outubro октября октябрь октябре",
    "november novembre noviembre novembro ноября ноябрь ноябре",
    "december dezember décembre decembre diciembre dicembre dezembro декабря декабрь декабре",
)
_SHORT = ("jan", "feb", "mar", "apr", "", "jun", "jul", "aug", "sept sep", "oct okt", "nov", "dec dez")

MONTHS = {name: number for number, row in enumerate(_MONTH_ROWS, 1) for name in row.split()}
SHORT_MONTHS = {name: number for number, row in enumerate(_SHORT, 1) for name in row.split()}
# Words of their own as well: without a day or a year they need a word such as "in" or "last" before them.
AMBIGUOUS = frozenset(["may", "march", "mars", "mai", "mei", "marco", "marzo", "май", "август", "august", "мае", "марте", "марта"])

WEEKDAYS = {
    name: number
    for number, row in enumerate(
        (
            "monday montag lundi lunes lunedì segunda-feira maandag понедельник",
            "tuesday dienstag mardi martes martedì terça-feira dinsdag вторник",
            "wednesday mittwoch mercredi miércoles mercoledì quarta-feira woensdag среду среда",
            "thursday donnerstag jeudi jueves giovedì quinta-feira donderdag четверг",
            "friday freitag vendredi viernes venerdì sexta-feira vrijdag пятницу пятница",
            "saturday samstag sonnabend samedi sábado sabato zaterdag субботу суббота",
            "sunday sonntag dimanche domingo domenica zondag воскресенье",
        )
    )
    for name in row.split()
}

SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12, "春天": 3, "夏天": 6, "秋天": 9, "冬天": 12}

# Days from today.
DAYS = {
    "yesterday": -1, "today": 0, "tonight": 0, "tomorrow": 1,
    "gestern": -1, "vorgestern": -2, "heute": 0, "hier": -1, "avant-hier": -2, "aujourd'hui": 0, "demain": 1,
    "ayer": -1, "anteayer": -2, "hoy": 0, "ieri": -1, "oggi": 0, "ontem": -1, "hoje": 0,
    "вчера": -1, "позавчера": -2, "сегодня": 0, "завтра": 1,
    "大前天": -3, "前天": -2, "昨天": -1, "昨日": -1, "昨晚": -1,
    "今天": 0, "今日": 0, "今早": 0, "今晚": 0, "明天": 1, "明日": 1, "后天": 2,
    "一昨日": -2, "きのう": -1, "きょう": 0, "어제": -1, "그저께": -2, "오늘": 0, "내일": 1,
}  # fmt: skip

LAST = "last|past|previous|letzte[nrs]?|vorige[nrs]?|dernière?|pasad[oa]|scors[oa]|passad[oa]|прошл(?:ый|ой|ую|ого|ом|ая)"
THIS = "this|current|diese[nrs]?|cette|ce|est[ea]|quest[oa]|эт(?:от|ой|у|ом|а)"
NEXT = "next|coming|nächste[nrs]?|prochaine?|próxim[oa]|prossim[oa]|следующ(?:ий|ей|ую|ем|ая)"
WEEK = "week|woche|semaine|semana|settimana|неделе|неделю|неделя"
MONTH = "month|monat|mois|mes|mese|mês|месяце|месяц"
YEAR = "year|jahr|année|an|año|anno|ano|году|год"
WEEKEND = "weekend|wochenende|week-end|fin de semana|выходные"
DAY = "days?|tagen?|jours?|días?|giorni|giorno|dias?|дней|дня|день"
WEEKS = "weeks?|wochen?|semaines?|semanas?|settiman[ae]|недель|недели|неделю"
MONTHS_AGO = "months?|monaten?|mois|mes(?:es)?|mes[ei]|месяцев|месяца|месяц"
YEARS = "years?|jahren?|ans?|años?|ann[io]|anos?|лет|года|год"

SMALL = {
    word: number
    for number, row in enumerate(
        (
            "a an one ein einem einer un une uno una um uma один 一",
            "two couple zwei deux dos due dois duas два две 二 两",
            "three few drei trois tres tre três три 三",
            "four vier quatre cuatro quattro quatro четыре 四",
            "five fünf cinq cinco cinque пять 五",
            "six sechs seis sei шесть 六",
            "seven sieben sept siete sette sete семь 七",
            "eight acht huit ocho otto oito восемь 八",
            "nine neun neuf nueve nove девять 九",
            "ten zehn dix diez dieci dez десять 十",
        ),
        1,
    )
    for word in row.split()
}

# Words that begin a search for "last week" and its like.
SPAN_WORDS = (
    "week woche semaine semana settimana неделе неделю неделя month monat mois mes mese mês месяце месяц "
    "year jahr année an año anno ano году год weekend wochenende end fin выходные"
)
# A text that has one of these says when, or nearly.
TIME_WORDS = (
    "ago last next week weeks weekend month months year years day days since recently just morning afternoon evening "
    "woche wochen monat monate monaten jahr jahre jahren tag tage tagen letzte letzten nächste nächsten seit uhr "
    "semaine semaines mois an ans jour jours dernier dernière prochain prochaine depuis heure heures "
    "semana semanas mes meses año años día días pasado pasada próximo próxima hace desde "
    "settimana mese mesi anno anni giorno giorni scorso scorsa ano anos dia dias passado passada "
    "неделя неделю недели месяц месяца года год лет день дня дней назад"
)
