/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file with the certificate revocation lists (CRLs) for client certificates
 * (transport/tls/crl.h), as loaded by the daemon.
 *
 * The file is loaded again when it changes, and when the authorities of client certificates change.
 * It is invalid if it cannot be read or parsed, is not issued by the authority, is expired or not
 * valid yet, or does not exist although it was configured or existed before. While file.wrong is
 * not 0, the caller must accept no client certificate, and uses crl only to recognize revoked ones.
 * If the daemon requests no client certificates, the file is ignored; gpd_crl_file_open() then
 * fails for a configured one.
 *
 * Ownership: gpd_crl_file_open() to gpd_crl_file_close().
 * Threads: the supervisor's main thread.
 * Errors: as shared_file.h; the text is in file.why.
 */
#ifndef GPD_CRL_FILE_H
#define GPD_CRL_FILE_H

#include "base/status.h"
#include "server/common/base/shared_file.h"
#include "transport/tls/crl.h"

#include <stdbool.h>
#include <stdint.h>

/* State of the file. */
struct gpd_crl_file {
	struct gpd_shared_file file;
	/* It is an error if the file does not exist: it was configured or has been read once. */
	bool needed;
	/* TLS configuration with whose authorities it was loaded, a reference; NULL: none. */
	struct gp_tls *tls;
	/* Last valid content, owned; NULL: no CRL, so no certificate counts as revoked. */
	struct gp_crl *crl;
};

/* Initializes the state and loads the file. Called after gpd_tls_set() (tls_files.h). path NULL:
 * there is no file. named: the path was configured; the file must then exist. false: it is the
 * default path. Overwrites *file. Returns 0; or, with a text in file->file.why, an error of
 * shared_file.h, GP_E_INVALID (not a usable CRL), -EAGAIN (not valid yet) or -ENOMEM. After a
 * failure file.wrong is not set, and the struct may only be closed. The caller calls
 * gpd_crl_file_close() in both cases. */
GP_MUST_CHECK int gpd_crl_file_open(struct gpd_crl_file *file, const char *path, bool named);
/* Loads the file again if it or the authorities have changed, or if it was invalid or has expired.
 * now_ms: time of gp_now_ms(). Returns the change (shared_file.h). While the file is invalid, crl
 * keeps its previous value, and file.wrong is not 0. */
enum gpd_shared_file_change gpd_crl_file_refresh(struct gpd_crl_file *file, int64_t now_ms);
/* gpd_crl_file_check() logs a warning if the CRL expires within this time in seconds. */
#define GPD_CRL_SOON_S ((int64_t)7 * 86400)
/* Logs a warning if the current CRL expires within GPD_CRL_SOON_S and has not expired yet. */
void gpd_crl_file_check(const struct gpd_crl_file *file);
/* Frees the CRL and releases the TLS configuration. */
void gpd_crl_file_close(struct gpd_crl_file *file);

#endif /* GPD_CRL_FILE_H */
