/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256 without OpenSSL, which the client library loads only for TLS. Uses the processor's SHA
 * instructions where available, because images may have hundreds of megabytes.
 *
 * Ownership: the caller provides struct gp_sha256.
 * Threads: any; one thread at a time per state.
 * Errors: none.
 */
#ifndef GP_SHA256_H
#define GP_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define GP_SHA256_SIZE 32
#define GP_SHA256_BLOCK 64

struct gp_sha256 {
	uint32_t words[8];
	uint64_t size; /* bytes added so far */
	uint8_t block[GP_SHA256_BLOCK];
};

/* Starts a hash, adds bytes to it, and returns the digest. gp_sha256_final() erases the state. */
void gp_sha256_init(struct gp_sha256 *state);
void gp_sha256_update(struct gp_sha256 *state, const void *bytes, size_t size);
void gp_sha256_final(struct gp_sha256 *state, uint8_t out[GP_SHA256_SIZE]);

/* Computes the digest of one buffer. */
void gp_sha256(const void *bytes, size_t size, uint8_t out[GP_SHA256_SIZE]);

/* For tests and benchmarks: disables the processor's SHA instructions for the whole process. */
void gp_sha256_use_portable(void);

#endif /* GP_SHA256_H */
