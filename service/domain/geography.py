"""Countries, continents and the European Union, for where an offer stands."""

from service.domain.offer import Offer

_COUNTRIES_OF = {
    "africa": (
        "AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EG EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU "
        "MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW"
    ),
    "antarctica": "AQ BV GS HM TF",
    "asia": (
        "AE AF AM AZ BD BH BN BT CC CN CX CY GE HK ID IL IN IO IQ IR JO JP KG KH KP KR KW KZ LA LB LK MM MN "
        "MO MV MY NP OM PH PK PS QA SA SG SY TH TJ TL TM TR TW UZ VN YE"
    ),
    "europe": (
        "AD AL AT AX BA BE BG BY CH CZ DE DK EE ES FI FO FR GB GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC "
        "MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA"
    ),
    "north_america": (
        "AG AI AW BB BL BM BQ BS BZ CA CR CU CW DM DO GD GL GP GT HN HT JM KN KY LC MF MQ MS MX NI PA PM PR "
        "SV SX TC TT US VC VG VI"
    ),
    "oceania": "AS AU CK FJ FM GU KI MH MP NC NF NR NU NZ PF PG PN PW SB TK TO TV UM VU WF WS",
    "south_america": "AR BO BR CL CO EC FK GF GY PE PY SR UY VE",
}
"""ISO 3166-1 alpha-2 codes by continent (United Nations M49 regions, the Americas parted at Panama)."""

CONTINENTS = tuple(_COUNTRIES_OF)

CONTINENT_OF = {country: continent for continent, codes in _COUNTRIES_OF.items() for country in codes.split()}

_EU = "AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK"
EU_MEMBERS = frozenset(_EU.split())
"""The 27 member states of the European Union (europa.eu, since 2020)."""

EEA_MEMBERS = EU_MEMBERS | {"IS", "LI", "NO"}


def squeeze(name: str) -> str:
    """Lower-case letters and digits of a name, so that case, spaces and dashes do not matter."""
    return "".join(c for c in name.casefold() if c.isalnum())


def stays_in_eu(offer: Offer) -> bool | None:
    """Whether the instance stands in the European Union; None where the seller does not tell the country."""
    if offer.country is not None:
        return offer.country in EU_MEMBERS
    if offer.region is not None and squeeze(offer.region) == "eu":
        return True
    return None if offer.continent in {None, "europe", "asia"} else False


def stands_in(offer: Offer, place: str) -> bool:
    """Whether an offer stands in ``place``: a region's name, a country code, a continent, ``EU`` or ``EEA``.

    An offer whose place is not told stands nowhere.
    """
    wanted = squeeze(place)
    if wanted == "eu":
        return stays_in_eu(offer) is True
    if wanted == "eea" and (offer.country in EEA_MEMBERS or stays_in_eu(offer) is True):
        return True
    told = (offer.region, offer.country, offer.continent)
    return any(name is not None and squeeze(name) == wanted for name in told)
