/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Certificate revocation list (CRL) of a pool's authority: an X.509 CRL in a file that everyone may
 * read. The file is changed under its lock (shared_file.h). Uses OpenSSL.
 *
 * Threads: one.
 * Errors: 0; or -1 after a message on standard error.
 */
#ifndef CTL_REVOCATION_H
#define CTL_REVOCATION_H

#include "ctl/certificate.h"

/* Reads the CRL, which the caller frees; *list_p is NULL if there is no file. A CRL that this
 * authority has not signed is an error. */
int ctl_crl_read(const char *path, X509 *authority, X509_CRL **list_p);
/* Signs the file's CRL again with this lifetime, with one more serial number (NULL: none), which it
 * must not contain yet. A file that does not exist is an empty CRL. */
int ctl_crl_sign(const char *path, const struct ctl_identity *authority, const ASN1_INTEGER *serial,
		 int64_t seconds);

/* Returns whether the certificate is revoked. list NULL: empty. */
bool ctl_crl_contains(X509_CRL *list, const X509 *certificate);
/* Returns the expiry in seconds since 1970; INT64_MAX: none. */
int64_t ctl_crl_get_next_update(const X509_CRL *list);

/* Parses "3F:A2" or "3fa2", as printed by cert show. Returns NULL if it is not a serial number; the
 * caller frees the result. */
ASN1_INTEGER *ctl_serial_parse(const char *text);
/* Formats in hexadecimal digits. */
void ctl_serial_text(const ASN1_INTEGER *serial, char text[64]);

#endif /* CTL_REVOCATION_H */
