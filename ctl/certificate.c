/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/certificate.h"

#include "ctl/request.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SERIAL_BITS 127
/* Tolerance for a client's clock that is slow. */
#define EARLIER_S 300
#define COMMON_NAME_MAX 64
#define HOST_NAME_MAX_SIZE 253

/* Prints OpenSSL's reason for the last error. */
static int
fail_openssl(const char *what)
{
	const char *why = ERR_reason_error_string(ERR_peek_last_error());

	ERR_clear_error();
	return ctl_fail("%s: %s", what, why ? why : "out of memory");
}

void
ctl_identity_free(struct ctl_identity *identity)
{
	X509_free(identity->certificate);
	EVP_PKEY_free(identity->key);
	*identity = (struct ctl_identity){ 0 };
}

/* Create. */

static bool
is_address(const char *text)
{
	uint8_t room[16];

	return inet_pton(AF_INET, text, room) == 1 || inet_pton(AF_INET6, text, room) == 1;
}

bool
ctl_is_host(const char *text)
{
	const char *name = strncmp(text, "*.", 2) == 0 ? text + 2 : text;

	if (is_address(text))
		return true;
	if (!*name || strlen(name) > HOST_NAME_MAX_SIZE || *name == '.' || *name == '-')
		return false;
	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr(".-_", *c))
			return false;
	return !strstr(name, "..");
}

static bool
set_serial(X509 *certificate)
{
	BIGNUM *number = BN_new();
	bool good = number && BN_rand(number, SERIAL_BITS, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) &&
		    BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate));

	BN_free(number);
	return good;
}

static bool
set_times(X509 *certificate, int64_t seconds)
{
	time_t now = time(NULL);

	return ASN1_TIME_set(X509_getm_notBefore(certificate), now - EARLIER_S) &&
	       ASN1_TIME_set(X509_getm_notAfter(certificate), now + (time_t)seconds);
}

static bool
add_extension(X509 *certificate, X509 *issuer, int kind, const char *value)
{
	X509_EXTENSION *extension;
	X509V3_CTX context;
	bool good;

	X509V3_set_ctx_nodb(&context);
	X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
	extension = X509V3_EXT_conf_nid(NULL, &context, kind, value);
	good = extension && X509_add_ext(certificate, extension, -1) == 1;
	X509_EXTENSION_free(extension);
	return good;
}

/* "DNS:a,IP:10.0.0.5". ctl_is_host() excludes characters that are special here. */
static bool
add_hosts(X509 *certificate, X509 *issuer, const struct ctl_certificate_params *params)
{
	char *text = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&text, &size);
	bool good;

	if (!file)
		return false;
	for (int i = 0; i < params->host_count; i++)
		fprintf(file, "%s%s:%s", i ? "," : "", is_address(params->hosts[i]) ? "IP" : "DNS",
			params->hosts[i]);
	good = fclose(file) == 0 && add_extension(certificate, issuer, NID_subject_alt_name, text);
	free(text);
	return good;
}

static bool
add_extensions(X509 *certificate, X509 *issuer, const struct ctl_certificate_params *params)
{
	bool good = add_extension(certificate, issuer, NID_subject_key_identifier, "hash");

	if (params->use == CTL_CERTIFICATE_AUTHORITY)
		return good &&
		       add_extension(certificate, issuer, NID_basic_constraints,
				     "critical,CA:TRUE,pathlen:0") &&
		       add_extension(certificate, issuer, NID_key_usage,
				     "critical,keyCertSign,cRLSign");
	good = good &&
	       add_extension(certificate, issuer, NID_authority_key_identifier, "keyid:always") &&
	       add_extension(certificate, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
	       add_extension(certificate, issuer, NID_key_usage, "critical,digitalSignature") &&
	       add_extension(certificate, issuer, NID_ext_key_usage,
			     params->use == CTL_CERTIFICATE_SERVER ? "serverAuth" : "clientAuth");
	return good && (params->host_count == 0 || add_hosts(certificate, issuer, params));
}

static bool
set_name(X509 *certificate, const char *name)
{
	/* The common name is limited to 64 characters; a server's names are in the subject
	 * alternative name. */
	if (strlen(name) > COMMON_NAME_MAX)
		name = "gpupool";
	return X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
					  (const unsigned char *)name, -1, -1, 0) == 1;
}

