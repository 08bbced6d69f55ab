"""Dates in the names of files, and bounds of dates as people say them."""

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.dates import date_in_name, entries_of, start_of, stated_day
from rolebundle.contracts.request import Where

NOW = datetime(2026, 11, 28, 15, tzinfo=UTC)  # a Saturday


@pytest.mark.parametrize(("name", "found"), [
    ("2026-03-12 minutes.md", "2026-03-12"), ("minutes/2026_03_12.md", "2026-03-12"),
    ("20260312_scan.pdf", "2026-03-12"), ("260312 notes.md", "2026-03-12"),
    ("IMG_20260312_101500.jpg", "2026-03-12"), ("2026-W12.md", "2026-03-16"),
    ("Lease (signed) 14.02.2025.pdf", "2025-02-14"), ("14.02.25 minutes.md", "2025-02-14"),
    ("02-14-2025 x.md", "2025-02-14"), ("1.3.2025.md", "2025-03-01"),
    ("Protokoll 12. M\u00e4rz 2026.docx", "2026-03-12"), ("12mar2026.txt", "2026-03-12"),
    ("Protokoll 12. Ma\u0308rz 2026.docx", "2026-03-12"), ("March 12, 2026.md", "2026-03-12"),
    ("CR 3 f\u00e9vrier 2025.docx", "2025-02-03"), ("acta 5 de marzo de 2026.docx", "2026-03-05"), ("acta-marzo-2026.md", "2026-03"),
    ("minutes_march25.docx", "2025-03"), ("Rates_Jan-2026_v2.pdf", "2026-01"),
    ("202603 sales.csv", "2026-03"), ("Prices 05.2026.pdf", "2026-05"),
    ("Q3 2026 report.pdf", "2026-07"), ("report-2026Q1.pdf", "2026-01"),
    ("minutes 20 May 24.txt", "2024-05-20"), ("to 31 Mar 26.xlsx", "2026-03-31"),
    ("DN our 2026-088 Ek.txt", ""), ("dn 2026-0611 hinges.txt", ""), ("R-2026/0190.pdf", ""), ("Order 2026 112.pdf", ""),
    ("Handbook 2026.md", "2026"), ("FY2025 accounts.xlsx", "2025"), ("fees 2024-25.pdf", "2024"),
    ("Handbook 2026 (2025-12-10).md", "2025-12-10"),
    ("budget2026.xlsx", "2026"), ("Tax 2026.md", "2026"), ("Q3-2021 x.md", "2021-07"),
    # A citation key names another work.
    ("@Hansson2021 rest.md", ""), ("notes on @li2020a.md", ""), ("@de_vries_2019.md", ""),
    ("@Hansson2021 read 2026-03-12.md", "2026-03-12"), ("@2026-03-12 call.md", "2026-03-12"),
    # A label names a thing.
    ("AB-2026-0412 kitchen.docx", ""), ("Wiegand L-2026-07.docx", ""), ("L-2026-07 2026-09-01.md", "2026-09-01"),
    ("minutes-2026-07.md", "2026-07"), ("PR-2026-07-12.md", "2026-07-12"),
    # Two things can be meant, or nothing.
    ("03-04-2025 x.md", "2025"), ("2026-02-30.md", "2026"), ("rates 2025-2026.pdf", ""),
    ("2026-03-01 to 2026-03-05.md", ""), ("v120260301.md", ""), ("python-3.10.12.md", ""),
    ("macOS 10.15.7.md", ""), ("RFC 7231.md", ""), ("Budget v3 FINAL.xlsx", ""),
    ("room 101.md", ""), ("scan 25.md", ""), ("plan 24h.md", ""), ("", ""),
])  # fmt: skip
def test_the_date_in_a_name(name, found):
    assert date_in_name(name) == found


