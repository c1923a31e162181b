package plan

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestPing(t *testing.T) {
	for name, c := range map[string]struct {
		text        string
		rtt, jitter time.Duration
		lost        float64
	}{
		"Windows": {"\r\nPinging 10.9.0.1 with 32 bytes of data:\r\nReply from 10.9.0.1: bytes=32 time=41ms " +
			"TTL=57\r\nReply from 10.9.0.1: bytes=32 time=40ms TTL=57\r\n" +
			"Request timed out.\r\nReply from 10.9.0.1: bytes=32 time=58ms TTL=57\r\n\r\nPing statistics for 10.9.0.1:\r\n    " +
			"Packets: Sent = 4, Received = 3, Lost = 1 (25% loss),\r\n" +
			"Approximate round trip times in milli-seconds:\r\n    Minimum = 40ms, Maximum = 58ms, Average = 46ms\r\n", 40 * ms,
			17 * ms, 0.25},
		"Windows in German": {"Antwort von 10.9.0.1: Bytes=32 Zeit=12ms TTL=57\r\nAntwort von 10.9.0.1: Bytes=32 Zeit=15ms " +
			"TTL=57\r\n" +
			"    Minimum = 12ms, Maximum = 15ms, Mittelwert = 13ms\r\n", 12 * ms, 2 * ms, 0},
		"a first packet that waited for ARP": {"Reply from 192.0.2.7: bytes=32 time=213ms TTL=60\r\n" +
			strings.Repeat("Reply from 192.0.2.7: bytes=32 time=34ms TTL=60\r\n", 3) +
			"Reply from 192.0.2.7: bytes=32 time=35ms TTL=60\r\n", 34 * ms, 0, 0},
		"Windows 2000 on a LAN": {strings.Repeat("Reply from 192.0.2.8: bytes=32 time<10ms TTL=128\r\n", 3) +
			"Reply from 192.0.2.8: bytes=32 time=10ms TTL=128\r\n", 10 * ms, 0, 0},
		"Windows 2000's clock of 10 ms": {"Reply: time=130ms TTL=9\r\nReply: time=120ms TTL=9\r\n" +
			"Reply: time=130ms TTL=9\r\nReply: time=150ms TTL=9\r\n", 120 * ms, 20 * ms, 0},
		"Windows 11 on a LAN": {strings.Repeat("Reply from 192.0.2.9: bytes=32 time<1ms TTL=128\r\n", 4), ms, 0, 0},
		"below the step and above": {"Reply: time<1ms TTL=9\r\nReply: time<1ms TTL=9\r\nReply: time=6ms TTL=9\r\n", ms,
			4 * ms, 0},
		"Linux": {"PING a (192.0.2.1) 56(84) bytes of data.\n64 bytes from 192.0.2.1: icmp_seq=1 ttl=57 time=85.2 ms\n64 " +
			"bytes from 192.0.2.1: icmp_seq=2 ttl=57 time=84.9 ms\n\n" +
			"--- a ping statistics ---\n2 packets transmitted, 2 received, 0% packet loss, time 1001ms\nrtt min/avg/max/mdev " +
			"= 84.900/85.050/85.200/0.150 ms\n", 84900 * time.Microsecond, 200 * time.Microsecond, 0},
		"Windows in Russian": {strings.Repeat("Ответ от 192.0.2.7: число байт=32 время=31мс TTL=54\r\n", 3) +
			"    Минимальное = 31мсек, Максимальное = 33 мсек, Среднее = 31 мсек\r\n", 31 * ms, 0, 0},
		"Windows in Russian, its code page": {
			"\x8e\xe2\xa2\xa5\xe2 \xae\xe2 192.0.2.7: \xe7\xa8\xe1\xab\xae \xa1\xa0\xa9\xe2=32 " +
				"\xa2\xe0\xa5\xac\xef=47\xac\xe1 TTL=54\r\n", 47 * ms, 0, 0},
		"Linux in Chinese": {"64 字节，来自 192.0.2.7: icmp_seq=1 ttl=54 时间=12.3 毫秒\n64 字节，来自 192.0.2.7: icmp_seq=2 " +
			"ttl=54 时间=12.9 毫秒\n", 12300 * time.Microsecond, 500 * time.Microsecond, 0},
		"Windows 2000 in German": {"Antwort von 192.0.2.7: Bytes=32 Zeit<10ms TTL=128\r\n" +
			"Antwort von 192.0.2.7: Bytes=32 Zeit<10ms TTL=128\r\n\r\nPing-Statistik für 192.0.2.7:\r\n" +
			"    Minimum = 0ms, Maximum =  0ms, Mittelwert =  0ms\r\n", 10 * ms, 0, 0},
		"Windows 2000's summary alone": {"Approximate round trip times in milli-seconds:\r\n" +
			"    Minimum = 30ms, Maximum =  51ms, Average =  33ms\r\n", 30 * ms, 21 * ms, 0},
		"a second reply to one probe": {"64 bytes from 192.0.2.7: icmp_seq=1 ttl=54 time=20.4 ms\n64 bytes from 192.0.2.7: " +
			"icmp_seq=1 ttl=54 time=121 ms (DUP!)\n64 bytes from 192.0.2.7: icmp_seq=2 ttl=54 time=20.9 ms\n",
			20400 * time.Microsecond, 400 * time.Microsecond, 0},
		"Test-NetConnection": {"RemoteAddress          : 192.0.2.7\nPingSucceeded          : True\n" +
			"PingReplyDetails (RTT) : 24 ms\n", 24 * ms, 0, 0},
		"HP-UX": {"64 bytes from 192.0.2.7: icmp_seq=0. time=45. ms\n64 bytes from 192.0.2.7: icmp_seq=1. time=48. ms\n",
			45 * ms, 2 * ms, 0},
		"Test-Connection of Windows PowerShell": {"HOST          192.0.2.7       192.0.2.7                              " +
			"32       45\nHOST          192.0.2.7                        2001:db8::7                32       49\n",
			45 * ms, 3 * ms, 0},
		"Windows in French": {"Réponse de 192.0.2.7 : octets=32 temps=45 ms TTL=54\r\n" +
			"    Paquets : envoyés = 4, reçus = 1, perdus = 3 (perte 75%),\r\n", 45 * ms, 0, 0.75},
		"Windows in Turkish": {"192.0.2.7 cevabı: bayt=32 süre=45ms TTL=54\r\n    (%25 kayıp),\r\n", 45 * ms, 0, 0.25},
		"Windows in Chinese, counts of packets": {"来自 192.0.2.7 的回复: 字节=32 时间=45ms TTL=54\r\n" +
			"    数据包: 已发送 = 4，已接收 = 3，丢失 = 1 (25% 丢失)，\r\n", 45 * ms, 0, 0.25},
		"Linux in German": {"64 Bytes von 192.0.2.7: icmp_seq=1 ttl=54 Zeit=12,3 ms\n--- 192.0.2.7 Ping-Statistiken ---\n" +
			"4 Pakete übertragen, 1 empfangen, 75% Paketverlust, Zeit 3005ms\n", 12300 * time.Microsecond, 0, 0.75},
		"fping -C": {"192.0.2.7 : 46.2 40.9 - 40.8 44.0\n", 40800 * time.Microsecond, 3100 * time.Microsecond, 0.2},
		"fping -c": {"192.0.2.7 : [0], 84 bytes, 41.2 ms (41.2 avg, 0% loss)\n192.0.2.7 : [1], 84 bytes, 40.2 ms (40.7 " +
			"avg, 0% loss)\n\n192.0.2.7 : xmt/rcv/%loss = 2/2/0%, min/avg/max = 40.2/40.7/41.2\n", 40200 * time.Microsecond,
			900 * time.Microsecond, 0},
		"fping's summary alone": {"192.0.2.7 : xmt/rcv/%loss = 20/20/0%, min/avg/max = 8.12/9.03/15.1\n",
			8120 * time.Microsecond, 6980 * time.Microsecond, 0},
		"Test-Connection": {"   1 HOST             192.0.2.7                       24         32 Success\n" +
			"   2 HOST             192.0.2.7                       29         32 Success\n", 24 * ms, 4 * ms, 0},
		"macOS, its summary alone": {"10 packets transmitted, 9 packets received, 10.0% packet loss\nround-trip " +
			"min/avg/max/stddev = 11.5/12.0/14.5/0.6 ms\n",
			11500 * time.Microsecond, 3 * ms, 0.1},
	} {
		p, err := ParsePing(c.text)
		if err != nil || p.RTT != c.rtt || (p.Jitter-c.jitter).Abs() > time.Microsecond ||
			p.RTTAtMost != strings.Contains(c.text, "<") || math.Abs(p.Lost-c.lost) > 1e-9 {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	for _, text := range []string{"", "ping: unknown host", "Request timed out.", "time=0 ms",
		"  1    <1 ms    <1 ms    <1 ms  192.0.2.1\n  2    40 ms    41 ms    40 ms  192.0.2.7\n"} {
		if p, err := ParsePing(text); err == nil {
			t.Errorf("%q: %+v", text, p)
		}
	}
}

func TestResults(t *testing.T) {
	for name, c := range map[string]struct {
		text     string
		up, down float64 // Mbit/s
		rtt      time.Duration
	}{
		"iperf 2": {"[  3] local 10.0.0.2 port 5001 connected with 10.0.0.1 port 40000\n[ ID] Interval       Transfer     " +
			"Bandwidth\n[  3]  0.0- 1.0 sec  2.00 MBytes  16.8 Mbits/sec\n" +
			"[  3]  0.0-10.0 sec  18.8 MBytes  15.7 Mbits/sec\n", 15.7, 0, 0},
		"iperf3": {"[  5]   0.00-10.00  sec   112 MBytes  94.4 Mbits/sec    0             sender\n[  5]   0.00-10.04  sec  " +
			" 111 MBytes  92.9 Mbits/sec                  receiver\n\niperf Done.\n", 92.9, 0, 0},
		"iperf3, several, reversed": {"Reverse mode, remote host x is sending\n[  5]   0.00-10.00  sec  60 MBytes  50.0 " +
			"Mbits/sec  receiver\n[  7]   0.00-10.00  sec  60 MBytes  40.0 Mbits/sec  receiver\n" +
			"[SUM]   0.00-10.00  sec  120 MBytes  91.0 Mbits/sec   sender\n[SUM]   0.00-10.00  sec  120 MBytes  90.0 " +
			"Mbits/sec  receiver\n", 0, 90, 0},
		"iperf3's JSON": {`{"start":{"test_start":{"reverse":0}},"end":{"streams":[{"sender":{"min_rtt":40250,"mean_rtt":41000}}],"sum_received":{"bits_per_second":5.2e6}}}`, 5.2, 0, 40250 * time.Microsecond},
		"speedtest-cli": {"Hosted by X (Y) [12.32 km]: 20.5 ms\nTesting download speed....\nDownload: 93.11 " +
			"Mbit/s\nTesting upload speed....\nUpload: 9.87 Mbit/s\n", 9.87, 93.11, 20500 * time.Microsecond},
		"Ookla": {"    Idle Latency:    12.25 ms   (jitter: 0.52ms, low: 11.9ms, high: 13.0ms)\n    Download:   940.12 " +
			"Mbps (data used: 1.1 GB)\n      Upload:    41.50 Mbps (data used: 50 MB)\n",
			41.5, 940.12, 12250 * time.Microsecond},
		"macOS networkQuality": {"==== SUMMARY ====\nUplink capacity: 43.210 Mbps\nDownlink capacity: 234.560 Mbps\n" +
			"Responsiveness: Medium (233 RPM)\nIdle Latency: 23.500 milliseconds\n", 43.21, 234.56,
			23500 * time.Microsecond},
		"Ookla's JSON":         {`{"type":"result","ping":{"jitter":0.5,"latency":9.5},"download":{"bandwidth":12500000},"upload":{"bandwidth":1250000}}`, 10, 100, 9500 * time.Microsecond},
		"speedtest-cli's JSON": {`{"download": 93e6, "upload": 9e6, "ping": 21.5}`, 9, 93, 21500 * time.Microsecond},
		"mtr": {"HOST: a                          Loss%   Snt   Last   Avg  Best  Wrst StDev\n  1.|-- gateway              " +
			"      0.0%    10    0.5   0.6   0.4   1.0   0.2\n" +
			"  2.|-- far.example                0.0%    10   80.1  81.0  79.5  90.0   1.0\n", 0, 0, 79500 * time.Microsecond},
	} {
		p, err := ParseResult(c.text)
		if err != nil || math.Abs(p.UpBps/1e6-c.up) > 1e-9 || math.Abs(p.DownBps/1e6-c.down) > 1e-9 ||
			(p.RTT-c.rtt).Abs() > time.Microsecond {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	for _, text := range []string{"", "{}", "hello", `{"ping": "x"}`, "[ ID] Interval Transfer Bandwidth"} {
		if p, err := ParseResult(text); err == nil {
			t.Errorf("%q: %+v", text, p)
		}
	}
}

func FuzzPasted(f *testing.F) {
	for _, text := range []string{"time=1ms", `{"ping":{"latency":1}}`, "  2.|-- b 0.0% 10 1 1 1 1 1",
		"[SUM] 1 Mbits/sec receiver", "rtt = 1/2/3/4 ms", "(300% loss)",
		strings.Repeat("9", 400) + " packets transmitted, " + strings.Repeat("9", 400) + " received\ntime=1ms"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := ParsePing(text); err == nil && (p.RTT <= 0 || p.Jitter < 0 || !(p.Lost >= 0 && p.Lost <= 1)) {
			t.Errorf("%q: %+v", text, p)
		}
		if p, err := ParseResult(text); err == nil && (p.RTT < 0 || p.Jitter < 0 || !(p.UpBps >= 0 && p.DownBps >= 0)) {
			t.Errorf("%q: %+v", text, p)
		}
	})
}

// A line longer than any program's says nothing, and takes no time.
func TestPastedLongLines(t *testing.T) {
	long := strings.Repeat("time=1 ms 5 Mbits/sec ", 1<<18)
	if p, err := ParsePing(long); err == nil {
		t.Errorf("%+v", p)
	}
	if p, err := ParseResult(long); err == nil {
		t.Errorf("%+v", p)
	}
	if p, err := ParsePing(long + "\n64 bytes from 192.0.2.1: icmp_seq=1 ttl=57 time=85.2 ms\n"); err != nil ||
		p.RTT != 85200*time.Microsecond {
		t.Errorf("%+v, %v", p, err)
	}
}
