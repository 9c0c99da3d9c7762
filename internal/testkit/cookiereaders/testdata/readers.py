# Prints what the parsers of Python read. Each line of the input is a Cookie field in hex. Each line of the output has the
# value of the cookie session for Django, werkzeug and http.cookies, in hex, or "-" without one.
import sys
from http.cookies import CookieError, SimpleCookie

from django.http.cookie import parse_cookie as django
from werkzeug.http import parse_cookie as werkzeug


def simple(field):
    cookies = SimpleCookie()
    try:
        cookies.load(field)
    except CookieError:
        return {}
    return {name: morsel.value for name, morsel in cookies.items()}


# A WSGI server decodes the field as ISO 8859-1. Django and werkzeug decode it again, as UTF-8.
readers = (
    lambda field: django(field.encode("latin-1").decode("utf-8", "replace")),
    lambda field: dict(werkzeug(field)),
    simple,
)
for line in sys.stdin:
    field = bytes.fromhex(line.strip()).decode("latin-1")
    values = [reader(field).get("session") for reader in readers]
    print(*["-" if value is None else "x" + value.encode("utf-8", "surrogatepass").hex() for value in values], flush=True)
