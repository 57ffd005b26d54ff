/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Record protection of TLS 1.3 for one direction of a connection (RFC 8446, 5): seals records to be
 * sent, or opens received ones, with the keys of OpenSSL's handshake. No I/O.
 *
 * An SSL object serves one thread at a time and copies data, but a connection has a sending and a
 * receiving thread. With separate record protection the two share nothing, and bulk is encrypted or
 * decrypted in one pass between the caller's memory and the socket's buffer.
 *
 * Threads: the thread of its direction.
 */
#ifndef GP_TLS_RECORD_H
#define GP_TLS_RECORD_H

#include "base/status.h"

#include <openssl/evp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define GP_TLS_RECORD_HEADER 5
#define GP_TLS_RECORD_TAG 16
/* Maximum content of a record. */
#define GP_TLS_RECORD_MAX ((size_t)16 << 10)
/* Bytes that sealing adds: header, content type, tag. */
#define GP_TLS_RECORD_OVERHEAD (GP_TLS_RECORD_HEADER + 1 + GP_TLS_RECORD_TAG)
/* Maximum size of a received record, with padding. */
#define GP_TLS_RECORD_WIRE_MAX (GP_TLS_RECORD_HEADER + GP_TLS_RECORD_MAX + 256)
#define GP_TLS_RECORD_SECRET_MAX 48
/* Records per key; AES-GCM allows 2^24.5. */
#define GP_TLS_RECORD_KEY_MAX ((uint64_t)1 << 23)

enum gp_tls_record_type {
	GP_TLS_RECORD_ALERT = 21,
	GP_TLS_RECORD_HANDSHAKE = 22,
	GP_TLS_RECORD_DATA = 23,
};

struct gp_tls_record {
	EVP_CIPHER_CTX *ctx;
	EVP_CIPHER *cipher;
	EVP_MD *digest;
	OSSL_LIB_CTX *library;
	unsigned int suite;
	unsigned int updates; /* number of key updates */
	bool seals;
	uint64_t sequence; /* number of records with this key */
	uint8_t iv[12];
	uint8_t secret[GP_TLS_RECORD_SECRET_MAX];
	size_t secret_size;
};

/* Initializes record protection. suite: the cipher suite's number, 0x1301 to 0x1303; secret: the
 * direction's traffic secret. Returns 0, -ENOMEM or -ENOTSUP; gp_tls_record_fini() may be called in
 * all cases. */
GP_MUST_CHECK int gp_tls_record_init(struct gp_tls_record *record, OSSL_LIB_CTX *library,
				     unsigned int suite, const uint8_t *secret, size_t secret_size,
				     bool seals);
void gp_tls_record_fini(struct gp_tls_record *record);

/* Makes `twin`, zeroed or an earlier twin, use the record's key in another thread; the caller sets
 * its sequence numbers. Returns 0 or a negative errno. */
GP_MUST_CHECK int gp_tls_record_copy_key(struct gp_tls_record *twin,
					 const struct gp_tls_record *record);

/* Switches to the next key, after a KeyUpdate. Returns 0 or a negative errno. */
GP_MUST_CHECK int gp_tls_record_update_key(struct gp_tls_record *record);

/*
 * Seals `size` bytes from the parts, at most GP_TLS_RECORD_MAX, as one record of size +
 * GP_TLS_RECORD_OVERHEAD bytes. Returns 0 or a negative errno.
 */
GP_MUST_CHECK int gp_tls_record_seal(struct gp_tls_record *record, enum gp_tls_record_type type,
				     const struct iovec *parts, size_t size, uint8_t *out);

/* Returns the size of a record including its header, or -EPROTO if the header is invalid. */
ssize_t gp_tls_record_get_size(const uint8_t header[GP_TLS_RECORD_HEADER]);

/*
 * Opens a complete record and writes its content to the parts, in sequence, which must have room
 * for size - GP_TLS_RECORD_HEADER - GP_TLS_RECORD_TAG bytes; more than *content_p bytes of them may
 * be written. -EBADMSG: authentication failed; the content of the parts is then undefined.
 */
GP_MUST_CHECK int gp_tls_record_open(struct gp_tls_record *record, const uint8_t *bytes,
				     size_t size, const struct iovec *parts, int count,
				     uint8_t *type_p, size_t *content_p);

#endif /* GP_TLS_RECORD_H */
