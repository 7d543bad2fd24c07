#!/usr/bin/env bash
# cluster.sh: a cluster of three hosts, as network namespaces of this machine that are joined by a
# bridge. Chains, calibration, cross-validation and multistarts run in workers there, one of which
# is killed in the middle: the results are those of one process, and the bytes sent are counted.
# Takes the library with statcl from R_LIBS. Exits with 77 where namespaces cannot be made, which
# needs root and iproute2.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.."
name=scl$$
net=10.213.$((RANDOM % 250))
hosts="1 2 3"

if [ "$(id -u)" != 0 ] || ! ip netns add "$name-1" 2> /dev/null; then
  echo "cluster: network namespaces cannot be made here: skipped"
  exit 77
fi
place=$(mktemp -d)
clean() {
  for i in $hosts; do
    ip netns pids "$name-$i" 2> /dev/null | xargs -r kill -9 2> /dev/null
    ip netns del "$name-$i" 2> /dev/null
    ip link del "$name-v$i" 2> /dev/null
  done
  ip link del "$name-b" 2> /dev/null
  rm -rf "$place"
}
trap clean EXIT

if ! ip link add "$name-b" type bridge 2> /dev/null; then
  echo "cluster: bridges cannot be made here: skipped"
  exit 77
fi
ip addr add "$net.254/24" dev "$name-b"
ip link set "$name-b" up
for i in $hosts; do
  [ "$i" = 1 ] || ip netns add "$name-$i"
  ip link add "$name-v$i" type veth peer name eth0 netns "$name-$i"
  ip link set "$name-v$i" master "$name-b" up
  ip -n "$name-$i" addr add "$net.$i/24" dev eth0
  ip -n "$name-$i" link set lo up
  ip -n "$name-$i" link set eth0 up
done

# In place of ssh: remote -l USER HOST COMMAND. A host has temporary files of its own, so that the
# job has to be sent.
mkdir "$place/tmp"
cat > "$place/remote" << END
#!/bin/sh
[ "\$1" = -l ] && shift 2
exec ip netns exec "$name-\${1##*.}" sh -c "mount -t tmpfs none $place/tmp; \$2"
END
chmod +x "$place/remote"
export TMPDIR="$place/tmp"
export CLUSTER_REMOTE="$place/remote" CLUSTER_NET="$net" CLUSTER_NAME="$name"
timeout 500 Rscript --vanilla .ci/cluster.R
