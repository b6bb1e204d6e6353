"""An SMTP server on a port of 127.0.0.1, by default a free one, that prints every mail it receives as one line of JSON.

    server.py plain | starttls | smtps [--port PORT] [--certificate FILE --key FILE] [--user NAME --password PASSWORD]

The first line of its output is `listening PORT`. Mails are parsed with Python's own `email` package, so that the test
sees what a mail reader would see and not what our program meant.
"""

import argparse
import asyncio
import email
import email.policy
import json
import ssl

from aiosmtpd.controller import UnthreadedController
from aiosmtpd.smtp import AuthResult, LoginPassword


class Printer:
    async def handle_DATA(self, server, session, envelope):
        mail = email.message_from_bytes(envelope.content, policy=email.policy.default)
        say(
            {
                "from": envelope.mail_from,
                "to": envelope.rcpt_tos,
                "encrypted": server.transport.get_extra_info("ssl_object") is not None,
                "user": session.auth_data.login.decode() if session.auth_data else None,
                "headers": [[name, str(value)] for name, value in mail.items()],
                "text": mail.get_content(),
            }
        )
        return "250 OK"


def say(line):
    print(json.dumps(line) if isinstance(line, dict) else line, flush=True)


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=["plain", "starttls", "smtps"])
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--certificate")
    parser.add_argument("--key")
    parser.add_argument("--user")
    parser.add_argument("--password")
    return parser.parse_args()


def main():
    wanted = options()
    settings = {}
    if wanted.mode != "plain":
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(wanted.certificate, wanted.key)
        if wanted.mode == "smtps":
            settings["ssl_context"] = context
        else:
            settings.update(tls_context=context, require_starttls=True)
    if wanted.user:
        right = LoginPassword(wanted.user.encode(), wanted.password.encode())
        # aiosmtpd counts only STARTTLS as encryption, so the test decides where a password may be sent.
        settings.update(
            auth_required=True,
            auth_require_tls=False,
            authenticator=lambda server, session, envelope, mechanism, data: AuthResult(
                success=data == right, handled=False, auth_data=data
            ),
        )
    loop = asyncio.new_event_loop()
    controller = UnthreadedController(Printer(), hostname="127.0.0.1", port=wanted.port, loop=loop, **settings)
    controller.begin()
    say(f"listening {controller.server.sockets[0].getsockname()[1]}")
    loop.run_forever()


main()