static X509 *
certificate_create(const struct ctl_certificate_params *params,
		   const struct ctl_identity *authority, EVP_PKEY *key)
{
	X509 *certificate = X509_new();
	X509 *issuer = authority ? authority->certificate : certificate;
	EVP_PKEY *signer = authority ? authority->key : key;

	if (certificate && X509_set_version(certificate, X509_VERSION_3) &&
	    set_serial(certificate) && set_times(certificate, params->seconds) &&
	    set_name(certificate, params->name) && X509_set_pubkey(certificate, key) &&
	    X509_set_issuer_name(certificate, X509_get_subject_name(issuer)) &&
	    add_extensions(certificate, issuer, params) &&
	    X509_sign(certificate, signer, EVP_sha256()) > 0)
		return certificate;
	X509_free(certificate);
	return NULL;
}

int
ctl_certificate_make(const struct ctl_certificate_params *params,
		     const struct ctl_identity *authority, struct ctl_identity *made)
{
	*made = (struct ctl_identity){ .key = EVP_EC_gen("P-256") };
	if (made->key)
		made->certificate = certificate_create(params, authority, made->key);
	if (made->certificate)
		return 0;
	ctl_identity_free(made);
	return fail_openssl("cannot create a certificate");
}

/* PEM files. */

static int
bio_to_text(BIO *bio, bool written, char **text_p, size_t *size_p)
{
	char *data;
	long size = written ? BIO_get_mem_data(bio, &data) : 0;

	*text_p = size > 0 ? malloc((size_t)size) : NULL;
	if (*text_p) {
		memcpy(*text_p, data, (size_t)size);
		*size_p = (size_t)size;
	}
	BIO_free(bio);
	return *text_p ? 0 : fail_openssl("cannot write PEM");
}

int
ctl_certificate_pem(const X509 *certificate, char **text_p, size_t *size_p)
{
	BIO *bio = BIO_new(BIO_s_mem());

	return bio_to_text(bio, bio && PEM_write_bio_X509(bio, certificate), text_p, size_p);
}

int
ctl_key_pem(const EVP_PKEY *key, char **text_p, size_t *size_p)
{
	BIO *bio = BIO_new(BIO_s_secmem());
	bool written = bio && PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL);

	return bio_to_text(bio, written, text_p, size_p);
}

/* Prevents OpenSSL from prompting for a pass phrase. */
static int
no_pass_phrase(char *buffer, int size, int writing, void *argument)
{
	return -1;
}

int
ctl_certificate_read(const char *path, X509 **certificate_p)
{
	FILE *file = fopen(path, "re");

	if (!file)
		return ctl_fail("%s: %s", path, strerror(errno));
	*certificate_p = PEM_read_X509(file, NULL, no_pass_phrase, NULL);
	(void)fclose(file);
	if (*certificate_p)
		return 0;
	ERR_clear_error();
	return ctl_fail("%s: no certificate found", path);
}

int
ctl_identity_read(const char *certificate_path, const char *key_path, struct ctl_identity *identity)
{
	FILE *file;

	*identity = (struct ctl_identity){ 0 };
	if (ctl_certificate_read(certificate_path, &identity->certificate))
		return -1;
	file = fopen(key_path, "re");
	if (!file) {
		ctl_fail("%s: %s", key_path, strerror(errno));
		ctl_identity_free(identity);
		return -1;
	}
	identity->key = PEM_read_PrivateKey(file, NULL, no_pass_phrase, NULL);
	(void)fclose(file);
	if (identity->key && X509_check_private_key(identity->certificate, identity->key) == 1)
		return 0;
	ERR_clear_error();
	ctl_fail("%s: %s", key_path,
		 identity->key ? "not the key of the certificate" : "no key found");
	ctl_identity_free(identity);
	return -1;
}

