/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/tls/crl.h"

#include "transport/tls/tls_internal.h"

#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>

struct gp_crl {
	struct gp_tls *tls;
	STACK_OF(X509_CRL) * lists;
	int64_t this_update_s, next_update_s;
	size_t count;
};

static int
error_set(char *error, size_t error_size, const char *text, const char *detail)
{
	(void)snprintf(error, error_size, "%s%s", text, detail ? detail : "");
	ERR_clear_error();
	return GP_E_INVALID;
}

/* Whether one of the authorities has signed the list. */
static bool
list_is_signed(X509_CRL *list, STACK_OF(X509) * authorities)
{
	for (int i = 0; i < sk_X509_num(authorities); i++) {
		X509 *authority = sk_X509_value(authorities, i);

		if (X509_NAME_cmp(X509_get_subject_name(authority), X509_CRL_get_issuer(list)) ==
			    0 &&
		    X509_CRL_verify(list, X509_get0_pubkey(authority)) == 1)
			return true;
	}
	ERR_clear_error();
	return false;
}

static int
list_add_times(struct gp_crl *crl, const X509_CRL *list)
{
	const ASN1_TIME *from = X509_CRL_get0_lastUpdate(list);
	const ASN1_TIME *until = X509_CRL_get0_nextUpdate(list);
	struct tm when;
	int64_t end = INT64_MAX;

	if (!from || !ASN1_TIME_to_tm(from, &when) || (until && !ASN1_TIME_to_tm(until, &when)))
		return -1;
	if (until)
		end = gp_tls_time_to_unix(until);
	if (gp_tls_time_to_unix(from) > crl->this_update_s)
		crl->this_update_s = gp_tls_time_to_unix(from);
	if (end < crl->next_update_s)
		crl->next_update_s = end;
	return 0;
}

/* Takes ownership of the list. */
static int
list_add(struct gp_crl *crl, X509_CRL *list, STACK_OF(X509) * authorities, char *error,
	 size_t error_size)
{
	char issuer[128] = "";
	int revoked = sk_X509_REVOKED_num(X509_CRL_get_REVOKED(list)), r = 0;

	(void)X509_NAME_get_text_by_NID(X509_CRL_get_issuer(list), NID_commonName, issuer,
					sizeof(issuer));
	for (char *c = issuer; *c; c++)
		if (*c < ' ' || *c == 0x7f)
			*c = '?';
	if (!list_is_signed(list, authorities))
		r = error_set(error, error_size,
			      "the CRL is signed by an authority that is not trusted for client "
			      "certificates: ",
			      issuer);
	else if (list_add_times(crl, list))
		r = error_set(error, error_size, "the CRL has no thisUpdate", NULL);
	else if (!sk_X509_CRL_push(crl->lists, list))
		r = error_set(error, error_size, "no memory", NULL);
	if (r) {
		X509_CRL_free(list);
		return r;
	}
	crl->count += revoked > 0 ? (size_t)revoked : 0;
	return 0;
}

static int
lists_parse(struct gp_crl *crl, BIO *bio, STACK_OF(X509) * authorities, char *error,
	    size_t error_size)
{
	unsigned long code;

	ERR_clear_error();
	for (;;) {
		X509_CRL *list = PEM_read_bio_X509_CRL(bio, NULL, NULL, NULL);
		int r;

		if (!list)
			break;
		r = list_add(crl, list, authorities, error, error_size);
		if (r)
			return r;
	}
	code = ERR_peek_last_error();
	if (ERR_GET_LIB(code) != ERR_LIB_PEM || ERR_GET_REASON(code) != PEM_R_NO_START_LINE)
		return error_set(error, error_size,
				 "malformed CRL: ", ERR_reason_error_string(code));
	ERR_clear_error();
	if (sk_X509_CRL_num(crl->lists) == 0)
		return error_set(error, error_size, "no CRL found (PEM, X509 CRL)", NULL);
	return 0;
}

