/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports the findings of config_lint.h: in the log when the daemon starts, to the administrator at
 * a reload, and on standard error for gpupoold --check-config.
 *
 * Threads: the main thread of the supervisor, or of the process that checks. Files are read
 * synchronously.
 */
#ifndef GPD_CONFIG_REPORT_H
#define GPD_CONFIG_REPORT_H

#include "server/common/config/config_lint.h"
#include "server/common/config/options.h"
#include "server/common/config/reload_report.h"
#include "server/supervisor/admission/admission.h"

/* Logs the findings, the path of the configuration, and the tokens that expire within 7 days.
 * Called once at the start, after the first worker has reported its devices. */
void gpd_config_report_start(const struct gpd_admission *admission,
			     const struct gpd_options *options);
/* Logs the findings and adds them to the report as warnings (reload_report.h). Called after a
 * reloaded configuration has taken effect, and so after the admission has loaded the tokens. */
void gpd_config_report_reload(const struct gpd_admission *admission,
			      struct gpd_reload_report *reloaded);
/* Called in each iteration of the loop: once a day, but not in the first call, logs a certificate,
 * a CRL and tokens that expire soon. now_ms: time of gp_now_ms(). */
void gpd_config_report_expiry(const struct gpd_admission *admission, int64_t now_ms);

/*
 * Implements --check-config: reports every error and warning that a start with these options would
 * cause (of the configuration, files, sockets, addresses and devices) to standard error, and a
 * summary, to standard output if there is no error. Creates nothing, but opens network addresses
 * for a moment. A driver that cannot be loaded is a warning, as the check may run on another
 * machine. Sets gpd_log_level, and switches the calling process to the daemon's user, to check the
 * files that the daemon reads as this user; the process should exit afterwards.
 *
 * list_devices: lists the machine's devices (config_lint.h). Returns the exit status: 0, or 1 if
 * the daemon would not start with the configuration.
 */
int gpd_config_report_check(const struct gpd_options *options, gpd_lint_list_devices *list_devices);

#endif /* GPD_CONFIG_REPORT_H */
