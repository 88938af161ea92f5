"""Secrets in URIs: what is kept and printed of a path shows neither a password nor a key."""

from __future__ import annotations

import re

REDACTED = "(redacted)"

_URI = re.compile(r"""[a-z][a-z0-9+.-]*://(?:[^/@:\[\s"]*:[^/@\n"]*@)?[^\s"]*""", re.IGNORECASE)
"""Up to a blank or a quote, but a password before the host may have blanks."""

# A key of Amazon's may have slashes. A colon, digits and a slash are otherwise a port, which no bucket has.
_USERINFO = re.compile(
    r"^(?P<scheme>s3[an]?://|[^:]*://(?![^/@:]*:[0-9]{1,5}/))[^/@:\[]*:.*(?=@)", re.IGNORECASE | re.DOTALL
)
_SECRET_IN_QUERY = re.compile(
    r"(?P<name>[?&;](?:[\w.%-]*(?:token|key|pass|pwd|secret|signature|credential)[\w.%-]*|(?:[\w.%-]*[-_.])?sig)=)[^&]+",
    re.IGNORECASE,
)


def redact(text: str) -> str:
    """Return a text without the secrets of the URIs in it.

    These are a user with a password, up to the last ``@`` of what may be one, and the values of a query whose names
    suggest a key: ``sig``, ``token``, ``X-Amz-Signature`` and the like.
    """
    return _URI.sub(lambda found: _redact_uri(found[0]), text)


def _redact_uri(uri: str) -> str:
    return _SECRET_IN_QUERY.sub(rf"\g<name>{REDACTED}", _USERINFO.sub(rf"\g<scheme>{REDACTED}", uri))
