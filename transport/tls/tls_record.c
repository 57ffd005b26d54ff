/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/tls/tls_record.h"

#include <endian.h>
#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <stdio.h>
#include <string.h>

struct suite {
	unsigned int number;
	const char *cipher;
	const char *digest;
};

static const struct suite suites[] = {
	{ 0x1301, "AES-128-GCM", "SHA256" },
	{ 0x1302, "AES-256-GCM", "SHA384" },
	{ 0x1303, "ChaCha20-Poly1305", "SHA256" },
};

/* HKDF-Expand-Label of RFC 8446, 7.1, without a context. */
static int
hkdf_expand_label(const struct gp_tls_record *record, const char *label, uint8_t *out, size_t size)
{
	uint8_t info[64];
	size_t length = strlen(label) + 6;
	EVP_KDF *kdf = EVP_KDF_fetch(record->library, OSSL_KDF_NAME_HKDF, NULL);
	EVP_KDF_CTX *ctx = kdf ? EVP_KDF_CTX_new(kdf) : NULL;
	int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
	OSSL_PARAM parameters[5];
	int ok;

	info[0] = (uint8_t)(size >> 8);
	info[1] = (uint8_t)size;
	info[2] = (uint8_t)length;
	(void)snprintf((char *)info + 3, sizeof(info) - 3, "tls13 %s", label);
	info[3 + length] = 0;
	parameters[0] = OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode);
	parameters[1] = OSSL_PARAM_construct_utf8_string(
		OSSL_KDF_PARAM_DIGEST, (char *)EVP_MD_get0_name(record->digest), 0);
	parameters[2] = OSSL_PARAM_construct_octet_string(
		OSSL_KDF_PARAM_KEY, (void *)record->secret, record->secret_size);
	parameters[3] = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info, 4 + length);
	parameters[4] = OSSL_PARAM_construct_end();
	ok = ctx && EVP_KDF_derive(ctx, out, size, parameters) == 1;
	EVP_KDF_CTX_free(ctx);
	EVP_KDF_free(kdf);
	return ok ? 0 : -ENOMEM;
}

/* Derives key and IV from the current secret. */
static int
record_set_key(struct gp_tls_record *record)
{
	uint8_t key[EVP_MAX_KEY_LENGTH];
	int r = hkdf_expand_label(record, "key", key,
				  (size_t)EVP_CIPHER_get_key_length(record->cipher));

	if (r == 0)
		r = hkdf_expand_label(record, "iv", record->iv, sizeof(record->iv));
	if (r == 0 &&
	    EVP_CipherInit_ex2(record->ctx, record->cipher, key, NULL, record->seals, NULL) != 1)
		r = -ENOMEM;
	OPENSSL_cleanse(key, sizeof(key));
	record->sequence = 0;
	return r;
}

int
gp_tls_record_init(struct gp_tls_record *record, OSSL_LIB_CTX *library, unsigned int suite,
		   const uint8_t *secret, size_t secret_size, bool seals)
{
	const struct suite *found = NULL;

	*record = (struct gp_tls_record){ .library = library, .suite = suite, .seals = seals };
	for (size_t i = 0; i < sizeof(suites) / sizeof(suites[0]); i++) {
		if (suites[i].number == suite)
			found = &suites[i];
	}
	if (!found || secret_size > sizeof(record->secret))
		return -ENOTSUP;
	memcpy(record->secret, secret, secret_size);
	record->secret_size = secret_size;
	record->cipher = EVP_CIPHER_fetch(library, found->cipher, NULL);
	record->digest = EVP_MD_fetch(library, found->digest, NULL);
	record->ctx = EVP_CIPHER_CTX_new();
	if (!record->cipher || !record->digest || !record->ctx)
		return -ENOMEM;
	return record_set_key(record);
}

void
gp_tls_record_fini(struct gp_tls_record *record)
{
	EVP_CIPHER_CTX_free(record->ctx);
	EVP_CIPHER_free(record->cipher);
	EVP_MD_free(record->digest);
	OPENSSL_cleanse(record, sizeof(*record));
}

int
gp_tls_record_update_key(struct gp_tls_record *record)
{
	uint8_t next[GP_TLS_RECORD_SECRET_MAX];
	int r = hkdf_expand_label(record, "traffic upd", next, record->secret_size);

	if (r == 0)
		memcpy(record->secret, next, record->secret_size);
	OPENSSL_cleanse(next, sizeof(next));
	record->updates++;
	return r ? r : record_set_key(record);
}

int
gp_tls_record_copy_key(struct gp_tls_record *twin, const struct gp_tls_record *record)
{
	int r;

	if (twin->ctx && twin->updates == record->updates)
		return 0;
	gp_tls_record_fini(twin);
	r = gp_tls_record_init(twin, record->library, record->suite, record->secret,
			       record->secret_size, record->seals);
	twin->updates = record->updates;
	return r;
}

