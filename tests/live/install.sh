#!/bin/sh
# Installs what the live tests need on Debian, and the servers and shells that others test against.
# Run as root; does nothing when all is there.
# No service is started: the tests start their own daemons, on loopback and under other names.
set -eu

PACKAGES="slurmctld slurmd slurmdbd slurm-client munge mariadb-server mariadb-client
 openssh-server openssh-client postgresql tcsh fish zsh ksh systemd faketime"

missing=
for package in $PACKAGES; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q ' installed$' ||
    missing="$missing $package"
done
[ -n "$missing" ] || { echo "live tests: all packages are installed"; exit 0; }
[ "$(id -u)" = 0 ] || { echo "live tests: run as root to install:$missing" >&2; exit 1; }

# Debian asks this file before it starts a service; 101 means no.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
  trap 'rm -f "$policy"' EXIT
fi

have_lists() { find /var/lib/apt/lists -maxdepth 1 -name '*_Packages*' 2>/dev/null | grep -q .; }
install_missing() {
  # shellcheck disable=SC2086 # a list of words
  DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing
}
have_lists || apt-get update
# Lists that are there but old name files which the mirror no longer has.
install_missing || { apt-get update && install_missing; }
