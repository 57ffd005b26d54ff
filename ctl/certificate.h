/* SPDX-License-Identifier: Apache-2.0 */
/*
 * X.509 certificates of a pool: creates its authority and the certificates that it signs for
 * daemons and clients, and reads and describes them. Keys are EC P-256. Uses OpenSSL.
 *
 * Threads: one.
 * Errors: 0; or -1 after a message on standard error.
 */
#ifndef CTL_CERTIFICATE_H
#define CTL_CERTIFICATE_H

#include <openssl/evp.h>
#include <openssl/x509.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CTL_CERTIFICATE_NAMES_MAX 1024

enum ctl_certificate_use {
	CTL_CERTIFICATE_AUTHORITY,
	CTL_CERTIFICATE_SERVER,
	CTL_CERTIFICATE_CLIENT,
	CTL_CERTIFICATE_OTHER, /* not created by gpupoolctl */
};

/* A certificate with its key, both owned; or both NULL. */
struct ctl_identity {
	X509 *certificate;
	EVP_PKEY *key;
};

struct ctl_certificate_params {
	enum ctl_certificate_use use;
	const char *name;   /* common name */
	char *const *hosts; /* of a server: host names and addresses */
	int host_count;
	int64_t seconds; /* lifetime */
};

/* Contents of a certificate. */
struct ctl_certificate_facts {
	enum ctl_certificate_use use;
	char name[128];
	char hosts[CTL_CERTIFICATE_NAMES_MAX]; /* "gpunode, 10.0.0.5" */
	char issuer[128];
	char serial[64];
	char fingerprint[65]; /* SHA-256 */
	int64_t from_s, until_s;
};

/* Creates a key and a certificate for it signed by the authority; authority NULL: self-signed. The
 * caller frees it with ctl_identity_free(). */
int ctl_certificate_make(const struct ctl_certificate_params *params,
			 const struct ctl_identity *authority, struct ctl_identity *made);
void ctl_identity_free(struct ctl_identity *identity);

/* Encodes as PEM; the caller frees *text_p. */
int ctl_certificate_pem(const X509 *certificate, char **text_p, size_t *size_p);
int ctl_key_pem(const EVP_PKEY *key, char **text_p, size_t *size_p);

/* Reads the first certificate of the file; the caller frees it. */
int ctl_certificate_read(const char *path, X509 **certificate_p);
/* Reads a certificate and its key, and checks that they match. */
int ctl_identity_read(const char *certificate_path, const char *key_path,
		      struct ctl_identity *identity);
int ctl_certificate_describe(const X509 *certificate, struct ctl_certificate_facts *facts);

/* Returns whether the text is a host name, also *.NAME, or an address without brackets. */
bool ctl_is_host(const char *text);

#endif /* CTL_CERTIFICATE_H */
