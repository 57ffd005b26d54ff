/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Certificate revocation lists (X.509 CRLs), with which a daemon checks client certificates.
 * OpenSSL parses and evaluates them.
 *
 * Ownership: a struct gp_crl has the content of one file, with a list for each authority. The
 * creator frees it with gp_crl_destroy(); it holds a reference to its struct gp_tls.
 * Threads: any; immutable after parsing. No function waits.
 */
#ifndef GP_CRL_H
#define GP_CRL_H

#include "transport/tls/tls.h"

#include <stddef.h>
#include <stdint.h>

struct gp_crl;

enum gp_crl_verdict {
	GP_CRL_NO_CERTIFICATE, /* the peer has not shown a certificate */
	/* no certificate of the chain is revoked */
	GP_CRL_GOOD,
	GP_CRL_REVOKED, /* the certificate, or one between it and the authority, is revoked */
	/* No valid list covers the certificate, for example because its list is from another
	 * authority. */
	GP_CRL_UNCHECKED,
};

/* Parses PEM text of one or more lists, each of which must be signed by an authority that `tls`, a
 * daemon's configuration, trusts. Validity periods are not checked. The text may be freed on
 * return. Returns 0, and the caller owns *crl_p. GP_E_INVALID: malformed, no list, or not signed by
 * such an authority; or -ENOMEM. After a failure *crl_p is unchanged and `error` is the end of a
 * sentence that begins with the file name. */
GP_MUST_CHECK int gp_crl_parse(const void *text, size_t size, struct gp_tls *tls,
			       struct gp_crl **crl_p, char *error, size_t error_size);
/* Frees the lists. Accepts NULL. */
void gp_crl_destroy(struct gp_crl *crl);

/* Returns the beginning of the period in which all lists are valid, in seconds since 1970. */
int64_t gp_crl_get_this_update(const struct gp_crl *crl);
/* Returns the end of the period in which all lists are valid, in seconds since 1970; INT64_MAX: no
 * end. */
int64_t gp_crl_get_next_update(const struct gp_crl *crl);
/* Returns the number of revoked certificates. */
size_t gp_crl_get_count(const struct gp_crl *crl);

/* Checks the certificate that the peer of a secured connection has shown, and its chain. Expiry is
 * not checked. *why_p is set to the reason for GP_CRL_UNCHECKED, a static string, or to "". */
enum gp_crl_verdict gp_crl_check(const struct gp_crl *crl, const struct gp_conn *conn,
				 const char **why_p);

#endif /* GP_CRL_H */
