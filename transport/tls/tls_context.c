/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/tls/openssl.h"
#include "transport/tls/tls_internal.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* The first suite uses the AES key length that is fastest with AES instructions. */
#define SUITES "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
/* At least 112 bits, also for keys in certificates. */
#define SECURITY_LEVEL 2

static OSSL_LIB_CTX *libctx;

static void
libctx_init(void)
{
	if (!gp_openssl_open())
		return;
	/* The program may exit while threads of this library use OpenSSL. */
	(void)OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL);
	libctx = OSSL_LIB_CTX_new();
}

OSSL_LIB_CTX *
gp_tls_get_libctx(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, libctx_init);
	return libctx;
}

/* Never prompts for a key's passphrase on the terminal. */
static int
pass_phrase_refuse(char *buffer, int size, int writing, void *argument)
{
	return -1;
}

int64_t
gp_tls_time_to_unix(const ASN1_TIME *time)
{
	struct tm when;

	return ASN1_TIME_to_tm(time, &when) ? (int64_t)timegm(&when) : 0;
}

SSL_CTX *
gp_tls_ctx_create(bool server)
{
	OSSL_LIB_CTX *own = gp_tls_get_libctx();
	SSL_CTX *ctx =
		own ? SSL_CTX_new_ex(own, NULL, server ? TLS_server_method() : TLS_client_method())
		    : NULL;

	if (!ctx)
		return NULL;
	SSL_CTX_set_security_level(ctx, SECURITY_LEVEL);
	SSL_CTX_set_default_passwd_cb(ctx, pass_phrase_refuse);
	(void)SSL_CTX_set_options(ctx, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_NO_TICKET |
					       SSL_OP_NO_RENEGOTIATION);
	if (server)
		(void)SSL_CTX_set_session_id_context(ctx, (const unsigned char *)"gpupool", 7);
	(void)SSL_CTX_clear_options(ctx, SSL_OP_ENABLE_MIDDLEBOX_COMPAT);
	(void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_keylog_callback(ctx, gp_tls_handshake_store_secret);
	if (SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) == 1 &&
	    SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION) == 1 &&
	    SSL_CTX_set_ciphersuites(ctx, SUITES) == 1 && SSL_CTX_set_num_tickets(ctx, 0) == 1)
		return ctx;
	SSL_CTX_free(ctx);
	return NULL;
}

static int
file_refuse(const char *what, const char *file, char *error, size_t error_size)
{
	unsigned long code = ERR_peek_last_error(), first = ERR_peek_error();
	const char *why = ERR_reason_error_string(code);

	/* The last error only states that the file is invalid; the first one has the reason. */
	if (ERR_GET_REASON(code) == ERR_R_PEM_LIB)
		why = ERR_reason_error_string(first);
	if (ERR_GET_LIB(first) == ERR_LIB_PEM && ERR_GET_REASON(first) == PEM_R_NO_START_LINE)
		why = "none found in the file";
	/* For a file that cannot be opened, the system's error is used. */
	if (ERR_SYSTEM_ERROR(first))
		(void)snprintf(error, error_size, "%s %s: %s", what, file,
			       strerror(ERR_GET_REASON(first)));
	else
		(void)snprintf(error, error_size, "%s %s cannot be used: %s", what, file,
			       why ? why : "invalid content");
	ERR_clear_error();
	return GP_E_INVALID;
}

/* Opening a pipe would wait for a writer, and a device may never end. */
static int
file_check(const char *what, const char *file, char *error, size_t error_size)
{
	struct stat status;

	/* Other problems are reported by OpenSSL. */
	if (stat(file, &status) || S_ISREG(status.st_mode) || S_ISDIR(status.st_mode))
		return 0;
	(void)snprintf(error, error_size, "%s %s: not a regular file", what, file);
	return GP_E_INVALID;
}

static int
files_check(const struct gp_tls_files *files, char *error, size_t error_size)
{
	const struct {
		const char *what, *file;
	} all[] = { { "certificate", files->certificate },
		    { "key", files->key },
		    { "authority", files->authority },
		    { "CRL", files->crl } };
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(all) / sizeof(all[0]); i++) {
		if (all[i].file)
			r = file_check(all[i].what, all[i].file, error, error_size);
	}
	return r;
}

/* Checks the certificate as clients will. A certificate without key usage extensions is valid for
 * every purpose. */
static int
certificate_check_purpose(SSL_CTX *ctx, const char *file, char *error, size_t error_size)
{
	if (X509_check_purpose(SSL_CTX_get0_certificate(ctx), X509_PURPOSE_SSL_SERVER, 0) == 1)
		return 0;
	(void)snprintf(error, error_size,
		       "certificate %s is not valid for servers (extended key usage): every client "
		       "would refuse it",
		       file);
	return GP_E_INVALID;
}

