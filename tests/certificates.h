/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generator of the certificates for tests of TLS, with OpenSSL's library: the certification
 * authority of a pool with its certificates, and a foreign authority.
 *
 * certificates_make() writes the authority's certificate ca.pem, and a certificate NAME.pem with a
 * private key NAME.key for each of these names:
 *   server    server certificate for localhost, 127.0.0.1 and ::1
 *   renewed   like server, with another key
 *   elsewhere server certificate for another host name and address
 *   old       expired server certificate
 *   alice     client certificate with the common name alice
 *   any       certificate without a key usage, common name any: valid for servers and clients
 *   nameless  client certificate without a common name, with the DNS name bob.example
 *   lasting   client certificate that expires after the authority
 *   past      expired client certificate
 *
 * It also writes other.pem, the foreign authority, with its server certificate foreign and its
 * client certificate mallory, whose common name is alice.
 */
#ifndef GP_TEST_CERTIFICATES_H
#define GP_TEST_CERTIFICATES_H

/* Writes the files into an existing folder. Returns 0, or -1 after a line on standard error; files
 * written until then remain. */
int certificates_make(const char *folder);

#endif /* GP_TEST_CERTIFICATES_H */