/* Describe. */

static void
format_name(X509_NAME *name, char *text, size_t size)
{
	int length = X509_NAME_get_text_by_NID(name, NID_commonName, text, (int)size);

	if (length <= 0 && !X509_NAME_oneline(name, text, (int)size))
		text[0] = 0;
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
}

static int64_t
time_to_seconds(const ASN1_TIME *time)
{
	struct tm when;

	return ASN1_TIME_to_tm(time, &when) ? (int64_t)timegm(&when) : 0;
}

/* Names with invalid characters are omitted. */
static void
add_host(const GENERAL_NAME *name, char *text, size_t size)
{
	char room[INET6_ADDRSTRLEN] = "";
	const char *host = room;
	size_t used = strlen(text);

	if (name->type == GEN_DNS) {
		host = (const char *)ASN1_STRING_get0_data(name->d.dNSName);
		if (strlen(host) != (size_t)ASN1_STRING_length(name->d.dNSName) ||
		    !ctl_is_host(host))
			return;
	} else if (name->type == GEN_IPADD) {
		int length = ASN1_STRING_length(name->d.iPAddress);

		if ((length != 4 && length != 16) ||
		    !inet_ntop(length == 4 ? AF_INET : AF_INET6,
			       ASN1_STRING_get0_data(name->d.iPAddress), room, sizeof(room)))
			return;
	} else {
		return;
	}
	if (used + strlen(host) + 3 < size)
		snprintf(text + used, size - used, "%s%s", used ? ", " : "", host);
}

static void
format_hosts(const X509 *certificate, char *text, size_t size)
{
	GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);

	text[0] = 0;
	for (int i = 0; i < sk_GENERAL_NAME_num(names); i++)
		add_host(sk_GENERAL_NAME_value(names, i), text, size);
	GENERAL_NAMES_free(names);
}

static enum ctl_certificate_use
get_certificate_use(X509 *certificate)
{
	uint32_t flags = X509_get_extension_flags(certificate);
	uint32_t uses = X509_get_extended_key_usage(certificate);

	if (flags & EXFLAG_CA)
		return CTL_CERTIFICATE_AUTHORITY;
	if (uses == UINT32_MAX)
		return CTL_CERTIFICATE_OTHER;
	if (uses & XKU_SSL_SERVER)
		return CTL_CERTIFICATE_SERVER;
	return uses & XKU_SSL_CLIENT ? CTL_CERTIFICATE_CLIENT : CTL_CERTIFICATE_OTHER;
}

int
ctl_certificate_describe(const X509 *certificate, struct ctl_certificate_facts *facts)
{
	BIGNUM *serial = ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), NULL);
	uint8_t digest[EVP_MAX_MD_SIZE];
	unsigned int size = 0;
	char *text = serial ? BN_bn2hex(serial) : NULL;

	*facts = (struct ctl_certificate_facts){
		.use = get_certificate_use((X509 *)certificate),
		.from_s = time_to_seconds(X509_get0_notBefore(certificate)),
		.until_s = time_to_seconds(X509_get0_notAfter(certificate)),
	};
	format_name(X509_get_subject_name(certificate), facts->name, sizeof(facts->name));
	format_name(X509_get_issuer_name(certificate), facts->issuer, sizeof(facts->issuer));
	format_hosts(certificate, facts->hosts, sizeof(facts->hosts));
	snprintf(facts->serial, sizeof(facts->serial), "%s", text ? text : "");
	OPENSSL_free(text);
	BN_free(serial);
	if (!X509_digest(certificate, EVP_sha256(), digest, &size) ||
	    2 * size >= sizeof(facts->fingerprint))
		return fail_openssl("the certificate has no fingerprint");
	for (unsigned int i = 0; i < size; i++)
		sprintf(facts->fingerprint + 2 * i, "%02x", digest[i]);
	ERR_clear_error();
	return 0;
}
