#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""openssl_calls.py OPENSSL_CALLS_H LIBCUDA LIBRARY...: transport/tls/openssl_calls.h names what the archives
need of OpenSSL and nothing else, and libcuda.so.1 is not linked with OpenSSL."""
import re
import subprocess
import sys

OPENSSL = re.compile(r"(ASN1|BIO|BN|CRYPTO|ERR|EVP|GENERAL|OPENSSL|OSSL|PEM|SSL|TLS|X509|X509V3)_[A-Za-z0-9_]+|GENERAL_NAMES_free")


def main():
    header, libcuda, *libraries = sys.argv[1:]
    symbols = subprocess.run(["nm", "--undefined-only", *libraries], capture_output=True, text=True, check=True).stdout.split()
    needed = {name for name in symbols if OPENSSL.fullmatch(name)}
    with open(header, encoding="ascii") as file:
        listed = re.findall(r"^CALL\((\w+)\)$", file.read().split("#ifdef")[0], re.M)
    wrong = [f"{name} is not in openssl_calls.h" for name in sorted(needed - set(listed))]
    wrong += [f"{name} is in openssl_calls.h, and nothing calls it" for name in sorted(set(listed) - needed)]
    if listed != sorted(set(listed)):
        wrong.append("openssl_calls.h is not in order")
    dynamic = subprocess.run(["readelf", "-d", libcuda], capture_output=True, text=True, check=True).stdout
    wrong += [f"libcuda.so.1 needs {name}" for name in re.findall(r"\[(lib(?:ssl|crypto)[^\]]*)\]", dynamic)]
    if not needed:
        wrong.append(f"{libraries} call nothing of OpenSSL: this test looks at the wrong files")
    print("\n".join(wrong))
    return bool(wrong)


sys.exit(main())