/* Sets the record's nonce and the additional authenticated data. */
static int
record_init_nonce(struct gp_tls_record *record, const uint8_t header[GP_TLS_RECORD_HEADER])
{
	uint64_t number = htobe64(record->sequence);
	uint8_t nonce[12];
	int done;

	memcpy(nonce, record->iv, sizeof(nonce));
	for (size_t i = 0; i < sizeof(number); i++)
		nonce[4 + i] ^= ((const uint8_t *)&number)[i];
	if (EVP_CipherInit_ex2(record->ctx, NULL, NULL, nonce, -1, NULL) != 1 ||
	    EVP_CipherUpdate(record->ctx, NULL, &done, header, GP_TLS_RECORD_HEADER) != 1)
		return -EIO;
	record->sequence++;
	return 0;
}

int
gp_tls_record_seal(struct gp_tls_record *record, enum gp_tls_record_type type,
		   const struct iovec *parts, size_t size, uint8_t *out)
{
	size_t body = size + 1 + GP_TLS_RECORD_TAG;
	uint8_t inner = (uint8_t)type;
	uint8_t *to = out + GP_TLS_RECORD_HEADER;
	int done;

	out[0] = GP_TLS_RECORD_DATA;
	out[1] = out[2] = 3;
	out[3] = (uint8_t)(body >> 8);
	out[4] = (uint8_t)body;
	if (record_init_nonce(record, out))
		return -EIO;
	for (; size > 0; parts++) {
		size_t take = parts->iov_len < size ? parts->iov_len : size;

		if (take &&
		    EVP_CipherUpdate(record->ctx, to, &done, parts->iov_base, (int)take) != 1)
			return -EIO;
		to += take;
		size -= take;
	}
	if (EVP_CipherUpdate(record->ctx, to, &done, &inner, 1) != 1 ||
	    EVP_CipherFinal_ex(record->ctx, to + 1, &done) != 1 ||
	    EVP_CIPHER_CTX_ctrl(record->ctx, EVP_CTRL_AEAD_GET_TAG, GP_TLS_RECORD_TAG, to + 1) != 1)
		return -EIO;
	return 0;
}

ssize_t
gp_tls_record_get_size(const uint8_t header[GP_TLS_RECORD_HEADER])
{
	size_t body = (size_t)header[3] << 8 | header[4];

	if (header[0] != GP_TLS_RECORD_DATA || header[1] != 3 || header[2] != 3 ||
	    body < 1 + GP_TLS_RECORD_TAG || body > GP_TLS_RECORD_MAX + 256)
		return -EPROTO;
	return (ssize_t)(GP_TLS_RECORD_HEADER + body);
}

/* Returns byte `at` of the parts. */
static uint8_t
parts_get_byte(const struct iovec *parts, size_t at)
{
	for (; at >= parts->iov_len; parts++)
		at -= parts->iov_len;
	return ((const uint8_t *)parts->iov_base)[at];
}

int
gp_tls_record_open(struct gp_tls_record *record, const uint8_t *bytes, size_t size,
		   const struct iovec *parts, int count, uint8_t *type_p, size_t *content_p)
{
	size_t plain = size - GP_TLS_RECORD_HEADER - GP_TLS_RECORD_TAG, left = plain;
	const uint8_t *from = bytes + GP_TLS_RECORD_HEADER;
	uint8_t nothing[GP_TLS_RECORD_TAG];
	int done;

	if (record_init_nonce(record, bytes))
		return -EIO;
	for (int i = 0; i < count && left > 0; i++) {
		size_t take = parts[i].iov_len < left ? parts[i].iov_len : left;

		if (take &&
		    EVP_CipherUpdate(record->ctx, parts[i].iov_base, &done, from, (int)take) != 1)
			return -EBADMSG;
		from += take;
		left -= take;
	}
	if (left ||
	    EVP_CIPHER_CTX_ctrl(record->ctx, EVP_CTRL_AEAD_SET_TAG, GP_TLS_RECORD_TAG,
				(void *)from) != 1 ||
	    EVP_CipherFinal_ex(record->ctx, nothing, &done) != 1)
		return -EBADMSG;
	/* The content is followed by its type and by any number of zeros. */
	while (plain > 0 && parts_get_byte(parts, plain - 1) == 0)
		plain--;
	if (plain == 0 || plain - 1 > GP_TLS_RECORD_MAX)
		return -EPROTO;
	*type_p = parts_get_byte(parts, plain - 1);
	*content_p = plain - 1;
	return 0;
}
