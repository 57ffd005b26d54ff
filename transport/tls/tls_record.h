/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Record protection of TLS 1.3 for one direction of a connection: seals records to be sent, or
 * opens received ones, with the keys of OpenSSL's handshake. No I/O.
 *
 * An SSL object of OpenSSL serves one thread at a time and copies data, but a connection has a
 * sending and a receiving thread. With separate record protection the two share nothing, and bulk
 * is encrypted or decrypted in one pass between the caller's memory and the socket's buffer.
 *
 * Ownership: the caller provides struct gp_tls_record, zeroed, and frees its members with
 * gp_tls_record_fini(). The library context must outlive it.
 * Threads: one thread at a time per struct, the thread of its direction.
 * Errors: 0 or a negative errno; -EIO: OpenSSL has failed. After a failure the struct can only be
 * finalized.
 * Units: bytes.
 * Source: RFC 8446, section 5.
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
/* Maximum size of a received record, including padding and header. */
#define GP_TLS_RECORD_WIRE_MAX (GP_TLS_RECORD_HEADER + GP_TLS_RECORD_MAX + 256)
/* Maximum size of a traffic secret. */
#define GP_TLS_RECORD_SECRET_MAX 48
/* Maximum number of records with one key; AES-GCM allows 2^24.5. The functions below do not check
 * it: the sender (tls_io.c) calls gp_tls_record_update_key() at this number. */
#define GP_TLS_RECORD_KEY_MAX ((uint64_t)1 << 23)

enum gp_tls_record_type {
	GP_TLS_RECORD_ALERT = 21,
	GP_TLS_RECORD_HANDSHAKE = 22,
	GP_TLS_RECORD_DATA = 23,
};

/* State of one direction with its current key. */
struct gp_tls_record {
	EVP_CIPHER_CTX *ctx;
	EVP_CIPHER *cipher;
	EVP_MD *digest;
	OSSL_LIB_CTX *library;
	unsigned int suite;
	unsigned int updates; /* number of key updates since gp_tls_record_init() */
	bool seals;
	/* number of records with this key so far; the sequence number of the next record */
	uint64_t sequence;
	uint8_t iv[12];
	uint8_t secret[GP_TLS_RECORD_SECRET_MAX];
	size_t secret_size;
};

/* Initializes record protection. suite: the cipher suite's number, 0x1301 to 0x1303. secret: the
 * direction's traffic secret, which is copied. secret_size: length of the suite's hash, 32 bytes
 * (0x1301, 0x1303) or 48 bytes (0x1302). seals: true to seal records, false to open them. Returns
 * 0; -ENOMEM; or -ENOTSUP if the suite is unknown or the secret is longer than
 * GP_TLS_RECORD_SECRET_MAX. gp_tls_record_fini() may be called in all cases. */
GP_MUST_CHECK int gp_tls_record_init(struct gp_tls_record *record, OSSL_LIB_CTX *library,
				     unsigned int suite, const uint8_t *secret, size_t secret_size,
				     bool seals);
/* Erases the keys, frees the members and zeroes the struct. Accepts a zeroed struct. */
void gp_tls_record_fini(struct gp_tls_record *record);

/* Copies the record's key to `twin`, a second struct for the same direction, with which a helper
 * thread seals or opens a part of the records. twin: zeroed, or set by an earlier call with the
 * same record. The caller sets twin->sequence before each use and calls gp_tls_record_fini(). Has
 * no effect if the twin already has the current key. Returns 0, -ENOMEM or -ENOTSUP; after an error
 * the twin can only be finalized. */
GP_MUST_CHECK int gp_tls_record_copy_key(struct gp_tls_record *twin,
					 const struct gp_tls_record *record);

/* Switches to the next key, after a KeyUpdate was sent or received, and restarts the sequence
 * numbers at 0. Returns 0 or -ENOMEM. */
GP_MUST_CHECK int gp_tls_record_update_key(struct gp_tls_record *record);

/*
 * Seals the first `size` bytes of the parts, at most GP_TLS_RECORD_MAX, as one record of size +
 * GP_TLS_RECORD_OVERHEAD bytes in `out`, and increments the sequence number. The total size of the
 * parts must be at least `size`. Returns 0, or -EIO, after which `out` is undefined.
 */
GP_MUST_CHECK int gp_tls_record_seal(struct gp_tls_record *record, enum gp_tls_record_type type,
				     const struct iovec *parts, size_t size, uint8_t *out);

/* Returns the size of a record, including its header, or -EPROTO if the header is invalid. */
ssize_t gp_tls_record_get_size(const uint8_t header[GP_TLS_RECORD_HEADER]);

/*
 * Opens a complete record of `size` bytes (gp_tls_record_get_size()) and writes its content to the
 * parts, in sequence. The total size of the parts must be at least size - GP_TLS_RECORD_HEADER -
 * GP_TLS_RECORD_TAG bytes, because content type and padding are decrypted there too. Returns 0 with
 * the content's type (enum gp_tls_record_type) in *type_p and its size in *content_p; -EBADMSG if
 * authentication failed or the parts are too small; -EPROTO if the content is invalid; or -EIO.
 * After an error the parts' content is undefined, and *type_p and *content_p are unchanged.
 */
GP_MUST_CHECK int gp_tls_record_open(struct gp_tls_record *record, const uint8_t *bytes,
				     size_t size, const struct iovec *parts, int count,
				     uint8_t *type_p, size_t *content_p);

#endif /* GP_TLS_RECORD_H */
