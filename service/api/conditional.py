"""Strong entity tags and ``If-None-Match`` (RFC 9110, 8.8.3 and 13.1.2)."""

from hashlib import blake2b

from service.api.reply import Reply

_TAG_BYTES = 12


def entity_tag(body: bytes) -> str:
    """A strong tag of the bytes themselves, so that every worker and every host gives the same."""
    return f'"{blake2b(body, digest_size=_TAG_BYTES).hexdigest()}"'


def matches(if_none_match: str, tag: str) -> bool:
    """Whether the client's copy is current; weak tags compare by their value, ``*`` is any copy."""
    listed = [part.strip().removeprefix("W/") for part in if_none_match.split(",")]
    return "*" in listed or tag in listed


def conditional(reply: Reply, if_none_match: str | None) -> Reply:
    """``reply`` with its tag, or an empty 304 where the client already has it."""
    tag = entity_tag(reply.body)
    if if_none_match is not None and matches(if_none_match, tag):
        reply.status, reply.body = 304, b""
        reply.headers = [pair for pair in reply.headers if pair[0] not in {b"content-type", b"content-length"}]
    reply.headers += [(b"etag", tag.encode("latin-1")), (b"cache-control", b"no-cache")]
    return reply
