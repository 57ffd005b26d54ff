/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256 for who must do without OpenSSL: the client needs that only for TLS.  With the machine's
 * instructions for it where it has them, for images have hundreds of megabytes.  The state is its
 * caller's, who is one thread at a time; nothing can fail.
 */
#ifndef GP_SHA256_H
#define GP_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define GP_SHA256_SIZE 32
#define GP_SHA256_BLOCK 64

struct gp_sha256 {
	uint32_t words[8];
	uint64_t size; /* of all that was added */
	uint8_t block[GP_SHA256_BLOCK];
};

void gp_sha256_init(struct gp_sha256 *state);
void gp_sha256_update(struct gp_sha256 *state, const void *bytes, size_t size);
void gp_sha256_final(struct gp_sha256 *state, uint8_t out[GP_SHA256_SIZE]);

/* All of it. */
void gp_sha256(const void *bytes, size_t size, uint8_t out[GP_SHA256_SIZE]);

/* For tests and comparisons: from now on without the machine's instructions. */
void gp_sha256_use_portable(void);

#endif /* GP_SHA256_H */
