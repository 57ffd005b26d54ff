/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Certificates of a pool: an authority of its own, and what it signs for daemons and clients.  EC
 * P-256 keys, made and read with OpenSSL's library.
 *
 * Functions that return an int return 0, or -1 and standard error has said why.  One thread.
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
	CTL_CERTIFICATE_OTHER, /* of somebody else's making */
};

/* A certificate with its key; both are NULL where there is none. */
struct ctl_identity {
	X509 *certificate;
	EVP_PKEY *key;
};

struct ctl_certificate_params {
	enum ctl_certificate_use use;
	const char *name;   /* the common name */
	char *const *hosts; /* of a server: names and addresses */
	int host_count;
	int64_t seconds; /* that it holds */
};

/* What a certificate says. */
struct ctl_certificate_facts {
	enum ctl_certificate_use use;
	char name[128];
	char hosts[CTL_CERTIFICATE_NAMES_MAX]; /* "gpunode, 10.0.0.5" */
	char issuer[128];
	char serial[64];
	char fingerprint[65]; /* SHA-256 */
	int64_t from_s, until_s;
};

/* A new key, and a certificate of it by this authority; by itself where there is none. */
int ctl_certificate_make(const struct ctl_certificate_params *params,
			 const struct ctl_identity *authority, struct ctl_identity *made);
void ctl_identity_free(struct ctl_identity *identity);

/* As PEM, to be freed. */
int ctl_certificate_pem(const X509 *certificate, char **text_p, size_t *size_p);
int ctl_key_pem(const EVP_PKEY *key, char **text_p, size_t *size_p);

/* The first certificate of the file. */
int ctl_certificate_read(const char *path, X509 **certificate_p);
/* Certificate and key, which belong together. */
int ctl_identity_read(const char *certificate_path, const char *key_path,
		      struct ctl_identity *identity);
int ctl_certificate_describe(const X509 *certificate, struct ctl_certificate_facts *facts);

/* Whether it is a host's name, also *.NAME, or an address without brackets. */
bool ctl_is_host(const char *text);

#endif /* CTL_CERTIFICATE_H */
