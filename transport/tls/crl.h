/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of revoked certificates (X.509 CRLs), against which a daemon looks at what its clients have
 * shown.  OpenSSL reads them and decides.
 *
 * A struct gp_crl is what one file had: a list of each authority that has to say something.  It
 * never changes; any thread may use it.
 */
#ifndef GP_CRL_H
#define GP_CRL_H

#include "transport/tls/tls.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gp_crl;

enum gp_crl_verdict {
	GP_CRL_NO_CERTIFICATE, /* none was shown */
	GP_CRL_GOOD,
	GP_CRL_REVOKED,   /* it, or one between it and the authority */
	GP_CRL_UNCHECKED, /* there is no list that says so, as of another authority's */
};

/* PEM: one or more lists, each signed by an authority that `tls`, a daemon's, believes.  Whether
 * they hold at the moment is not looked at.  GP_E_INVALID or -ENOMEM, with the end of a sentence
 * that begins with the file. */
GP_MUST_CHECK int gp_crl_parse(const void *text, size_t size, struct gp_tls *tls,
			       struct gp_crl **crl_p, char *error, size_t error_size);
/* Accepts NULL. */
void gp_crl_destroy(struct gp_crl *crl);

/* When all of them hold, in seconds since 1970; INT64_MAX: without end. */
int64_t gp_crl_get_this_update(const struct gp_crl *crl);
int64_t gp_crl_get_next_update(const struct gp_crl *crl);
/* How many certificates they revoke. */
size_t gp_crl_get_count(const struct gp_crl *crl);

/* What the peer of a connection has shown.  *why_p: with UNCHECKED, in words; it stays. */
enum gp_crl_verdict gp_crl_check(const struct gp_crl *crl, const struct gp_conn *conn,
				 const char **why_p);

#endif /* GP_CRL_H */