@pytest.mark.parametrize(("line", "day", "form"), [
    ("2 November 2026", "2026-11-02", "alone"), ("Bonn, Montag, den 2. November 2026", "2026-11-02", "alone"),
    ("Paris, le 2 novembre 2026", "2026-11-02", "alone"), ("Club - 2026-11-02", "2026-11-02", "alone"),
    ("To: House Lindenhof      20 March 2026", "2026-03-20", "alone"), ("Le 6 octobre 2026, à l'attention de A.", "2026-10-06", "alone"),
    ("between House A and B. Ltd, from 1 March 2024", "2024-03-01", "valid"), ("zwischen A und B, ab 1. März 2024", "2024-03-01", "valid"),
    ("À faire – état au 27 novembre 2026", "2026-11-27", "label"), ("Estado al 25 de septiembre de 2026", "2026-09-25", "label"),
    ("Établie par Ana Roche le 22 septembre 2026", "2026-09-22", "label"), ("Adopted on 12 May 2019", "2019-05-12", "label"),
    ("Devis n° 2026-31 bis du 2 novembre 2026 - CORRIGÉ", "2026-11-02", "number"), ("Votre devis n° 31 du 2 novembre 2026", "", ""),
    ("Angebot Nr. 2026-31 vom 28. September 2026", "2026-09-28", "number"), ("To: Mr Smith, due 20 March 2026", "", ""),
    ("**Stand:** 02.11.2026, Bonn", "2026-11-02", "label"), ("Date : 2 nov 2026", "2026-11-02", "label"),
    ("Invoice date: 2026-11-02T10:00", "2026-11-02", "label"), ("Fecha: 2 de noviembre de 2026", "2026-11-02", "label"),
    ("Minutes of 2 November 2026", "2026-11-02", "title"), ("Tour, plan of 2.11.2026", "2026-11-02", "title"),
    ("Version B, 2 November 2026, Imhof. Replaces A.", "2026-11-02", "label"), ("Versie 3 van 2 maart 2026", "2026-03-02", "label"),
    ("Aarau, 2 November 2026. Contract of 28 May 2026.", "2026-11-02", "alone"), ("As of 2 November 2026", "2026-11-02", "alone"),
    ("Milano, lunedì 2 novembre 2026", "2026-11-02", "alone"), ("2 november 2026, 14:10", "2026-11-02", "alone"),
    ("Monday, 2 November 2026. We meet at 9:00.", "2026-11-02", "title"),
    ("2 November 2026. We met.", "2026-11-02", "title"), ("We met in Bonn, on 2 November 2026. It rained.", "", ""),
    ("For: Lindner, Bonn. Date: 2 November 2026.", "2026-11-02", "label"), ("CLIMATE SHEET   version of 2 November 2026", "2026-11-02", "label"),
    ("As of 2 November 2026. Written by Ann.", "2026-11-02", "alone"), ("Signed on 2 November 2026 by Ann", "2026-11-02", "label"),
    ("État au 2 novembre 2026", "2026-11-02", "label"), ("Stato al 2 novembre 2026", "2026-11-02", "label"),
    ("Le 2 novembre 2026, à l'attention de Mme Roy", "2026-11-02", "alone"), ("Date : 2 novembre 2026, de 9 h à minuit", "", ""),
    ("Unterzeichnet am 2. November 2026", "2026-11-02", "label"), ("It replaces the version of 2 November 2026", "", ""),
    ("As of 2 November 2026 doors are locked", "2026-11-02", "title"), ("Due date: 2 November 2026", "", ""), ("Valid until 2 November 2026", "", ""), ("Date: 02/11/2026", "", ""),
    ("Date of birth: 2 November 1986", "", ""), ("Widerspruch zum Bescheid vom 2.11.2026", "", ""),
    ("Sheet of 2 November 2026, written by Ann.", "2026-11-02", "label"), ("Merkblatt vom 2. November 2026", "2026-11-02", "label"),
    ("Corrected budget of 2 November 2026, replaces the budget of 25 September 2026", "2026-11-02", "label"),
    ("Budget corrigé du 2 novembre 2026", "2026-11-02", "label"), ("Your report of 2 November 2026 came.", "", ""),
    ("from March 2026", "2026-03-01", "valid"), ("Born in March 1980", "", ""),
    ("Tenant from 1 March 2015: Ana", "2015-03-01", "from"), ("Member from May 2018", "", ""),
    ("Season 2026, corrected 5 October 2026; the earlier one was wrong", "2026-10-05", "label"),
    ("Valid from 2 November 2026. It replaces the rules.", "2026-11-02", "valid"), ("Preise ab 2.11.2026", "2026-11-02", "valid"),
    ("Date: 2 nov 26", "", ""), ("Date: 2 May 2026 to 5 May 2026", "", ""), ("Edition of May 2026", "", ""),
])  # fmt: skip
def test_the_day_that_a_line_states_of_its_text(line, day, form):
    assert stated_day(line) == (day, form)


