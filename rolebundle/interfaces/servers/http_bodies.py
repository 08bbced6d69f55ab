"""The bodies of HTTP requests, checked before the SDK reads them.

The SDK answers a body that is no message with the validator's own text, which names its classes.
"""

from __future__ import annotations

from collections.abc import Callable

from rolebundle.interfaces.servers.loopback import App, Receive, Scope, Send, send_json


def checked_bodies(app: App, refusal: Callable[[bytes], bytes | None], max_bytes: int) -> App:
    """An ASGI application that passes on to ``app`` only what is not refused.

    Args:
        app: it refuses bodies over ``max_bytes`` itself.
        refusal: the answer to a body that is refused, or ``None``.
        max_bytes: no more of a body is read and checked.
    """

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await app(scope, receive, send)
            return
        parts, body, is_whole = [], b"", False
        while not is_whole and len(body) <= max_bytes:
            part = await receive()
            parts.append(part)
            if part["type"] != "http.request":
                break
            body += part.get("body", b"")
            is_whole = not part.get("more_body", False)
        refused = refusal(body) if is_whole and len(body) <= max_bytes else None
        if refused is not None:
            await send_json(400, refused, send)
            return

        async def replay() -> object:
            return parts.pop(0) if parts else await receive()

        await app(scope, replay, send)

    return checked
