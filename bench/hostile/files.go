//go:build linux

package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

// pcapHead begins a pcap file of Ethernet packets.
func pcapHead() []byte {
	head := binary.LittleEndian.AppendUint32(nil, 0xa1b2c3d4)
	head = binary.LittleEndian.AppendUint16(head, 2)
	head = binary.LittleEndian.AppendUint16(head, 4)
	return append(append(head, make([]byte, 8)...), 0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0)
}

// words are little-endian numbers of 32 bits.
func words(all ...uint32) (b []byte) {
	for _, w := range all {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

// pcapngHead begins a pcapng file with one Ethernet interface.
func pcapngHead() []byte {
	return slices.Concat(words(0x0a0d0d0a, 28, 0x1a2b3c4d, 1, 0xffffffff, 0xffffffff, 28), words(1, 20, 1, 0, 20))
}

// bomb returns the given number of MB of zeros, compressed.
func bomb(w io.WriteCloser, head []byte, megabytes int) error {
	w.Write(head)
	for nothing := make([]byte, 1<<20); megabytes > 0; megabytes-- {
		if _, err := w.Write(nothing); err != nil {
			return err
		}
	}
	return w.Close()
}

func files() (all []farEnd) {
	quoted := jsonText(attack)
	add := func(kind, name string, write func(io.Writer) error) {
		all = append(all, farEnd{name: kind + "-" + name, kind: kind, file: write})
	}
	text := func(kind, name string, parts ...[]byte) {
		add(kind, name, func(w io.Writer) error { _, err := w.Write(slices.Concat(parts...)); return err })
	}
	object := func(kind, name, content string) { text(kind, name, []byte(content)) }

	text("capture", "garbage", []byte(attack))
	text("capture", "pcap-empty", pcapHead())
	text("capture", "pcap-packet-of-4-GB", pcapHead(), words(1, 0, 0xffffffff, 0xffffffff))
	text("capture", "pcap-packet-of-16-MB", pcapHead(), words(1, 0, 16<<20, 16<<20), make([]byte, 100))
	text("capture", "pcap-time-backwards", pcapHead(), bytes.Repeat(slices.Concat(words(0xffffffff, 0xffffffff, 14, 14),
		make([]byte, 14), words(0, 0, 0, 0)), 5000))
	text("capture", "pcapng-block-of-0", pcapngHead(), words(6, 0, 0, 0))
	text("capture", "pcapng-block-of-4-GB", pcapngHead(), words(6, 0xfffffffc, 0, 0, 0, 64, 64))
	text("capture", "pcapng-options", pcapngHead(), words(6, 0x10000, 0, 0, 0, 0, 0),
		bytes.Repeat([]byte{2, 0, 0xff, 0xff}, 0x4000-8), words(0x10000))
	text("capture", "pcapng-interfaces", pcapngHead(), bytes.Repeat(words(1, 20, 1, 0, 20), 50_000))
	add("capture", "gzip-bomb", func(w io.Writer) error { return bomb(gzip.NewWriter(w), pcapHead(), 128) })
	add("capture", "zstd-bomb", func(w io.Writer) error {
		z, err := zstd.NewWriter(w)
		if err != nil {
			return err
		}
		return bomb(z, pcapngHead(), 128)
	})
	deep := strings.Repeat(`{"a":[`, 500_000)
	plan := func(fields string) string {
		return `{"schema":"fullpipe/plan/v1","target":"linux","settings":[` + fields + `]}`
	}
	for _, kind := range []string{"plan", "journal", "record", "snapshot"} {
		object(kind, "deep", deep)
		object(kind, "null", "null")
		object(kind, "list", "[]")
		object(kind, "cut", `{"schema":"fullpipe/`+kind+`/v1","settings":[{"name":"net`)
	}
	object("plan", "escapes", plan(`{"name":`+quoted+`,"where":`+quoted+`,"value":`+quoted+`,"type":`+quoted+`,"source":`+
		quoted+`}`))
	object("plan", "forwards", plan(`{"name":"net.ipv4.ip_forward","where":"sysctl","value":"1"}`))
	object("plan", "runs-a-program", plan(`{"name":"kernel.core_pattern","where":"sysctl","value":"|/bin/sh"}`))
	object("plan", "climbs", plan(`{"name":"net.ipv4/../../kernel/core_pattern","where":"sysctl","value":"|/bin/sh"}`))
	object("plan", "second-line",
		plan(`{"name":"net.ipv4.tcp_rmem","where":"sysctl","value":"4096 131072 6291456\nkernel.core_pattern=|/bin/sh"}`))
	object("plan", "all-memory",
		plan(`{"name":"net.ipv4.tcp_rmem","where":"sysctl","value":"4096 131072 9223372036854775807"}`))
	object("plan", "many", plan(strings.Repeat(`{},`, 100_000)+`{}`))
	journal := func(fields string) string {
		return `{"schema":"fullpipe/journal/v1","scope":"host","records":[{"kind":"sysctl","made":true,` +
			`"at":"2026-01-01T00:00:00Z",` + fields + `}]}`
	}
	object("journal", "escapes", journal(`"name":`+quoted+`,"old":`+quoted+`,"was":`+quoted+`,"new":`+quoted))
	object("journal", "runs-a-program", journal(`"name":"kernel.core_pattern","old":"|/bin/sh","was":"core","new":"core"`))
	object("journal", "writes-a-file", strings.Replace(journal(`"name":"/etc/passwd","old":"root::0:0","was":"","new":""`),
		"sysctl", "file", 1))
	// Values that hold in a new network namespace, so that undo takes them for its own.
	own := func(kind, name, old, now string) string {
		return strings.Replace(journal(fmt.Sprintf(`"name":%q,"old":%s,"was":%s,"new":%q`, name, old, old, now)), "sysctl",
			kind, 1)
	}
	object("journal", "second-line", own("sysctl", "net.ipv4.tcp_congestion_control",
		`"cubic\nkernel.core_pattern=|/bin/sh"`, "cubic"))
	object("journal", "climbs", own("sysctl", "net.ipv4.conf.../../../kernel/core_pattern", `"|/bin/sh"`, "core"))
	object("journal", "huge-value", own("sysctl", "net.ipv4.tcp_retries2", `"`+strings.Repeat("9", 1<<20)+`"`, "15"))
	object("journal", "route", own("route", "default initcwnd; reboot", `"1000000"`, ""))
	object("journal", "registry", own("registry", `HKEY_LOCAL_MACHINE\System`, `null`, ""))
	object("journal", "command", own("nettcp", "Internet/x;reboot", `"1;reboot"`, ""))
	object("journal", "no-kind", own("", "net.ipv4.ip_forward", `"1"`, "0"))
	object("journal", "many", `{"schema":"fullpipe/journal/v1","records":[`+strings.Repeat(
		`{"kind":"sysctl","name":"net.ipv4.ip_forward","old":"1","new":"0"},`, 50_000)+`{}]}`)
	object("journal", "of-another", strings.Replace(journal(`"name":"net.ipv4.tcp_rmem","old":"","was":"","new":""`),
		`"host"`, quoted, 1))
	object("journal", "long", journal(`"name":"`+strings.Repeat("x", 9<<20)+`"`))
	object("record", "unknown", `{"schema":`+quoted+`}`)
	object("record", "empty", `{"schema":"fullpipe/measure/v1"}`)
	object("record", "many", `{"schema":"fullpipe/diagnose/v1","connections":[{"directions":[`+strings.Repeat("{},",
		1_000_000)+`{}]}]}`)
	object("record", "absurd", `{"schema":"fullpipe/measure/v1","peer":`+quoted+`,"directions":[{"direction":`+quoted+
		`,"goodput_bps":1e308,"bytes":-1,"duration_s":-1e300}]}`)
	object("record", "failed", `{"schema":"fullpipe/measure/v1","error":{"message":`+quoted+`,"try":`+quoted+`,"code":`+
		quoted+`}}`)
	// Input of history import, recheck and the pages: results with names and times that their author did not choose.
	measured := func(fields string) string {
		return `{"schema":"fullpipe/measure/v1","started_at":"2026-03-01T12:00:00Z","peer":"b","directions":[],` +
			fields + `}`
	}
	object("record", "foreign-names", measured(`"id":`+quoted+`,"test_id":`+quoted+`,"host_id":`+quoted+`,"path_key":`+
		quoted+`,"labels":{`+quoted+`:`+quoted+`}`))
	object("record", "times", strings.Replace(measured(`"took_s":1e300`), "2026-03-01T12:00:00Z", "9999-12-31T23:59:59Z",
		1))
	object("record", "same-ids", strings.Repeat(measured(`"id":"019aa000-0000-7000-8000-000000000001",`+
		`"outcome":"done","origin":"manual","path_key":"`+record.SeriesID{Far: "b"}.Key()+`"`)+"\n", 1000))
	object("record", "samples-deep", measured(`"samples":`+strings.Repeat("[", 200_000)))
	object("record", "iperf3", `{"start":{"timestamp":{"timesecs":1e300},"connecting_to":{"host":`+quoted+
		`},"test_start":{"protocol":`+quoted+`}},"end":{"sum_sent":{"bytes":-1,"bits_per_second":1e308}}}`)
	object("record", "watched", `{"schema":"fullpipe/watch/v1","started_at":"2026-03-01T12:00:00Z","length_s":1e300,`+
		`"connections":[null,{"local":`+quoted+`,"remote":`+quoted+`,"program":`+quoted+`,"directions":[null,{"shares":{`+
		quoted+`:1e300}}]}],"path_changes":[{"metric":`+quoted+`,"network":`+quoted+`}]}`)
	object("snapshot", "escapes", `{"schema":"fullpipe/snapshot/v1","os":"linux","version":`+quoted+`,"host":`+quoted+
		`,"values":{`+quoted+`:`+quoted+
		`,"net.ipv4.tcp_rmem":`+quoted+`,"net.ipv4.tcp_congestion_control":`+quoted+`}}`)
	object("snapshot", "huge-values", `{"schema":"fullpipe/snapshot/v1","os":"linux","values":{"net.ipv4.tcp_rmem":"`+
		strings.Repeat("9", 1<<20)+`"}}`)
	object("ping", "escapes", "PING "+attack+"\n64 bytes from "+attack+": icmp_seq=1 ttl=1 time=1e300 ms\nrtt "+
		"min/avg/max/mdev = -1/nan/inf/1 ms\n")
	object("ping", "line", strings.Repeat("time=1 ", 1<<20))
	return all
}

// markup replaces every text of a stored document except its kind and its times.
func markup(in io.Reader, out io.Writer) error {
	var doc any
	if err := json.NewDecoder(in).Decode(&doc); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(marked(doc, ""))
}

func marked(v any, key string) any {
	switch v := v.(type) {
	case map[string]any:
		for k, one := range v {
			v[k] = marked(one, k)
		}
	case []any:
		for i, one := range v {
			v[i] = marked(one, key)
		}
	case string:
		_, err := time.Parse(time.RFC3339, v)
		if timed := err == nil; !timed && key != "schema" && key != "protocol" {
			return `"'></script></style></svg><script>hurt()</script><img src=x onerror=hurt()><svg onload=hurt()>` +
				"\u202e" +
				`javascript:hurt()`
		}
	}
	return v
}
