/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the commands about certificates have in common: cert.c and revoke.c.
 *
 * Functions that return an int return 0, or -1 and standard error has said why.  One thread.
 */
#ifndef CTL_CERT_H
#define CTL_CERT_H

#include "ctl/certificate.h"
#include "ctl/command.h"

#include <stdbool.h>
#include <stdint.h>

/* The authority of the folder, with its key; a new one where there is none, unless made (what a
 * command has made) is NULL. */
struct ctl_cert_output;
int ctl_cert_authority(const char *folder, struct ctl_cert_output *made,
		       struct ctl_identity *authority);
/* How long what the authority signs holds: no longer than itself, which NULL asks for. */
int ctl_cert_parse_lifetime(const char *expires, const X509 *authority, int64_t *seconds_p);
/* What the authority of the folder has revoked; NULL: nothing, or there is no authority. */
int ctl_cert_read_crl(const char *folder, X509_CRL **list_p);

/* cert revoke, crl, revoked. */
int ctl_cert_revoke(const struct ctl *ctl, int count, char **argv);
int ctl_cert_crl(const struct ctl *ctl, int count, char **argv);
int ctl_cert_revoked(const struct ctl *ctl, int count, char **argv);

#endif /* CTL_CERT_H */
