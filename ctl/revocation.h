/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of the certificates that a pool's authority has revoked: an X.509 CRL in a file, made
 * and read with OpenSSL's library.  The file is changed as shared_file.h says, and everybody may
 * read it.
 *
 * Functions that return an int return 0, or -1 and standard error has said why.  One thread.
 */
#ifndef CTL_REVOCATION_H
#define CTL_REVOCATION_H

#include "ctl/certificate.h"

/* *list_p is NULL if there is no file.  One that this authority has not signed is refused. */
int ctl_crl_read(const char *path, X509 *authority, X509_CRL **list_p);
/* Signs the list of the file anew, to hold for so long, with one more certificate in it (NULL: none
 * more), which must not be in it.  A file that is not there is an empty list. */
int ctl_crl_sign(const char *path, const struct ctl_identity *authority, const ASN1_INTEGER *serial,
		 int64_t seconds);

/* list: NULL is an empty one. */
bool ctl_crl_contains(X509_CRL *list, const X509 *certificate);
/* Until when it holds, in seconds since 1970. */
int64_t ctl_crl_get_next_update(const X509_CRL *list);

/* "3F:A2" or "3fa2", as cert show has it; NULL: it is no serial number of a certificate. */
ASN1_INTEGER *ctl_serial_parse(const char *text);
/* In hexadecimal digits. */
void ctl_serial_text(const ASN1_INTEGER *serial, char text[64]);

#endif /* CTL_REVOCATION_H */
