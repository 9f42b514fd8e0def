import base64
import hashlib
import hmac
import re
import time


def verify(headers, body, secret, now=None):
    """Whether a request was signed with secret in the last five minutes.

    headers is a mapping with lower-case names, body the bytes that were
    received, before any decoding.
    """
    at = headers.get("x-webhook-timestamp", "")
    now = int(time.time() if now is None else now)
    if not re.fullmatch("[0-9]{1,12}", at) or abs(now - int(at)) > 300:
        return False
    delivery = headers.get("x-webhook-delivery-id")
    if delivery:  # endpoint of a provider
        prefix = f"{at}\n{delivery}\n"
        given = [headers.get("x-webhook-signature", ""), headers.get("x-webhook-signature-next", "")]
    else:  # address of an account
        prefix = f"{at}."
        given = headers.get("x-webhook-signature-v2", "").split(",")
    digest = hmac.new(secret.encode(), prefix.encode("latin-1") + body, hashlib.sha256)
    want = base64.b64encode(digest.digest()) if delivery else digest.hexdigest().encode()
    return any([hmac.compare_digest(g.encode("latin-1"), want) for g in given])
