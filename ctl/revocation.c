/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/revocation.h"

#include "ctl/request.h"
#include "server/common/base/shared_file.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Tolerance for a daemon's clock that is slow. */
#define EARLIER_S 300
/* A certificate's serial number has at most 20 bytes. */
#define SERIAL_DIGITS 40
#define FILE_MODE 0644

/* Read. */

static int
crl_parse(const char *path, const char *text, size_t size, X509 *authority, X509_CRL **list_p)
{
	BIO *bio = BIO_new_mem_buf(text, (int)size);
	X509_CRL *list = bio ? PEM_read_bio_X509_CRL(bio, NULL, NULL, NULL) : NULL;
	bool signed_by =
		list &&
		X509_NAME_cmp(X509_CRL_get_issuer(list), X509_get_subject_name(authority)) == 0 &&
		X509_CRL_verify(list, X509_get0_pubkey(authority)) == 1;

	BIO_free(bio);
	ERR_clear_error();
	if (signed_by) {
		*list_p = list;
		return 0;
	}
	X509_CRL_free(list);
	return list ? ctl_fail("%s: the CRL is not signed by the pool's authority", path)
		    : ctl_fail("%s: not a CRL (PEM, X509 CRL)", path);
}

int
ctl_crl_read(const char *path, X509 *authority, X509_CRL **list_p)
{
	char error[512], *text = NULL;
	size_t size = 0;
	int r = gpd_shared_file_read(path, &text, &size, error, sizeof(error));

	*list_p = NULL;
	if (r == -ENOENT)
		return 0;
	if (r)
		return ctl_fail("%s", error);
	r = crl_parse(path, text, size, authority, list_p);
	free(text);
	return r;
}

bool
ctl_crl_contains(X509_CRL *list, const X509 *certificate)
{
	X509_REVOKED *entry;

	return list && X509_CRL_get0_by_cert(list, &entry, (X509 *)certificate) == 1;
}

int64_t
ctl_crl_get_next_update(const X509_CRL *list)
{
	const ASN1_TIME *until = X509_CRL_get0_nextUpdate(list);
	struct tm when;

	if (!until)
		return INT64_MAX;
	return ASN1_TIME_to_tm(until, &when) ? (int64_t)timegm(&when) : 0;
}

/* Create. */

static bool
crl_set_times(X509_CRL *list, int64_t seconds)
{
	time_t now = time(NULL);
	ASN1_TIME *from = ASN1_TIME_set(NULL, now - EARLIER_S);
	ASN1_TIME *until = ASN1_TIME_set(NULL, now + (time_t)seconds);
	bool good = from && until && X509_CRL_set1_lastUpdate(list, from) &&
		    X509_CRL_set1_nextUpdate(list, until);

	ASN1_TIME_free(from);
	ASN1_TIME_free(until);
	return good;
}

/* Takes ownership of the entry. */
static bool
crl_add_entry(X509_CRL *list, X509_REVOKED *entry)
{
	if (entry && X509_CRL_add0_revoked(list, entry))
		return true;
	X509_REVOKED_free(entry);
	return false;
}

static bool
crl_copy_entries(X509_CRL *list, X509_CRL *old)
{
	STACK_OF(X509_REVOKED) *entries = old ? X509_CRL_get_REVOKED(old) : NULL;

	for (int i = 0; i < sk_X509_REVOKED_num(entries); i++) {
		if (!crl_add_entry(list, X509_REVOKED_dup(sk_X509_REVOKED_value(entries, i))))
			return false;
	}
	return true;
}

static bool
crl_add_serial(X509_CRL *list, const ASN1_INTEGER *serial)
{
	X509_REVOKED *entry = X509_REVOKED_new();
	ASN1_TIME *now = ASN1_TIME_set(NULL, time(NULL));
	bool good = entry && now && X509_REVOKED_set_serialNumber(entry, (ASN1_INTEGER *)serial) &&
		    X509_REVOKED_set_revocationDate(entry, now);

	ASN1_TIME_free(now);
	if (good)
		return crl_add_entry(list, entry);
	X509_REVOKED_free(entry);
	return false;
}

/* The CRL number is that of the previous list plus one, which distinguishes the two. */
static bool
crl_set_number(X509_CRL *list, const X509_CRL *old)
{
	ASN1_INTEGER *before = old ? X509_CRL_get_ext_d2i(old, NID_crl_number, NULL, NULL) : NULL;
	BIGNUM *number = before ? ASN1_INTEGER_to_BN(before, NULL) : BN_new();
	ASN1_INTEGER *now =
		number && BN_add_word(number, 1) ? BN_to_ASN1_INTEGER(number, NULL) : NULL;
	bool good = now && X509_CRL_add1_ext_i2d(list, NID_crl_number, now, 0, 0) == 1;

	ASN1_INTEGER_free(before);
	ASN1_INTEGER_free(now);
	BN_free(number);
	return good;
}

