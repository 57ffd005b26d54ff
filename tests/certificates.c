/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/certificates.h"

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

#define HOUR 3600
#define HERE "DNS:localhost,IP:127.0.0.1,IP:::1"

struct authority {
	X509 *certificate;
	EVP_PKEY *key;
};

struct wanted {
	const char *file;
	const char *name; /* common name, or NULL */
	const char *also; /* subject's alternative names, or NULL */
	const char *use;  /* extended key usage, or NULL */
	int hours;        /* that it is valid, from now */
};

static const char server[] = "serverAuth", client[] = "clientAuth";

static bool
add_extension(X509 *certificate, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509_EXTENSION *extension;
	bool added;

	X509V3_set_ctx(&ctx, issuer, certificate, NULL, NULL, 0);
	extension = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	added = extension && X509_add_ext(certificate, extension, -1) == 1;
	X509_EXTENSION_free(extension);
	return added;
}

static bool
set_name(X509 *certificate, const char *name)
{
	X509_NAME *subject = X509_get_subject_name(certificate);

	return X509_NAME_add_entry_by_txt(subject, "O", MBSTRING_ASC,
					  (const unsigned char *)"gpupool test", -1, -1, 0) == 1 &&
	       (!name || X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
						    (const unsigned char *)name, -1, -1, 0) == 1);
}

static X509 *
begin(EVP_PKEY *key, const char *name, int hours)
{
	static long serial;
	X509 *certificate = X509_new();

	if (certificate && X509_set_version(certificate, X509_VERSION_3) == 1 &&
	    ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial) == 1 &&
	    X509_gmtime_adj(X509_getm_notBefore(certificate), -48 * HOUR) &&
	    X509_gmtime_adj(X509_getm_notAfter(certificate), hours * (long)HOUR) &&
	    X509_set_pubkey(certificate, key) == 1 && set_name(certificate, name))
		return certificate;
	X509_free(certificate);
	return NULL;
}

static FILE *
create(const char *folder, const char *file, const char *suffix)
{
	char path[512];
	FILE *stream;

	(void)snprintf(path, sizeof(path), "%s/%s.%s", folder, file, suffix);
	stream = fopen(path, "w");
	if (stream)
		(void)fchmod(fileno(stream), 0600);
	return stream;
}

static bool
write_certificate(const char *folder, const char *file, X509 *certificate)
{
	FILE *stream = create(folder, file, "pem");
	bool written = stream && PEM_write_X509(stream, certificate) == 1;

	return stream && fclose(stream) == 0 && written;
}

static bool
write_key(const char *folder, const char *file, EVP_PKEY *key)
{
	FILE *stream = create(folder, file, "key");
	bool written = stream && PEM_write_PrivateKey(stream, key, NULL, NULL, 0, NULL, NULL) == 1;

	return stream && fclose(stream) == 0 && written;
}

static bool
make_authority(const char *folder, const char *file, struct authority *made)
{
	made->key = EVP_EC_gen("P-256");
	made->certificate = made->key ? begin(made->key, file, 48) : NULL;
	return made->certificate &&
	       X509_set_issuer_name(made->certificate, X509_get_subject_name(made->certificate)) ==
		       1 &&
	       add_extension(made->certificate, made->certificate, NID_basic_constraints,
			     "critical,CA:TRUE") &&
	       add_extension(made->certificate, made->certificate, NID_key_usage,
			     "critical,keyCertSign") &&
	       X509_sign(made->certificate, made->key, EVP_sha256()) > 0 &&
	       write_certificate(folder, file, made->certificate);
}

static bool
make(const char *folder, const struct authority *authority, const struct wanted *wanted)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *certificate = key ? begin(key, wanted->name, wanted->hours) : NULL;
	bool made = certificate &&
		    X509_set_issuer_name(certificate,
					 X509_get_subject_name(authority->certificate)) == 1 &&
		    (!wanted->use || add_extension(certificate, authority->certificate,
						   NID_ext_key_usage, wanted->use)) &&
		    (!wanted->also || add_extension(certificate, authority->certificate,
						    NID_subject_alt_name, wanted->also)) &&
		    X509_sign(certificate, authority->key, EVP_sha256()) > 0 &&
		    write_certificate(folder, wanted->file, certificate) &&
		    write_key(folder, wanted->file, key);

	X509_free(certificate);
	EVP_PKEY_free(key);
	return made;
}

int
certificates_make(const char *folder)
{
	static const struct wanted ours[] = {
		{ "server", "server", HERE, server, 48 },
		{ "renewed", "server", HERE, server, 48 },
		{ "elsewhere", "localhost", "DNS:elsewhere.example,IP:127.9.9.9", server, 48 },
		{ "old", "server", HERE, server, -1 },
		{ "alice", "alice", NULL, client, 48 },
		{ "any", "any", HERE, NULL, 48 },
		{ "nameless", NULL, "DNS:bob.example", client, 48 },
		{ "lasting", "lasting", NULL, client, 96 },
		{ "past", "past", NULL, client, -1 },
	};
	static const struct wanted theirs[] = {
		{ "foreign", "server", HERE, server, 48 },
		{ "mallory", "alice", NULL, client, 48 },
	};
	struct authority authority = { 0 }, other = { 0 };
	bool made =
		make_authority(folder, "ca", &authority) && make_authority(folder, "other", &other);

	for (size_t i = 0; made && i < sizeof(ours) / sizeof(ours[0]); i++)
		made = make(folder, &authority, &ours[i]);
	for (size_t i = 0; made && i < sizeof(theirs) / sizeof(theirs[0]); i++)
		made = make(folder, &other, &theirs[i]);
	X509_free(authority.certificate);
	X509_free(other.certificate);
	EVP_PKEY_free(authority.key);
	EVP_PKEY_free(other.key);
	if (!made) {
		fprintf(stderr, "no certificates in %s: %s\n", folder,
			ERR_reason_error_string(ERR_peek_error())
				? ERR_reason_error_string(ERR_peek_error())
				: "a file cannot be written");
		return -1;
	}
	return 0;
}
