/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions shared by the certificate commands in cert.c and revoke.c.
 *
 * Threads: one.
 * Errors: 0; or -1 after a message on standard error.
 */
#ifndef CTL_CERT_H
#define CTL_CERT_H

#include "ctl/certificate.h"
#include "ctl/command.h"

#include <stdbool.h>
#include <stdint.h>

/* Reads the authority of the folder with its key. If there is none, creates one, and reports it in
 * `made`; NULL: that is an error. The caller frees it with ctl_identity_free(). */
struct ctl_cert_output;
int ctl_cert_authority(const char *folder, struct ctl_cert_output *made,
		       struct ctl_identity *authority);
/* Determines the lifetime of a certificate or CRL in seconds: `expires`, at most the authority's
 * remaining lifetime, which is also the value for NULL. */
int ctl_cert_parse_lifetime(const char *expires, const X509 *authority, int64_t *seconds_p);
/* Reads the CRL of the folder's authority; NULL: no CRL or no authority. The caller frees it. */
int ctl_cert_read_crl(const char *folder, X509_CRL **list_p);

/* Command cert revoke, or cert crl, which signs the CRL again without an additional entry. */
int ctl_cert_sign_crl(const struct ctl *ctl, bool revokes, int count, char **argv);
/* Command cert revoked. */
int ctl_cert_revoked(const struct ctl *ctl, int count, char **argv);

#endif /* CTL_CERT_H */