static bool
crl_set_authority(X509_CRL *list, X509 *authority)
{
	X509_EXTENSION *extension;
	X509V3_CTX context;
	bool good;

	X509V3_set_ctx_nodb(&context);
	X509V3_set_ctx(&context, authority, NULL, NULL, list, 0);
	extension = X509V3_EXT_conf_nid(NULL, &context, NID_authority_key_identifier, "keyid");
	good = extension && X509_CRL_add_ext(list, extension, -1) == 1;
	X509_EXTENSION_free(extension);
	/* An authority may lack a key identifier. */
	return good || !X509_get0_subject_key_id(authority);
}

/* Returns NULL without memory, or with an error in OpenSSL's queue. */
static X509_CRL *
crl_make(X509_CRL *old, const struct ctl_identity *authority, const ASN1_INTEGER *serial,
	 int64_t seconds)
{
	X509_CRL *list = X509_CRL_new();

	if (list && X509_CRL_set_version(list, X509_CRL_VERSION_2) &&
	    X509_CRL_set_issuer_name(list, X509_get_subject_name(authority->certificate)) &&
	    crl_set_times(list, seconds) && crl_copy_entries(list, old) &&
	    (!serial || crl_add_serial(list, serial)) &&
	    crl_set_authority(list, authority->certificate) && crl_set_number(list, old) &&
	    X509_CRL_sort(list) && X509_CRL_sign(list, authority->key, EVP_sha256()) > 0)
		return list;
	X509_CRL_free(list);
	return NULL;
}

/* The caller holds the lock. */
static int
crl_write(const char *path, const X509_CRL *list)
{
	BIO *bio = BIO_new(BIO_s_mem());
	char error[512], *data;
	long size = bio && PEM_write_bio_X509_CRL(bio, list) ? BIO_get_mem_data(bio, &data) : 0;
	int r = 0;

	if (size <= 0)
		r = ctl_fail("%s: cannot write PEM", path);
	else if (gpd_shared_file_replace(path, FILE_MODE, data, (size_t)size, error, sizeof(error)))
		r = ctl_fail("%s", error);
	BIO_free(bio);
	ERR_clear_error();
	return r;
}

static int
crl_sign_locked(const char *path, const struct ctl_identity *authority, const ASN1_INTEGER *serial,
		int64_t seconds)
{
	X509_CRL *old, *list;
	X509_REVOKED *entry;
	char text[64];
	int r;

	if (ctl_crl_read(path, authority->certificate, &old))
		return -1;
	if (old && serial && X509_CRL_get0_by_serial(old, &entry, (ASN1_INTEGER *)serial) == 1) {
		X509_CRL_free(old);
		ctl_serial_text(serial, text);
		return ctl_fail("the certificate %s is already revoked", text);
	}
	list = crl_make(old, authority, serial, seconds);
	if (list)
		r = crl_write(path, list);
	else
		r = ctl_fail("%s: cannot sign the CRL: %s", path,
			     ERR_reason_error_string(ERR_peek_last_error()));
	ERR_clear_error();
	X509_CRL_free(old);
	X509_CRL_free(list);
	return r;
}

int
ctl_crl_sign(const char *path, const struct ctl_identity *authority, const ASN1_INTEGER *serial,
	     int64_t seconds)
{
	char error[512];
	int fd, r;

	/* Without a key usage extension all uses are permitted. */
	if (!(X509_get_key_usage(authority->certificate) & KU_CRL_SIGN))
		return ctl_fail("the CA certificate does not permit signing CRLs (no cRLSign)");
	fd = gpd_shared_file_lock(path, error, sizeof(error));
	if (fd < 0)
		return ctl_fail("%s", error);
	r = crl_sign_locked(path, authority, serial, seconds);
	close(fd);
	return r;
}

/* Serial numbers. */

ASN1_INTEGER *
ctl_serial_parse(const char *text)
{
	char digits[SERIAL_DIGITS + 1];
	ASN1_INTEGER *serial = NULL;
	BIGNUM *number = NULL;
	size_t count = 0;

	for (const char *c = text; *c; c++) {
		if (*c == ':' && c != text)
			continue;
		if (!isxdigit((unsigned char)*c) || count == SERIAL_DIGITS)
			return NULL;
		digits[count++] = *c;
	}
	digits[count] = 0;
	if (count && BN_hex2bn(&number, digits))
		serial = BN_to_ASN1_INTEGER(number, NULL);
	BN_free(number);
	return serial;
}

void
ctl_serial_text(const ASN1_INTEGER *serial, char text[64])
{
	BIGNUM *number = ASN1_INTEGER_to_BN(serial, NULL);
	char *digits = number ? BN_bn2hex(number) : NULL;

	(void)snprintf(text, 64, "%s", digits ? digits : "");
	OPENSSL_free(digits);
	BN_free(number);
}
