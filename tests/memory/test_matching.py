"""By what an intent matches a decision, and what follows."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.memory import DecisionRecord
from rolebundle.contracts.terms import DECISION_EFFECTS, DecisionEffect
from rolebundle.memory.intents import (
    Intent,
    Match,
    command_lines,
    match_of,
    matching_pattern,
    only_reads,
    verdict_of,
)


def intent_of(
    intent: str = "", command: str = "", action: Any = None, also: tuple[str, ...] = ()
) -> Intent:
    return Intent.of((intent, *also), command, action)


def found(
    text: str,
    about: str = "",
    commands: tuple[str, ...] = (),
    closeness: float = 0.0,
    **fields: Any,
) -> Match | None:
    words = [entry.strip() for entry in about.split(",") if entry.strip()]
    record = DecisionRecord.model_construct(text=text, about=words, commands=[*commands])
    return match_of(record, intent_of(**fields), closeness)


@pytest.mark.parametrize(
    ("pattern", "line", "is_match"),
    [
        ("restic forget*", "restic forget --prune", True),
        ("restic forget*", "sudo -u backup restic forget", True),
        ("restic forget*", "cd /srv && restic --quiet forget", True),
        ("restic forget*", "restic snapshots; 'restic' \"forget\" abc", True),
        ("restic forget*", "true || restic forget 'an open quote", True),
        ("restic forget*", "if true; then (restic \\\n forget x); fi", True),
        ("restic forget*", "restic snapshots", False),
        ("restic forget*", "echo restic forget", False),
        ("restic forget*", "grep -r 'restic forget' docs", False),
        ("restic forget*", "", False),
        ("restic forget*", "&&", False),
        ("restic forget*", "'", False),
        # Folders count in arguments and before a star.
        ("rm -rf /srv/restic/*", "rm -rf /srv/restic/home", True),
        ("*zones/a.example*", "vi /etc/zones/a.example", True),
        ("/usr/bin/restic forget", "restic forget", True),
    ],
)
def test_a_pattern_matches_a_command_of_the_line(pattern: str, line: str, is_match: bool) -> None:
    found = matching_pattern(["mkfs *", pattern], command_lines(line))
    assert found == (pattern if is_match else "")


@given(st.text(max_size=60))
def test_any_text_is_read(text: str) -> None:
    assert all(command_lines(text))
    assert intent_of(command=f"x {text}").lines


class TestMatch:
    @pytest.mark.parametrize(
        "fields",
        [
            {"command": "restic forget"},
            {"intent": "restic forget --prune"},
            {"intent": "I will run `restic forget` on the server"},
            {"intent": "look at it", "action": "read", "command": "restic forget"},
        ],
    )
    def test_a_command_pattern(self, fields: dict[str, Any]) -> None:
        answer = found("Keep the backups", commands=("restic forget*",), **fields)
        assert answer == ("command", 1.0, ["restic forget*"])

    @pytest.mark.parametrize(
        ("intent", "words"),
        [
            ("turn off the junk-mail protection", ["junk mail"]),
            ("Turn off the spam filters and rspamd", ["spam filter", "rspamd"]),
            ("restart the mail server", None),
        ],
    )
    def test_an_entry_of_about_triggers_in_any_form_of_its_words(
        self, intent: str, words: list[str] | None
    ) -> None:
        about = "spam filter, junk mail, rspamd"
        answer = found("It stays on", about, intent=intent)
        assert (answer and (answer[0], answer[2])) == (words and ("about", words))

    def test_another_wording_counts(self) -> None:
        assert found("It stays on", "junk mail", intent="x", also=("junk mail off",))
        assert found("它开着", "垃圾邮件", intent="关闭垃圾邮件过滤器")

    def test_a_decision_with_commands_is_about_no_other_command(self) -> None:
        fields = {"command": "systemctl status rsyslog"}
        assert found("Keep the log", "rsyslog", **fields)
        assert found("Keep the log", "rsyslog", ("systemctl stop rsyslog*",), **fields) is None

    def test_two_thirds_of_its_words_and_two_of_them(self) -> None:
        text = "Never deploy the billing service on Fridays"
        assert found(text, intent="deploying billing services this Friday")[0] == "likeness"  # type: ignore[index]
        assert found(text, intent="deploy the shop this Monday") is None
        assert found("Do not deploy", intent="deploy the shop") is None

    @pytest.mark.parametrize(
        ("closeness", "kind"), [(0.49, None), (0.5, "near"), (0.66, "near"), (0.67, "likeness")]
    )
    def test_a_closeness_in_meaning(self, closeness: float, kind: str | None) -> None:
        answer = found("Never deploy on Fridays", closeness=closeness, intent="ship it")
        assert (answer and answer[0]) == kind


@given(
    st.sampled_from(["command", "about", "likeness", "near"]),
    st.sampled_from(DECISION_EFFECTS),
    st.booleans(),
)
def test_only_a_command_blocks_and_reading_is_never_warned_of(
    kind: Any, effect: DecisionEffect, only_reads: bool
) -> None:
    verdict = verdict_of(kind, effect, only_reads=only_reads)
    if kind == "command":
        assert verdict == effect
    elif only_reads or kind == "near":
        assert verdict is None
    else:
        assert verdict == min(
            effect, "require_approval" if kind == "about" else "warn", key=DECISION_EFFECTS.index
        )


@pytest.mark.parametrize(
    ("fields", "reads"),
    [
        ({"intent": "Explain what the spam filter does"}, True),
        ({"intent": "please list the backups of the mail server, and the size of each"}, True),
        ({"intent": "Find out why the backup was slow; describe what you found"}, True),
        ({"intent": "When was the last backup?"}, True),
        ({"intent": "Switch off the spam filter"}, False),
        ({"intent": "Explain the filter and switch it off"}, False),
        ({"intent": "List the backups. Delete the old ones."}, False),
        ({"intent": "When the shop closes, reindex the search"}, False),
        ({"intent": "Can I delete the backups?"}, False),
        ({"intent": "Liste die Backups auf"}, False),
        ({"intent": " "}, False),
        # A command or an action says more than words.
        ({"intent": "Explain it", "action": "execute"}, False),
        ({"intent": "Switch it off", "action": "read"}, True),
        ({"intent": "Explain it", "command": "rm x"}, False),
        ({"command": "cat a | grep b", "action": "execute"}, True),
        ({"command": "cat a > b"}, False),
    ],
)
def test_what_only_reads(fields: dict[str, Any], reads: bool) -> None:
    assert intent_of(**fields).only_reads is reads
    assert not only_reads("")


# Written before the matching: decisions, what they are about, and two intents about each.
DECIDED = (
    ("Do not post automatically", "schedule, publish",
     "schedule a post about 3.0", "Set up a bot that posts our news to Mastodon every morning"),
    ("All customer emails need approval by legal before they are sent", "newsletter",
     "send the price change email to all customers", "Mail the October newsletter to our customers"),
    ("No discounts above 20% without the sales director", "price, rebate, offer",
     "offer the Hamburg client a 35% discount", "Give Acme a rebate of 30 percent on the yearly price"),
    ("Hiring is frozen until the second quarter", "recruit, job offer, candidate",
     "send the job offer to the candidate for the data team", "Start hiring two warehouse workers"),
    ("Never change the production database by hand", "sql, update, prod",
     "run an SQL update on the production database", "Fix the wrong address by hand in the prod database"),
    ("The kitchen must not serve peanuts", "nuts, menu",
     "add a peanut curry to the menu on Tuesday", "Plan a dessert with peanuts for the kitchen"),
    ("No flights for trips under 500 km", "travel, airline",
     "book a flight to Hanover for the trade fair", "Book the trip to Vienna: flights and a hotel"),
    ('Do not train models on customer conversations', 'fine-tune, dataset, chat logs',
     "fine-tune the support model on last year's chat logs", 'Build a dataset of customer conversations to train the classifier'),
    ("The reactor is not opened above 60 degrees", "hatch, vessel",
     "open the reactor hatch for the sample", "Open reactor 2 while it cools down at 80 degrees"),
    ("The old logo must not be used in print", "brand, brochure",
     "print 500 brochures with the old logo", "Use the logo from 2019 on the printed poster"),
)  # fmt: skip
UNRELATED = """
measure the noise in the assembly hall
rename the variable in the sorting function
draft a thank-you letter to the volunteers
collect feedback from customers about the new search
update the contact page with the new phone number
order new toner for the second floor
open the window in the meeting room
write down what we learned from the outage on Friday
read the release plan and list the risks
describe how the cache works
change the color of the save button
model the traffic on the bridge
find a hotel near the conference center
export the list of books on loan
record a video about the new lathe
delete the temporary files of the build
share the agenda of the board game evening
train the new volunteers at the front desk
store the tents in the cellar
serve coffee after the lecture
""".strip().splitlines()


def test_intents_about_a_decision_and_unrelated_ones_by_words_alone() -> None:
    def applies(text: str, about: str, intent: str) -> bool:
        answer = found(text, about, intent=intent)
        return bool(answer and verdict_of(answer[0], "warn", only_reads=only_reads(intent)))

    named = [applies(text, about, each) for text, about, *both in DECIDED for each in both]
    warned = [any(applies(*decided[:2], each) for decided in DECIDED) for each in UNRELATED]
    assert (len(named), len(warned)) == (20, 20)
    assert sum(named) >= 14
    assert sum(warned) <= 1
