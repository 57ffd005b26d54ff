/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access to OpenSSL. gpupool's programs are linked with it (openssl_linked.c). gpupool's libraries,
 * which are loaded into other programs, open it with dlopen() when TLS is first used
 * (openssl_opened.c): clients that use tcp or unix sockets do not need OpenSSL, and a program never
 * gets another version than its own because of gpupool. OpenSSL 3 is required.
 *
 * The rest of this directory and client/connect call OpenSSL as usual, but only the functions that
 * are listed in openssl_calls.h; a new one is added there.
 *
 * Threads: any.
 */
#ifndef GP_OPENSSL_H
#define GP_OPENSSL_H

#include <stdbool.h>

/* Loads OpenSSL on the first call, which waits for the dynamic loader; must be called before any
 * other OpenSSL function. Returns whether OpenSSL is available; the result never changes. */
bool gp_openssl_open(void);
/* Returns why gp_openssl_open() has returned false, as a sentence for the local user; static
 * text. */
const char *gp_openssl_get_error(void);

#endif /* GP_OPENSSL_H */
