# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Makes the secrets of a nats-server and its clients as files in one directory. These are
certificates of two authorities, an nkey user, and a JWT user of an account and an operator, in
nsc's format. Usage: `nats_secrets.py DIRECTORY`. Needs the standard library and `openssl` only."""

import base64
import json
import pathlib
import subprocess
import sys
import time

OPERATOR, ACCOUNT, USER, SEED = 14 << 3, 0 << 3, 20 << 3, 18 << 3  # first bytes of nkeys
DAYS = "2"


def openssl(*arguments, given=b""):
    return subprocess.run(["openssl", *map(str, arguments)], input=given, check=True,
                          capture_output=True).stdout


def crc16(data):
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return crc


def base32(data):
    whole = data + crc16(data).to_bytes(2, "little")
    return base64.b32encode(whole).decode().rstrip("=")


def base64_url(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class Nkey:
    """An Ed25519 key in NATS's encoding."""

    def __init__(self, directory, prefix):
        self.file = directory / f"nkey-{prefix}.pem"
        openssl("genpkey", "-algorithm", "ed25519", "-out", self.file)
        raw = openssl("pkey", "-in", self.file, "-outform", "DER")[-32:]
        public = openssl("pkey", "-in", self.file, "-pubout", "-outform", "DER")[-32:]
        self.public = base32(bytes([prefix]) + public)
        self.seed = base32(bytes([SEED | prefix >> 5, (prefix & 31) << 3]) + raw)

    def sign(self, data):
        file = self.file.with_suffix(".data")
        file.write_bytes(data)
        return openssl("pkeyutl", "-sign", "-rawin", "-inkey", self.file, "-in", file)


def jwt(issuer, subject, kind, **claims):
    head = {"typ": "JWT", "alg": "ed25519-nkey"}
    body = {"jti": f"test-{kind}", "iat": int(time.time()) - 60, "iss": issuer.public, "name": kind,
            "sub": subject.public, "nats": {"type": kind, "version": 2, **claims}}
    text = ".".join(base64_url(json.dumps(part).encode()) for part in (head, body))
    return f"{text}.{base64_url(issuer.sign(text.encode()))}"


def make_jwt(directory, permitted):
    """Writes jwt.conf for the server, and user.creds for a client that may use only one subject."""
    operator, account, user = (Nkey(directory, kind) for kind in (OPERATOR, ACCOUNT, USER))
    limits = {"subs": -1, "data": -1, "payload": -1}
    of_account = jwt(operator, account, "account", default_permissions={"pub": {}, "sub": {}},
                     limits={**limits, "imports": -1, "exports": -1, "wildcards": True,
                             "conn": -1, "leaf": -1})
    of_user = jwt(account, user, "user", pub={"allow": [permitted]}, sub={"allow": [permitted]},
                  **limits)
    (directory / "jwt.conf").write_text(
        f"operator: {jwt(operator, operator, 'operator')}\nresolver: MEMORY\n"
        f"resolver_preload: {{ {account.public}: {of_account} }}\n")
    (directory / "user.creds").write_text(
        f"-----BEGIN NATS USER JWT-----\n{of_user}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{user.seed}\n------END USER NKEY SEED------\n")


def make_nkey(directory):
    user = Nkey(directory, USER)
    (directory / "nkey.conf").write_text(
        f"authorization {{ users: [ {{ nkey: {user.public} }} ] }}\n")
    (directory / "user.nk").write_text(user.seed + "\n")
    (directory / "other.nk").write_text(Nkey(directory, USER).seed + "\n")


def make_authority(directory, name, days=DAYS, names=None):
    """Makes an authority, and returns its certificate. The key is beside it. With `names`, a server
    can also use the certificate itself."""
    extensions = ["-addext", f"subjectAltName={names}"] if names else []
    certificate = directory / f"{name}.pem"
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
            "-days", days, "-subj", f"/CN={name}", "-keyout", directory / f"{name}.key",
            "-out", certificate, *extensions)
    return certificate


def make_certificate(directory, authority, name, names):
    request = openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                      "-nodes", "-subj", f"/CN={name}", "-keyout", directory / f"{name}.key")
    extensions = directory / f"{name}.ext"
    extensions.write_text(f"subjectAltName={names}\n")
    (directory / f"{name}.pem").write_bytes(openssl(
        "x509", "-req", "-days", DAYS, "-CA", directory / f"{authority}.pem",
        "-CAkey", directory / f"{authority}.key", "-CAcreateserial", "-extfile", extensions,
        given=request))


def make_tls(directory):
    """Makes the authorities `ca` and `other-ca`. `ca` issues `server`, `client`, and `elsewhere`
    for another host. `other-ca` issues `stranger`."""
    for name in ("ca", "other-ca"):
        make_authority(directory, name)
    make_certificate(directory, "ca", "server", "DNS:localhost,IP:127.0.0.1")
    make_certificate(directory, "ca", "elsewhere", "DNS:elsewhere.example")
    make_certificate(directory, "ca", "client", "DNS:client")
    make_certificate(directory, "other-ca", "stranger", "DNS:stranger")


if __name__ == "__main__":
    target = pathlib.Path(sys.argv[1])
    make_tls(target)
    make_nkey(target)
    make_jwt(target, "sl.a.b.>")
