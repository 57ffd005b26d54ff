/* SPDX-License-Identifier: Apache-2.0 */
#include "client/connect/tls_files.h"

#include "transport/tls/openssl.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static int
no_pass_phrase(char *text, int size, int writing, void *unused)
{
	return -1;
}

/* Returns whether the file of the client's certificate also contains the pool's authority, as
 * "gpupoolctl cert client" writes it: a self-signed CA certificate. Intermediate certificates do
 * not count. */
static bool
file_has_root(const char *path)
{
	struct stat status;
	FILE *file = NULL;
	bool found = false;
	X509 *one;

	/* A missing OpenSSL library is reported later, when the files are needed. */
	if (gp_openssl_open() && stat(path, &status) == 0 && S_ISREG(status.st_mode))
		file = fopen(path, "re");
	while (file && !found && (one = PEM_read_X509(file, NULL, no_pass_phrase, NULL))) {
		found = X509_get_extension_flags(one) & EXFLAG_SS && X509_check_ca(one);
		X509_free(one);
	}
	if (file)
		(void)fclose(file);
	ERR_clear_error();
	return found;
}

/* Returns whether certificates follow the token. An unreadable file is reported where the token is
 * needed. */
static bool
file_has_certificates(const char *path)
{
	char line[512];
	struct stat status;
	FILE *file;
	bool found = false;

	/* Reading from a pipe could block forever. */
	if (stat(path, &status) || !S_ISREG(status.st_mode))
		return false;
	file = fopen(path, "re");
	if (!file)
		return false;
	while (!found && fgets(line, sizeof(line), file))
		found = strncmp(line, "-----BEGIN CERTIFICATE-----", 27) == 0;
	(void)fclose(file);
	return found;
}

int
gpc_tls_read(const struct gpc_credentials *credentials, struct gp_tls **tls_p, char *error,
	     size_t error_size)
{
	struct gp_tls_files files = {
		.certificate = credentials->certificate,
		.key = credentials->key,
		.authority = credentials->authority,
		.crl = credentials->crl,
	};
	char certificate[GPC_CREDENTIALS_NAME_MAX], key[GPC_CREDENTIALS_NAME_MAX], why[320] = "";
	int r;

	if (!files.certificate != !files.key) {
		(void)gpc_credentials_name(credentials, "GPUPOOL_TLS_CERT", "certificate",
					   certificate, sizeof(certificate));
		(void)gpc_credentials_name(credentials, "GPUPOOL_TLS_KEY", "key", key, sizeof(key));
		(void)snprintf(error, error_size, "%s is set, and %s is not",
			       files.key ? key : certificate, files.key ? certificate : key);
		return GP_E_INVALID;
	}
	if (!files.authority && credentials->token && file_has_certificates(credentials->token))
		files.authority = credentials->token;
	else if (!files.authority && files.certificate && file_has_root(files.certificate))
		files.authority = files.certificate;
	r = gp_tls_create_client(&files, tls_p, why, sizeof(why));
	if (r != 0)
		(void)snprintf(error, error_size, "TLS: %s", why);
	return r;
}

bool
gpc_tls_has_authority(const struct gpc_credentials *credentials)
{
	return credentials->authority ||
	       (credentials->token && file_has_certificates(credentials->token)) ||
	       (credentials->certificate && file_has_root(credentials->certificate));
}
