/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256 without OpenSSL, which the client library loads only for TLS. Uses the processor's SHA
 * instructions where available, because images (GPU code modules) may have hundreds of megabytes.
 *
 * Ownership: the caller provides struct gp_sha256, which needs no cleanup.
 * Threads: any; one thread at a time per state.
 * Errors: none.
 * Units: bytes.
 * Source: FIPS 180-4.
 */
#ifndef GP_SHA256_H
#define GP_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define GP_SHA256_SIZE 32
#define GP_SHA256_BLOCK 64

/* State of an incremental hash. */
struct gp_sha256 {
	/* intermediate hash value */
	uint32_t words[8];
	uint64_t size; /* bytes added so far */
	/* input that does not fill a block yet: size % GP_SHA256_BLOCK bytes */
	uint8_t block[GP_SHA256_BLOCK];
};

/* Starts a hash. May be called again to reuse a state. */
void gp_sha256_init(struct gp_sha256 *state);
/* Adds bytes to the hash. bytes may be NULL if size is 0; it is not used after the call. */
void gp_sha256_update(struct gp_sha256 *state, const void *bytes, size_t size);
/* Stores the digest in out and erases the state, which must be initialized before further use. */
void gp_sha256_final(struct gp_sha256 *state, uint8_t out[GP_SHA256_SIZE]);

/* Stores the digest of one buffer in out. */
void gp_sha256(const void *bytes, size_t size, uint8_t out[GP_SHA256_SIZE]);

/* For tests and benchmarks: disables the processor's SHA instructions for the whole process,
 * permanently. No other thread may hash during the call. */
void gp_sha256_use_portable(void);

#endif /* GP_SHA256_H */
