/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records of TLS 1.3 in one direction of a connection (RFC 8446, 5): seals what is sent, or
 * opens what came, with the keys that OpenSSL's handshake has made.  No I/O.
 *
 * An SSL object serves one thread at a time, and copies; a connection has a thread that sends and
 * one that receives.  With a record protection each they share nothing, and bulk goes from the
 * caller's memory to the socket's and back in one pass.  By the thread of its direction.
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
/* Content of one record. */
#define GP_TLS_RECORD_MAX ((size_t)16 << 10)
/* What sealing adds: header, the content's type, tag. */
#define GP_TLS_RECORD_OVERHEAD (GP_TLS_RECORD_HEADER + 1 + GP_TLS_RECORD_TAG)
/* The longest that a peer may send, with its padding. */
#define GP_TLS_RECORD_WIRE_MAX (GP_TLS_RECORD_HEADER + GP_TLS_RECORD_MAX + 256)
#define GP_TLS_RECORD_SECRET_MAX 48
/* AES-GCM is good for 2^24.5 records with one key. */
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
	unsigned int updates; /* how often the key has changed */
	bool seals;
	uint64_t sequence; /* records with this key */
	uint8_t iv[12];
	uint8_t secret[GP_TLS_RECORD_SECRET_MAX];
	size_t secret_size;
};

/* The suite's number as in the handshake, 0x1301 to 0x1303, and the direction's traffic secret.  0,
 * -ENOMEM or -ENOTSUP; gp_tls_record_fini() is right in all cases. */
GP_MUST_CHECK int gp_tls_record_init(struct gp_tls_record *record, OSSL_LIB_CTX *library,
				     unsigned int suite, const uint8_t *secret, size_t secret_size,
				     bool seals);
void gp_tls_record_fini(struct gp_tls_record *record);

/* Makes `twin`, zero or a former twin, work with the record's key, for another thread; the caller
 * says with which sequence number.  0 or a negative errno. */
GP_MUST_CHECK int gp_tls_record_copy_key(struct gp_tls_record *twin,
					 const struct gp_tls_record *record);

/* The next key, behind a KeyUpdate.  0 or a negative errno. */
GP_MUST_CHECK int gp_tls_record_update_key(struct gp_tls_record *record);

/*
 * One record of `size` bytes, at most GP_TLS_RECORD_MAX, out of the parts, of which there must be
 * as much.  Writes size + GP_TLS_RECORD_OVERHEAD bytes.  0 or a negative errno.
 */
GP_MUST_CHECK int gp_tls_record_seal(struct gp_tls_record *record, enum gp_tls_record_type type,
				     const struct iovec *parts, size_t size, uint8_t *out);

/* Size of the record whose header this is, header included, or -EPROTO if there can be none. */
ssize_t gp_tls_record_get_size(const uint8_t header[GP_TLS_RECORD_HEADER]);

/*
 * Opens a whole record.  Its content goes to the parts, one after the other; they must have room
 * for size - GP_TLS_RECORD_HEADER - GP_TLS_RECORD_TAG bytes, of which more than *content_p may be
 * written. -EBADMSG: it is not what the peer has sent; then nothing in the parts means anything.
 */
GP_MUST_CHECK int gp_tls_record_open(struct gp_tls_record *record, const uint8_t *bytes,
				     size_t size, const struct iovec *parts, int count,
				     uint8_t *type_p, size_t *content_p);

#endif /* GP_TLS_RECORD_H */
