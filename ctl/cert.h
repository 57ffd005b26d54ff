/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the certificate commands that cert.c and revoke.c share. The pool's folder
 * (pool_file.h) contains the certificate and key of the pool's authority (CA), and its certificate
 * revocation list (CRL).
 *
 * Ownership: results as noted at the functions; arguments are borrowed, but commands may reorder
 * argv.
 * Threads: called by the main thread only.
 * Errors: all functions return 0; or -1 after a message on standard error, and nothing is left to
 * free. Files that were written before the error stay.
 */
#ifndef CTL_CERT_H
#define CTL_CERT_H

#include "ctl/certificate.h"
#include "ctl/command.h"

#include <stdbool.h>
#include <stdint.h>

struct ctl_cert_output;

/* Reads the folder's authority with its key. If only one of the two files exists, this is an error.
 * If neither exists, creates both and adds the new certificate to the output *made (cert.c); made
 * NULL: a missing authority is an error. The caller frees *authority with ctl_identity_free(). */
int ctl_cert_authority(const char *folder, struct ctl_cert_output *made,
		       struct ctl_identity *authority);
/* Determines the lifetime of a certificate or CRL in seconds: the duration `expires`
 * (ctl_parse_duration(), not "never"), at most the authority's remaining lifetime. expires NULL:
 * the authority's remaining lifetime. It is an error if the authority has expired or is not a CA
 * certificate. */
int ctl_cert_parse_lifetime(const char *expires, const X509 *authority, int64_t *seconds_p);
/* Reads the CRL of the folder's authority. *list_p NULL: there is no CRL or no authority; NULL also
 * on failure. Otherwise the caller frees it with X509_CRL_free(). Warns on standard error if the
 * CRL has expired. */
int ctl_cert_read_crl(const char *folder, X509_CRL **list_p);

/* Implements the commands cert revoke (revokes true) and cert crl, which signs the CRL again
 * without an additional entry. */
int ctl_cert_sign_crl(const struct ctl *ctl, bool revokes, int count, char **argv);
/* Implements the command cert revoked, which lists the CRL. */
int ctl_cert_revoked(const struct ctl *ctl, int count, char **argv);

#endif /* CTL_CERT_H */
