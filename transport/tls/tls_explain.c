/* SPDX-License-Identifier: Apache-2.0 */
/* Explains why a certificate was not accepted, with its names and dates. */
#include "transport/tls/tls_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define NAMES_MAX 160
#define TIME_MAX 32

static void
names_add(const char *name, size_t length, char names[NAMES_MAX])
{
	size_t used = strlen(names);

	/* The first names suffice to identify the certificate. */
	if (used + length + 3 >= NAMES_MAX)
		return;
	(void)snprintf(names + used, NAMES_MAX - used, "%s%.*s", used ? ", " : "", (int)length,
		       name);
	for (char *c = names + used; *c; c++)
		if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
			*c = '?';
}

static void
names_add_address(const ASN1_OCTET_STRING *address, char names[NAMES_MAX])
{
	int length = ASN1_STRING_length(address);
	char text[INET6_ADDRSTRLEN];

	if ((length == 4 || length == 16) &&
	    inet_ntop(length == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(address), text,
		      sizeof(text)))
		names_add(text, strlen(text), names);
}

/* Returns the names in the certificate that are relevant for verification. */
static void
certificate_get_names(const X509 *certificate, char names[NAMES_MAX])
{
	GENERAL_NAMES *all = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);

	names[0] = 0;
	for (int i = 0; i < sk_GENERAL_NAME_num(all); i++) {
		const GENERAL_NAME *one = sk_GENERAL_NAME_value(all, i);

		if (one->type == GEN_DNS)
			names_add((const char *)ASN1_STRING_get0_data(one->d.dNSName),
				  (size_t)ASN1_STRING_length(one->d.dNSName), names);
		else if (one->type == GEN_IPADD)
			names_add_address(one->d.iPAddress, names);
	}
	GENERAL_NAMES_free(all);
	if (!names[0])
		names_add("nobody", 6, names);
}

/* Returns the expected name: a host or an address. */
static void
ssl_get_expected_name(const SSL *ssl, char names[NAMES_MAX])
{
	X509_VERIFY_PARAM *param = SSL_get0_param((SSL *)ssl);
	char *address = X509_VERIFY_PARAM_get1_ip_asc(param);
	const char *host = X509_VERIFY_PARAM_get0_host(param, 0);

	names[0] = 0;
	if (address)
		names_add(address, strlen(address), names);
	else if (host)
		names_add(host, strlen(host), names);
	OPENSSL_free(address);
}

static void
time_format(int64_t time_s, char text[TIME_MAX])
{
	time_t time = (time_t)time_s;
	struct tm when;

	text[0] = 0;
	if (gmtime_r(&time, &when))
		(void)strftime(text, TIME_MAX, "%Y-%m-%d %H:%M UTC", &when);
}

/* Returns the date because of which a certificate of the chain is not valid now, and this machine's
 * date. */
static void
chain_get_dates(const STACK_OF(X509) * chain, bool ends, char date[TIME_MAX], char here[TIME_MAX])
{
	int64_t now = (int64_t)time(NULL);

	time_format(now, here);
	date[0] = 0;
	for (int i = 0; !date[0] && i < sk_X509_num(chain); i++) {
		const X509 *one = sk_X509_value(chain, i);
		int64_t at = gp_tls_time_to_unix(ends ? X509_get0_notAfter(one)
						      : X509_get0_notBefore(one));

		if (ends ? at <= now : at > now)
			time_format(at, date);
	}
}

static int
dates_explain(struct gp_conn *conn, const SSL *ssl, const char *peer, bool ends)
{
	char date[TIME_MAX], here[TIME_MAX];

	chain_get_dates(SSL_get0_verified_chain(ssl), ends, date, here);
	return gp_conn_fail(conn, -EACCES,
			    "the %s's certificate %s%s%s (here it is %s: check the clocks)", peer,
			    ends ? "has expired" : "is not valid yet",
			    !date[0] ? ""
			    : ends   ? ": it was valid until "
				     : ": it is from ",
			    date, here);
}

static int
name_explain(struct gp_conn *conn, const SSL *ssl, const char *peer)
{
	STACK_OF(X509) *chain = SSL_get0_verified_chain(ssl);
	char names[NAMES_MAX], wanted[NAMES_MAX];

	if (sk_X509_num(chain) < 1)
		return gp_conn_fail(conn, -EACCES,
				    "the %s's certificate is for another name or address", peer);
	certificate_get_names(sk_X509_value(chain, 0), names);
	ssl_get_expected_name(ssl, wanted);
	return gp_conn_fail(conn, -EACCES,
			    "the %s's certificate is for another name or address: for %s, not for "
			    "%s",
			    peer, names, wanted);
}

int
gp_tls_explain_certificate(struct gp_conn *conn, const SSL *ssl, const char *peer, long verdict)
{
	switch (verdict) {
	case X509_V_ERR_CERT_HAS_EXPIRED:
		return dates_explain(conn, ssl, peer, true);
	case X509_V_ERR_CERT_NOT_YET_VALID:
		return dates_explain(conn, ssl, peer, false);
	case X509_V_ERR_CERT_REVOKED:
		return gp_conn_fail(conn, -EACCES, "the %s's certificate has been revoked", peer);
	case X509_V_ERR_UNABLE_TO_GET_CRL:
	case X509_V_ERR_CRL_SIGNATURE_FAILURE:
		return gp_conn_fail(
			conn, -EACCES,
			"the CRL is not issued by the authority of the %s's certificate", peer);
	case X509_V_ERR_CRL_HAS_EXPIRED:
		return gp_conn_fail(conn, -EACCES, "the CRL has expired");
	case X509_V_ERR_HOSTNAME_MISMATCH:
	case X509_V_ERR_IP_ADDRESS_MISMATCH:
		return name_explain(conn, ssl, peer);
	case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
	case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
	case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
	case X509_V_ERR_CERT_SIGNATURE_FAILURE:
		return gp_conn_fail(conn, -EACCES,
				    "the %s's certificate is signed by an unknown authority", peer);
	default:
		return gp_conn_fail(conn, -EACCES, "the %s's certificate is not accepted: %s", peer,
				    X509_verify_cert_error_string(verdict));
	}
}