@pytest.mark.parametrize(("line", "day", "rest"), [
    ("22 Oct  Editor: ill", "2026-10-22", "  Editor: ill"), ("- 4 August 2026, 10:15. Ann", "2026-08-04", ", 10:15. Ann"),
    ("Mon 5 Jan: x", "2026-01-05", ": x"), ("22. Okt. Anruf", "2026-10-22", ". Anruf"), ("22.10. Anruf", "2026-10-22", " Anruf"),
    ("le 3 mars: x", "2026-03-03", ": x"), ("22 de octubre: x", "2026-10-22", ": x"), ("December 24 x", "2025-12-24", " x"),
    ("2026-11-17", "2026-11-17", ""), ("22 people", "", "22 people"), ("1.2. Rates", "", "1.2. Rates"),
    ("2 Oct 1875: x", "", "2 Oct 1875: x"),
])  # fmt: skip
def test_the_day_that_an_entry_of_notes_begins_with(line, day, rest):
    assert entries_of(line, "2026-11-28") == [(day, rest)]


@pytest.mark.parametrize(("text", "found"), [
    ("2026", "2026-01-01"), ("2026-03", "2026-03-01"), ("in 2025", "2025-01-01"),
    ("Q3 2026", "2026-07-01"), ("12.03.2026", "2026-03-12"), ("im M\u00e4rz 2026", "2026-03-01"),
    ("marzo de 2026", "2026-03-01"), ("since March 2026", "2026-03-01"),
    ("march", "2026-03-01"), ("december", "2025-12-01"), ("friday", "2026-11-27"),
    ("saturday", "2026-11-28"), ("last saturday", "2026-11-21"), ("desde el lunes", "2026-11-23"),
    ("today", "2026-11-28"), ("Yesterday", "2026-11-27"), ("seit gestern", "2026-11-27"),
    ("aujourd'hui", "2026-11-28"), ("hoy", "2026-11-28"),
    ("this month", "2026-11-01"), ("last week", "2026-11-16"), ("last quarter", "2026-07-01"),
    ("letzte Woche", "2026-11-16"), ("letztes Jahr", "2025-01-01"),
    ("la semaine pass\u00e9e", "2026-11-16"), ("l'ann\u00e9e derni\u00e8re", "2025-01-01"),
    ("\u00faltima semana", "2026-11-16"), ("el mes pasado", "2026-10-01"),
    ("last 7 days", "2026-11-21"), ("les 7 derniers jours", "2026-11-21"),
    ("a week ago", "2026-11-21"), ("3 months ago", "2026-08-28"), ("vor drei Monaten", "2026-08-28"),
    ("il y a deux ans", "2024-11-28"), ("hace 2 semanas", "2026-11-14"),
    # Nothing else is a date.
    ("soon", None), ("Can a stolen tablet", None), ("next week", None), ("last", None),
    ("3 days", None), ("2026 2025", None), ("9999 years ago", None), ("week week", None),
])  # fmt: skip
def test_where_a_bound_begins(text, found):
    begin = start_of(text, NOW)
    assert (begin and begin.date()) == (found and date.fromisoformat(found))


@given(st.text(max_size=40), st.datetimes(timezones=st.just(UTC)))
def test_any_text_is_read_or_not(text, now):
    begin = start_of(text, now)
    assert begin is None or begin.tzinfo is UTC
    assert len(date_in_name(text)) in (0, 4, 7, 10)


def test_bounds_of_where_count_from_the_time_of_the_request():
    where = Where.model_validate({"updated_after": "last week", "updated_before": 2027})
    bounds = where.at(NOW)
    assert bounds.updated_after == datetime(2026, 11, 16, tzinfo=UTC)
    assert bounds.updated_before == datetime(2027, 1, 1, tzinfo=UTC)
    assert where.at(datetime(2026, 3, 4, tzinfo=UTC)).updated_after == datetime(
        2026, 2, 23, tzinfo=UTC
    )
