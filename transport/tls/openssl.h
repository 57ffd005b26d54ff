/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where OpenSSL comes from.  A program of ours is linked with it (openssl_linked.c).  A library of
 * ours, which lies in somebody else's process, opens it when TLS is first wanted
 * (openssl_opened.c): a machine whose clients use tcp or unix sockets need not have it, and no
 * program gets another OpenSSL than its own by ours.  The rest of this folder calls OpenSSL as
 * usual.
 */
#ifndef GP_OPENSSL_H
#define GP_OPENSSL_H

#include <stdbool.h>
#include <stddef.h>

/* Whether it is there, before the first call of it; any thread. */
bool gp_openssl_open(void);
/* Why not, as a sentence for the person at this end. */
const char *gp_openssl_get_error(void);

#endif /* GP_OPENSSL_H */
