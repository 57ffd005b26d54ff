/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Certificate revocation list (CRL) of a pool's authority: an X.509 CRL in a file that all users
 * may read. The file is changed under its lock (server/common/base/shared_file.h). Uses OpenSSL.
 *
 * Ownership: as noted at the functions; arguments are borrowed.
 * Threads: called by the main thread only.
 * Errors: functions that return int return 0; or -1 after a message on standard error.
 */
#ifndef CTL_REVOCATION_H
#define CTL_REVOCATION_H

#include "ctl/certificate.h"

/* Reads the CRL; the caller frees it with X509_CRL_free(). *list_p NULL: there is no file; NULL
 * also on failure. A CRL that this authority has not signed is an error. */
int ctl_crl_read(const char *path, X509 *authority, X509_CRL **list_p);
/* Replaces the file's CRL by one with the same entries, signed now, with this lifetime in seconds.
 * A file that does not exist counts as an empty CRL. serial: serial number to add; NULL: none; a
 * number that the CRL contains already is an error, and so is an authority that may not sign CRLs.
 * Waits for the file's lock. The file is unchanged after an error. */
int ctl_crl_sign(const char *path, const struct ctl_identity *authority, const ASN1_INTEGER *serial,
		 int64_t seconds);

/* Returns whether the certificate is revoked. list NULL: an empty CRL. */
bool ctl_crl_contains(X509_CRL *list, const X509 *certificate);
/* Returns the expiry in seconds since 1970; INT64_MAX: the CRL does not expire; 0: the date cannot
 * be read. */
int64_t ctl_crl_get_next_update(const X509_CRL *list);

/* Parses a serial number in the form "3F:A2" or "3fa2", as printed by cert show. The caller frees
 * the result with ASN1_INTEGER_free(). NULL: the text is not a serial number of at most 20 bytes,
 * or memory is exhausted. */
ASN1_INTEGER *ctl_serial_parse(const char *text);
/* Formats a serial number in hexadecimal digits, truncated to fit; "" if memory is exhausted. */
void ctl_serial_text(const ASN1_INTEGER *serial, char text[64]);

#endif /* CTL_REVOCATION_H */