int
gp_crl_parse(const void *text, size_t size, struct gp_tls *tls, struct gp_crl **crl_p, char *error,
	     size_t error_size)
{
	struct gp_crl *crl = calloc(1, sizeof(*crl));
	STACK_OF(X509) *authorities = X509_STORE_get1_all_certs(SSL_CTX_get_cert_store(tls->ctx));
	BIO *bio = size < INT_MAX ? BIO_new_mem_buf(text, (int)size) : NULL;
	int r = -ENOMEM;

	if (crl)
		*crl = (struct gp_crl){ .tls = gp_tls_ref(tls),
					.lists = sk_X509_CRL_new_null(),
					.next_update_s = INT64_MAX };
	if (crl && crl->lists && authorities && bio)
		r = lists_parse(crl, bio, authorities, error, error_size);
	else
		(void)snprintf(error, error_size, "no memory");
	BIO_free(bio);
	sk_X509_pop_free(authorities, X509_free);
	if (r)
		gp_crl_destroy(crl);
	else
		*crl_p = crl;
	return r;
}

void
gp_crl_destroy(struct gp_crl *crl)
{
	if (!crl)
		return;
	sk_X509_CRL_pop_free(crl->lists, X509_CRL_free);
	gp_tls_unref(crl->tls);
	free(crl);
}

int64_t
gp_crl_get_this_update(const struct gp_crl *crl)
{
	return crl->this_update_s;
}

int64_t
gp_crl_get_next_update(const struct gp_crl *crl)
{
	return crl->next_update_s;
}

size_t
gp_crl_get_count(const struct gp_crl *crl)
{
	return crl->count;
}

/* The chain was valid in the handshake. Expiry of it or of the lists is checked by the caller: an
 * expired certificate is not revoked. */
static int
chain_verify(const struct gp_crl *crl, STACK_OF(X509) * chain)
{
	X509_STORE_CTX *context = X509_STORE_CTX_new_ex(gp_tls_get_libctx(), NULL);
	X509_VERIFY_PARAM *parameters;
	int code = X509_V_ERR_OUT_OF_MEM;

	if (context && X509_STORE_CTX_init(context, SSL_CTX_get_cert_store(crl->tls->ctx),
					   sk_X509_value(chain, 0), chain) == 1) {
		parameters = X509_STORE_CTX_get0_param(context);
		(void)X509_STORE_CTX_set_purpose(context, X509_PURPOSE_SSL_CLIENT);
		(void)X509_VERIFY_PARAM_set_flags(parameters, X509_V_FLAG_CRL_CHECK |
								      X509_V_FLAG_CRL_CHECK_ALL |
								      X509_V_FLAG_NO_CHECK_TIME);
		X509_STORE_CTX_set0_crls(context, crl->lists);
		code = X509_verify_cert(context) == 1 ? X509_V_OK
						      : X509_STORE_CTX_get_error(context);
		/* Guards against a success without a verified chain. */
		if (code == X509_V_OK && !X509_STORE_CTX_get0_chain(context))
			code = X509_V_ERR_UNSPECIFIED;
	}
	X509_STORE_CTX_free(context);
	ERR_clear_error();
	return code;
}

enum gp_crl_verdict
gp_crl_check(const struct gp_crl *crl, const struct gp_conn *conn, const char **why_p)
{
	int code;

	*why_p = "";
	if (!conn->chain)
		return GP_CRL_NO_CERTIFICATE;
	code = chain_verify(crl, conn->chain);
	if (code == X509_V_OK)
		return GP_CRL_GOOD;
	if (code == X509_V_ERR_CERT_REVOKED)
		return GP_CRL_REVOKED;
	*why_p = code == X509_V_ERR_UNABLE_TO_GET_CRL ? "no CRL of its authority"
						      : X509_verify_cert_error_string(code);
	return GP_CRL_UNCHECKED;
}
