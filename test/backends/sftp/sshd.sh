#!/usr/bin/env bash
# sshd.sh DIR PORT: runs sshd for one user with a key, until standard input closes. DIR may have keys already.
cd "$1" || exit 1
# Debian's sshd needs this directory. Only an administrator can make it.
[ "$(id -u)" != 0 ] || mkdir -p /run/sshd
[ -f hostkey ] || ssh-keygen -q -t ed25519 -N '' -f hostkey
[ -f userkey ] || ssh-keygen -q -t ed25519 -N '' -f userkey
cp userkey.pub authorized_keys
chmod 600 authorized_keys
cat >sshd_config <<C
Port $2
ListenAddress 127.0.0.1
HostKey $1/hostkey
PidFile none
AuthorizedKeysFile $1/authorized_keys
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
X11Forwarding no
AllowTcpForwarding no
PrintMotd no
UseDNS no
MaxSessions 50
MaxStartups 100
Subsystem sftp /usr/lib/openssh/sftp-server
LogLevel ERROR
C
/usr/sbin/sshd -f sshd_config -E log -D &
server=$!
cat >/dev/null
# Each connection has processes of its own.
for child in $(ps -o pid= --ppid $server); do
  kill -9 $(ps -o pid= --ppid "$child") "$child" 2>/dev/null
done
kill -9 $server
