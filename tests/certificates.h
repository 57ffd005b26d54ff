/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool's certificates and those of strangers, made anew for a test with OpenSSL's library.
 *
 * In the folder: ca.pem, and NAME.pem with NAME.key for
 *   server    localhost, 127.0.0.1 and ::1
 *   renewed   the same, with another key
 *   elsewhere another name and address
 *   old       a server's that has expired
 *   alice     a client's, with this common name
 *   any       a server's as well as a client's, with common name any: it says nothing of its use
 *   nameless  a client's, without a common name, DNS name bob.example
 *   lasting   a client's that holds for longer than the authority
 *   past      a client's that has expired
 * and other.pem, another authority, with foreign (a server's) and mallory (a client's) of it.
 */
#ifndef GP_TEST_CERTIFICATES_H
#define GP_TEST_CERTIFICATES_H

/* The folder is there.  0, or -1 and a line on standard error. */
int certificates_make(const char *folder);

#endif /* GP_TEST_CERTIFICATES_H */
