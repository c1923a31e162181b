#!/bin/sh
# Writes what fullpipe audits about this host, as lines on standard output. It changes
# nothing and needs no privileges:
#     sh collect.sh > host.snapshot;  fullpipe audit host.snapshot
# Linux, macOS, FreeBSD. Nothing leaves this machine but the file that you send.
LC_ALL=C; export LC_ALL
PATH=$PATH:/sbin:/usr/sbin

echo "fullpipe-snapshot 1"
echo "taken $(date -u +%Y-%m-%dT%H:%M:%SZ)"
echo "host $(uname -n)"
echo "version $(uname -r)"
case $(uname -s) in
Linux) system=linux ;;
Darwin) system=macos; echo "version $(sw_vers -productVersion 2>/dev/null)" ;;
FreeBSD) system=freebsd ;;
*) system=$(uname -s | tr '[:upper:]' '[:lower:]') ;;
esac
echo "system $system"

if [ "$system" != linux ]; then
	for name in net.inet.tcp.sendspace net.inet.tcp.recvspace net.inet.tcp.autorcvbufmax net.inet.tcp.autosndbufmax \
		net.inet.tcp.win_scale_factor net.inet.tcp.doautorcvbuf net.inet.tcp.doautosndbuf kern.ipc.maxsockbuf \
		net.inet.tcp.sendbuf_max net.inet.tcp.recvbuf_max net.inet.tcp.sendbuf_auto net.inet.tcp.recvbuf_auto \
		net.inet.tcp.rfc1323 net.inet.tcp.sack net.inet.tcp.cc.algorithm net.inet.tcp.functions_default; do
		value=$(sysctl -n "$name" 2>/dev/null) && [ -n "$value" ] && echo "value $name $value"
	done
	memory=$(sysctl -n hw.memsize 2>/dev/null || sysctl -n hw.physmem 2>/dev/null)
	[ -n "$memory" ] && echo "memory $memory"
	ifconfig -a 2>/dev/null | sed -n 's/^\([a-z0-9.]*\): .*[<,]UP[,>].* mtu \([0-9]*\).*/interface \1 mtu \2/p'
	exit 0
fi

for name in net/core net/ipv4/tcp_ net/ipv4/ip_no_pmtu_disc; do
	for file in /proc/sys/"$name"/* /proc/sys/"$name"*; do
		[ -f "$file" ] && [ -r "$file" ] || continue
		case $file in *fastopen_key|*rss_key) continue ;; esac
		dotted=$(echo "${file#/proc/sys/}" | tr / .)
		# shellcheck disable=SC2046 # words are joined by single blanks
		echo "value $dotted" $(cat "$file" 2>/dev/null)
	done
done | sort -u
awk '$1 == "MemTotal:" { printf "memory %.0f\n", $2 * 1024 }' /proc/meminfo
echo "page $(getconf PAGESIZE 2>/dev/null || echo 4096)"
[ -e /proc/sys/net/core/netdev_max_backlog ] || echo "namespace yes"
if [ -e /.dockerenv ] || [ -e /run/.containerenv ]; then echo "container yes"; fi
for limit in /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes; do
	value=$(cat $limit 2>/dev/null) && [ "$value" != max ] && [ ${#value} -lt 16 ] && echo "limit $value"
done
for file in /usr/lib/sysctl.d/*.conf /run/sysctl.d/*.conf /etc/sysctl.d/*.conf /etc/sysctl.conf; do
	[ -r "$file" ] && sed -n "s|^[ 	]*-\{0,1\}\(net[./][^= 	]*\)[ 	]*=[ 	]*\(.*\)|configured $file \1 \2|p" "$file"
done
awk 'NR == 1 && $1 == "TcpExt:" { split($0, name); next }
	NR == 2 && $1 == "TcpExt:" { for (i = 2; i <= NF; i++) if ($i > 0) print "counter " name[i], $i }' /proc/net/netstat 2>/dev/null
awk '$1 == "Udp:" && !named { named = split($0, name); next }
	$1 == "Udp:" { for (i = 2; i <= NF; i++) if (name[i] ~ /bufErrors$/ && $i > 0) print "counter Udp" name[i], $i }' /proc/net/snmp 2>/dev/null

default=$(awk '$2 == "00000000" { print $1; exit }' /proc/net/route 2>/dev/null)
for device in /sys/class/net/*; do
	name=${device##*/}
	[ "$(cat "$device/operstate" 2>/dev/null)" = up ] || [ "$name" = "$default" ] || continue
	line="interface $name mtu $(cat "$device/mtu")"
	speed=$(cat "$device/speed" 2>/dev/null) && line="$line speed_mbit $speed"
	duplex=$(cat "$device/duplex" 2>/dev/null) && [ "$duplex" != unknown ] && line="$line duplex $duplex"
	line="$line txqueuelen $(cat "$device/tx_queue_len")"
	[ "$name" = "$default" ] && line="$line default yes"
	for counter in rx_packets tx_packets rx_errors tx_errors rx_dropped tx_dropped rx_missed_errors rx_fifo_errors collisions; do
		line="$line $counter $(cat "$device/statistics/$counter" 2>/dev/null || echo -)"
	done
	qdisc=$(tc qdisc show dev "$name" root 2>/dev/null | awk 'NR == 1 { print $2 }')
	[ -n "$qdisc" ] && line="$line qdisc $qdisc"
	for pair in tso:tcp-segmentation-offload gso:generic-segmentation-offload gro:generic-receive-offload; do
		state=$(ethtool -k "$name" 2>/dev/null | sed -n "s/^${pair#*:}: \(on\|off\).*/\1/p")
		[ "$state" = on ] && line="$line ${pair%%:*} 1"
		[ "$state" = off ] && line="$line ${pair%%:*} 0"
	done
	echo "$line"
done
{ ip route show; ip -6 route show; } 2>/dev/null | sed 's/^/route /'
exit 0