static int
certificate_load(SSL_CTX *ctx, const struct gp_tls_files *files, bool server, char *error,
		 size_t error_size)
{
	ERR_clear_error();
	if (SSL_CTX_use_certificate_chain_file(ctx, files->certificate) != 1)
		return file_refuse("certificate", files->certificate, error, error_size);
	if (SSL_CTX_use_PrivateKey_file(ctx, files->key, SSL_FILETYPE_PEM) != 1)
		return file_refuse("key", files->key, error, error_size);
	return server ? certificate_check_purpose(ctx, files->certificate, error, error_size) : 0;
}

static int
authority_load(SSL_CTX *ctx, const char *file, bool server, char *error, size_t error_size)
{
	STACK_OF(X509_NAME) * names;

	ERR_clear_error();
	if (SSL_CTX_load_verify_file(ctx, file) != 1)
		return file_refuse("authority", file, error, error_size);
	names = server ? SSL_load_client_CA_file_ex(file, gp_tls_get_libctx(), NULL) : NULL;
	if (server && !names)
		return file_refuse("authority", file, error, error_size);
	if (server)
		SSL_CTX_set_client_CA_list(ctx, names);
	return 0;
}

static int
crl_load(SSL_CTX *ctx, const char *file, char *error, size_t error_size)
{
	X509_LOOKUP *lookup =
		X509_STORE_add_lookup(SSL_CTX_get_cert_store(ctx), X509_LOOKUP_file());

	ERR_clear_error();
	if (!lookup || X509_load_crl_file(lookup, file, X509_FILETYPE_PEM) < 1)
		return file_refuse("CRL", file, error, error_size);
	if (X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(ctx),
					X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL) != 1)
		return file_refuse("CRL", file, error, error_size);
	return 0;
}

static int
tls_create(const struct gp_tls_files *files, bool server, struct gp_tls **tls_p, char *error,
	   size_t error_size)
{
	struct gp_tls *tls = calloc(1, sizeof(*tls));
	int r = 0;

	if (tls)
		tls->ctx = gp_tls_ctx_create(server);
	if (!tls || !tls->ctx) {
		free(tls);
		if (gp_openssl_open())
			(void)snprintf(error, error_size, "OpenSSL is out of memory");
		else
			(void)snprintf(error, error_size, "%s", gp_openssl_get_error());
		return gp_openssl_open() ? -ENOMEM : GP_E_INVALID;
	}
	tls->references = 1;
	if (!files->certificate != !files->key || (server && !files->certificate)) {
		(void)snprintf(error, error_size,
			       "a certificate needs its key, a key its certificate");
		r = GP_E_INVALID;
	}
	if (r == 0)
		r = files_check(files, error, error_size);
	if (r == 0 && files->certificate)
		r = certificate_load(tls->ctx, files, server, error, error_size);
	if (r == 0 && files->authority)
		r = authority_load(tls->ctx, files->authority, server, error, error_size);
	else if (r == 0 && !server && SSL_CTX_set_default_verify_paths(tls->ctx) != 1)
		r = file_refuse("authorities", "of this machine", error, error_size);
	if (r == 0 && files->crl)
		r = crl_load(tls->ctx, files->crl, error, error_size);
	if (!server || files->authority)
		SSL_CTX_set_verify(tls->ctx, SSL_VERIFY_PEER, NULL);
	if (r)
		gp_tls_unref(tls);
	else
		*tls_p = tls;
	return r;
}

int
gp_tls_create_server(const struct gp_tls_files *files, struct gp_tls **tls_p, char *error,
		     size_t error_size)
{
	return tls_create(files, true, tls_p, error, error_size);
}

int
gp_tls_create_client(const struct gp_tls_files *files, struct gp_tls **tls_p, char *error,
		     size_t error_size)
{
	return tls_create(files, false, tls_p, error, error_size);
}

int64_t
gp_tls_get_not_after(const struct gp_tls *tls)
{
	const X509 *certificate = SSL_CTX_get0_certificate(tls->ctx);

	return certificate ? gp_tls_time_to_unix(X509_get0_notAfter(certificate)) : INT64_MAX;
}

int64_t
gp_tls_get_not_before(const struct gp_tls *tls)
{
	const X509 *certificate = SSL_CTX_get0_certificate(tls->ctx);

	return certificate ? gp_tls_time_to_unix(X509_get0_notBefore(certificate)) : INT64_MIN;
}

bool
gp_tls_requests_certificate(const struct gp_tls *tls)
{
	return SSL_CTX_get_verify_mode(tls->ctx) & SSL_VERIFY_PEER;
}

struct gp_tls *
gp_tls_ref(struct gp_tls *tls)
{
	atomic_fetch_add(&tls->references, 1);
	return tls;
}

void
gp_tls_unref(struct gp_tls *tls)
{
	if (!tls || atomic_fetch_sub(&tls->references, 1) != 1)
		return;
	SSL_CTX_free(tls->ctx);
	free(tls);
}
