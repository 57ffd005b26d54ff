# Before an upgrade replaces a daemon at work, in both kinds of packages: nobody new is admitted, open
# sessions are waited for as long as UPGRADE_WAIT of /etc/default/gpupoold says (seconds), and those
# that the upgrade ends are named.
if [ -d /run/systemd/system ] && systemctl --quiet is-active gpupoold; then
	seconds=0
	if [ -r /etc/default/gpupoold ]; then
		seconds=$(sed -n 's/^UPGRADE_WAIT=\([0-9][0-9]*\)$/\1/p' /etc/default/gpupoold | tail -n 1)
		seconds=${seconds:-0}
	fi
	gpupoolctl drain >/dev/null || echo "gpupool-server: gpupoold goes on admitting sessions until it is replaced"
	sessions=$(gpupoolctl client list 2>/dev/null || true)
	if [ "$seconds" -gt 0 ] && [ "$(echo "$sessions" | wc -l)" -gt 1 ]; then
		echo "gpupool-server: no new sessions; waiting up to $seconds s for those that are open"
		timeout "$seconds" gpupoolctl drain --wait || true
		sessions=$(gpupoolctl client list 2>/dev/null || true)
	fi
	if [ "$(echo "$sessions" | wc -l)" -gt 1 ]; then
		echo "gpupool-server: the upgrade ends these sessions (UPGRADE_WAIT=SECONDS in"
		echo "/etc/default/gpupoold lets an upgrade wait for them):"
		echo "$sessions"
	fi
fi
