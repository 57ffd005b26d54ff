/* SPDX-License-Identifier: Apache-2.0 */
/*
 * X.509 certificates of a pool: creates its authority and the certificates that it signs for
 * daemons and clients, and reads and describes them. Keys are EC P-256. Uses OpenSSL.
 *
 * Ownership: the caller frees results, as noted; arguments are borrowed.
 * Threads: called by the main thread only.
 * Errors: functions that return int return 0; or -1 after a message on standard error, and nothing
 * is left to free.
 */
#ifndef CTL_CERTIFICATE_H
#define CTL_CERTIFICATE_H

#include <openssl/evp.h>
#include <openssl/x509.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Size in bytes of the text with the hosts of a certificate. */
#define CTL_CERTIFICATE_NAMES_MAX 1024

/* Purpose of a certificate. */
enum ctl_certificate_use {
	CTL_CERTIFICATE_AUTHORITY,
	CTL_CERTIFICATE_SERVER,
	CTL_CERTIFICATE_CLIENT,
	CTL_CERTIFICATE_OTHER, /* not created by gpupoolctl */
};

/* A certificate with its key, both owned. Both NULL: none. */
struct ctl_identity {
	X509 *certificate;
	EVP_PKEY *key;
};

/* Description of a certificate to be created; members that do not apply are zero. */
struct ctl_certificate_params {
	/* Purpose; not CTL_CERTIFICATE_OTHER. */
	enum ctl_certificate_use use;
	const char *name; /* common name; replaced by "gpupool" if longer than 64 bytes */
	/* Host names and addresses that a server's certificate is valid for; the caller has checked
	 * each with ctl_is_host(). */
	char *const *hosts;
	int host_count;
	/* Lifetime in seconds from now; it starts 5 minutes ago, for clocks that are slow. */
	int64_t seconds;
};

/* Contents of a certificate, as text for output; name and issuer are common names, or complete
 * names if there is no common name. */
struct ctl_certificate_facts {
	enum ctl_certificate_use use;
	char name[128];
	/* For example "gpunode, 10.0.0.5"; hosts that do not fit are omitted. */
	char hosts[CTL_CERTIFICATE_NAMES_MAX];
	char issuer[128];
	char serial[64];
	char fingerprint[65]; /* SHA-256 digest in hexadecimal */
	/* Validity in seconds since 1970; 0: the date cannot be read. */
	int64_t from_s, until_s;
};

/* Creates a key and a certificate for it, signed by the authority. authority NULL: self-signed. The
 * caller frees *made with ctl_identity_free(). */
int ctl_certificate_make(const struct ctl_certificate_params *params,
			 const struct ctl_identity *authority, struct ctl_identity *made);
/* Frees certificate and key and sets both to NULL. */
void ctl_identity_free(struct ctl_identity *identity);

/* Encodes the certificate as PEM; the caller frees *text_p, which has *size_p bytes. */
int ctl_certificate_pem(const X509 *certificate, char **text_p, size_t *size_p);
/* Encodes the private key as PEM; the caller erases and frees *text_p, which has *size_p bytes. */
int ctl_key_pem(const EVP_PKEY *key, char **text_p, size_t *size_p);

/* Reads the first certificate of a PEM file; the caller frees it with X509_free(). */
int ctl_certificate_read(const char *path, X509 **certificate_p);
/* Reads a certificate and its key from PEM files, and checks that they match. The caller frees
 * *identity with ctl_identity_free(). Keys with a passphrase are an error. */
int ctl_identity_read(const char *certificate_path, const char *key_path,
		      struct ctl_identity *identity);
/* Fills *facts; longer texts are truncated. After an error *facts is partly filled. */
int ctl_certificate_describe(const X509 *certificate, struct ctl_certificate_facts *facts);

/* Returns whether the text is a host name, also *.NAME, or a numeric address without brackets. */
bool ctl_is_host(const char *text);

#endif /* CTL_CERTIFICATE_H */
