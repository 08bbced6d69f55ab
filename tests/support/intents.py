"""Decisions of several domains, intents that they are about, and intents that they are not.

The intents were written before the matching. Each of the unrelated ones is compared with all of
the decisions, and several of them share a word with one.
"""

from typing import NamedTuple


class Decided(NamedTuple):
    """A decision, and intents that it is about, each with the action of the request."""

    text: str
    about: str
    action: str
    intents: tuple[tuple[str, str], ...]


DECISIONS = (
    Decided("Do not post automatically", "schedule, publish", "external_send", (
        ("schedule a post about 3.0", "external_send"),
        ("Set up a bot that posts our news to Mastodon every morning", "external_send"),
    )),
    Decided("Never deploy on Fridays", "release, rollout", "execute", (
        ("deploy the billing service this Friday", "execute"),
        ("Start the rollout of build 512 on Friday afternoon", "execute"),
    )),
    Decided("All customer emails need approval by legal before they are sent", "newsletter", "", (
        ("send the price change email to all customers", "external_send"),
        ("Mail the October newsletter to our customers", "external_send"),
    )),
    Decided("Do not use GPL-licensed libraries", "dependency, license", "", (
        ("add the readline library, which is under the GPL, as a dependency", ""),
        ("Vendor a GPL library for the spell checker", "execute"),
    )),
    Decided("No discounts above 20% without the sales director", "price, rebate, offer", "", (
        ("offer the Hamburg client a 35% discount", ""),
        ("Give Acme a rebate of 30 percent on the yearly price", "external_send"),
    )),
    Decided("Do not delete patient records", "purge, erase, remove", "", (
        ("erase the records of patients who left the clinic", "execute"),
        ("Run the cleanup job that removes old patient records", "execute"),
    )),
    Decided("Hiring is frozen until the second quarter", "recruit, job offer, candidate", "", (
        ("send the job offer to the candidate for the data team", "external_send"),
        ("Start hiring two warehouse workers", ""),
    )),
    Decided("Do not share salary data outside of HR", "payroll, compensation", "", (
        ("share the salary table with the team leads", "external_send"),
        ("Export the payroll data for the consultants", "execute"),
    )),
    Decided("Never change the production database by hand", "sql, update, prod", "execute", (
        ("run an SQL update on the production database", "execute"),
        ("Fix the wrong address by hand in the prod database", "execute"),
    )),
    Decided("Stop ordering from Nordwind Logistics", "purchase, supplier", "", (
        ("order 40 pallets from Nordwind Logistics", "execute"),
        ("Place a purchase with Nordwind for next week", ""),
    )),
    Decided("The kitchen must not serve peanuts", "nuts, menu", "", (
        ("add a peanut curry to the menu on Tuesday", ""),
        ("Plan a dessert with peanuts for the kitchen", ""),
    )),
    Decided("Do not prescribe tetracycline to children under eight", "antibiotic, pediatric", "", (
        ("prescribe tetracycline for the six year old child in bed 4", ""),
        ("Choose an antibiotic for the pediatric ward: tetracycline", ""),
    )),
    Decided("No flights for trips under 500 km", "travel, airline", "", (
        ("book a flight to Hanover for the trade fair", "execute"),
        ("Book the trip to Vienna: flights and a hotel", "execute"),
    )),
    Decided("Release notes are reviewed by Mira before publication", "changelog", "", (
        ("publish the release notes of 2.4", "external_send"),
        ("Put the changelog and release notes online", "external_send"),
    )),
    Decided("Do not train models on customer conversations", "fine-tune, dataset, chat logs", "", (
        ("fine-tune the support model on last year's chat logs", "execute"),
        ("Build a dataset of customer conversations to train the classifier", ""),
    )),
    Decided("Do not reschedule exams during the term", "postpone, exam date", "", (
        ("move the chemistry exam to another week of the term", ""),
        ("Postpone the exam in room 12 by two days", ""),
    )),
    Decided("The reactor is not opened above 60 degrees", "hatch, vessel", "execute", (
        ("open the reactor hatch for the sample", "execute"),
        ("Open reactor 2 while it cools down at 80 degrees", "execute"),
    )),
    Decided("Never store passwords in plain text", "credentials, secret", "", (
        ("write the password into the config file in plain text", "execute"),
        ("Store the database credentials and passwords in the wiki", ""),
    )),
    Decided("The old logo must not be used in print", "brand, brochure", "", (
        ("print 500 brochures with the old logo", "execute"),
        ("Use the logo from 2019 on the printed poster", ""),
    )),
    Decided("Do not water the greenhouse between noon and four", "irrigation", "", (
        ("water the greenhouse at two in the afternoon", "execute"),
        ("Start the irrigation of the greenhouse at 13:00", "execute"),
    )),
)  # fmt: skip

UNRELATED = (
    ("summarize the minutes of the works council", ""),
    ("translate the user guide into Polish", "suggest"),
    ("run the unit tests of the parser", "execute"),
    ("draw a chart of the energy use of the last three years", ""),
    ("compare two offers for office chairs", ""),
    ("write a birthday card for Jonas", ""),
    ("find out why the nightly backup was slow", "analyze"),
    ("calibrate the microscope in room 7", "execute"),
    ("list all open pull requests older than a month", "read"),
    ("explain the new tax rules for freelancers", ""),
    ("count the trees in the north meadow", ""),
    ("prepare slides on the history of the museum", ""),
    ("reply to the question about parking at the stadium", "external_send"),
    ("send the invoice for May to the landlord", "external_send"),
    ("review the error handling in the upload form", ""),
    ("look up the opening hours of the library in Bergen", ""),
    ("repair the pump in the laundry room", "execute"),
    ("write a test for the date picker", ""),
    ("plan the seating for the choir concert", ""),
    ("check the spelling of the annual report", ""),
    ("measure the noise in the assembly hall", "execute"),
    ("rename the variable in the sorting function", "execute"),
    ("draft a thank-you letter to the volunteers", ""),
    ("collect feedback from customers about the new search", ""),
    ("update the contact page with the new phone number", "execute"),
    ("order new toner for the second floor", "execute"),
    ("open the window in the meeting room", ""),
    ("write down what we learned from the outage on Friday", ""),
    ("read the release plan and list the risks", "read"),
    ("describe how the cache works", ""),
    ("change the color of the save button", "execute"),
    ("model the traffic on the bridge", "analyze"),
    ("find a hotel near the conference center", ""),
    ("export the list of books on loan", "execute"),
    ("record a video about the new lathe", ""),
    ("delete the temporary files of the build", "execute"),
    ("share the agenda of the board game evening", "external_send"),
    ("train the new volunteers at the front desk", ""),
    ("store the tents in the cellar", ""),
    ("serve coffee after the lecture", ""),
)
