#!/usr/bin/env bash
# radosgw.sh DIR PORT: runs a Ceph monitor, a store in memory and radosgw until standard input closes. The user has the
# key TESTKEY and the secret TESTSECRET. Ceph takes two more ports: one that is free now, and one of a range.
# DIR/radosgw.pid has the id of radosgw, which starts again after it was killed. The store keeps its objects meanwhile.
D=$1 S3=$2
mkdir -p "$D"/{mon,osd,run,rgw}
MON=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
LOW=$((20000 + RANDOM % 10000)) HIGH=$((LOW + 200))
cat >"$D/ceph.conf" <<C
[global]
ms mon client mode = crc
fsid = 11111111-2222-3333-4444-555555555555
mon host = [v2:127.0.0.1:$MON/0]
mon initial members = a
public addr = 127.0.0.1
cluster addr = 127.0.0.1
ms bind ipv4 = true
ms bind ipv6 = false
ms bind msgr1 = false
ms bind port min = $LOW
ms bind port max = $HIGH
auth cluster required = none
auth service required = none
auth client required = none
auth supported = none
run dir = $D/run
admin socket = $D/run/\$name.\$pid.asok
pid file = $D/run/\$name.pid
log file = $D/run/\$name.log
crash dir = $D/run
mon cluster log file = $D/run/cluster.log
err to stderr = false
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 4
osd pool default pgp num = 4
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon allow pool size one = true
mon allow pool delete = true
mon max pg per osd = 5000
mon pg warn min per osd = 0
mon data avail warn = 2
mon data avail crit = 1
ms dispatch throttle bytes = 1048576000
[mon.a]
mon data = $D/mon
paxos propose interval = 0.05
mon min osdmap epochs = 20
[osd]
osd data = $D/osd
osd objectstore = memstore
memstore device bytes = ${MEMSTORE:-2147483648}
osd class load list = *
osd class default list = *
osd op num shards = 2
osd op num threads per shard = 1
osd max object size = 268435456
osd max write size = 512
osd heartbeat interval = 2
osd scrub begin hour = 0
osd scrub load threshold = 0
[client.rgw]
ms mon client mode = crc
rgw frontends = beast endpoint=127.0.0.1:$S3 tcp_nodelay=1
rgw thread pool size = 32
rgw enable gc threads = false
rgw enable lc threads = false
rgw enable quota threads = false
rgw run sync thread = false
rgw enable usage log = false
rgw enable ops log = false
rgw crypt require ssl = false
rgw data = $D/rgw
rgw dns name = 127.0.0.1
C
export CEPH_CONF=$D/ceph.conf CEPH_ARGS=--no-mon-config
cd "$D" || exit 1
pids=()
stop() {
  kill -9 "${pids[@]}" 2>/dev/null
  kill -9 "$(cat "$D/radosgw.pid")" 2>/dev/null
  wait 2>/dev/null
  cd / && rm -rf "$D"
}
trap stop EXIT
# Without the tests, standard input ends, and this process with everything that it started.
main=$$
exec 3<&0
(cat <&3 >/dev/null; kill -TERM $main) &
trap 'exit 0' TERM
{
  monmaptool --create --clobber --addv a "[v2:127.0.0.1:$MON/0]" --fsid 11111111-2222-3333-4444-555555555555 "$D/monmap"
  ceph-mon -i a --mkfs --monmap "$D/monmap" || exit 1
  ceph-mon -i a -f & pids+=($!)
  for _ in $(seq 100); do timeout 5 ceph --connect-timeout 5 mon stat && break; sleep 0.1; done
  uuid=99999999-2222-3333-4444-555555555555
  ceph osd new $uuid
  ceph-osd -i 0 --mkfs --osd-uuid $uuid || exit 1
  ceph-osd -i 0 -f & pids+=($!)
  for _ in $(seq 100); do ceph osd stat | grep -q '1 up' && break; sleep 0.1; done
  while :; do radosgw -n client.rgw -f & echo $! >"$D/radosgw.pid"; wait $!; sleep 0.05; done & pids+=($!)
  for _ in $(seq 300); do (echo >"/dev/tcp/127.0.0.1/$S3") 2>/dev/null && break; sleep 0.1; done
  radosgw-admin -n client.rgw user create --uid=test --display-name=test --access-key=TESTKEY --secret=TESTSECRET
} >"$D/run/out" 2>&1 </dev/null
wait
