package main

import (
	"strconv"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/model"
)

// line is a path of the shorter texts: its name in the lab and the inputs of the arithmetic.
type line struct {
	lab     string
	rate    float64 // bit/s
	rtt     time.Duration
	headers int // bytes around a segment, as the rate counts them
	time    time.Duration
}

// window is a transfer over a line with one receive window. With 0 the stack chooses it, and the arithmetic uses the
// stack's own window.
func (l line) window(row, column string, window, own int, publishedBps float64) *cell {
	c := &cell{row: row, column: column, lab: l.lab, args: []string{"--time", l.time.String()}, published: publishedBps,
		rtt: l.rtt}
	if window > 0 {
		c.args = append(c.args, "--receive-buffer", strconv.Itoa(window))
		own = window
	}
	c.expected = min(model.Goodput(l.rate, mss, l.headers), model.Rate(own, l.rtt))
	return c
}

// windows95 is the article's advice on DefaultRcvWindow.
func windows95() *experiment {
	lan := line{"lan-10m", 10e6, time.Millisecond, model.IPHeaders + framing, 3 * time.Second}
	isdn := line{"isdn-64k", 64e3, 30 * time.Millisecond, model.IPHeaders, 20 * time.Second}
	modem := line{"modem-28.8k", 28.8e3, 130 * time.Millisecond, model.IPHeaders, 30 * time.Second}
	slow := line{"modem-14.4k", 14.4e3, 180 * time.Millisecond, model.IPHeaders, 30 * time.Second}
	e := &experiment{title: "Windows 95: one value for every line", rows: "window",
		about: "Article on Windows 95 (1997), receive window by DefaultRcvWindow, the same file at several windows: a " +
			"10 Mbit/s Ethernet (about 700 kB/s at best, 23 % less at 8192, abysmal below two segments), ISDN, two modems.",
		judge: judgeWindows95}
	const best = 700e3 * 8
	for _, at := range []struct {
		window    int
		published float64
	}{{1460, 0}, {2144, 0}, {2944, best}, {4096, best}, {8192, best * 0.77}, {24576, 0}} {
		e.cells = append(e.cells, lan.window(strconv.Itoa(at.window), "LAN 10M", at.window, 0, at.published))
	}
	for _, at := range []struct {
		line      line
		window    int
		published float64
	}{{isdn, 8192, 0}, {isdn, 24576, 61.7e3}, {modem, 8192, 19.2e3}, {modem, 24576, 22.4e3}, {slow, 2944, 8e3},
		{slow, 8192, 8e3}, {slow, 24576, 8e3}} {
		name := map[string]string{"isdn-64k": "ISDN 64k", "modem-28.8k": "modem 28.8k",
			"modem-14.4k": "modem 14.4k"}[at.line.lab]
		e.cells = append(e.cells, at.line.window(strconv.Itoa(at.window), name, at.window, 0, at.published))
	}
	return e
}

// windows2000 is the note's distant servers: 17520 bytes at 1.8 Mbit/s are 78 ms.
func windows2000() *experiment {
	l := line{"rate=7.4mbit,rtt=78ms,far.stack=windows-2000", 7.4e6, 78 * time.Millisecond, model.IPHeaders,
		6 * time.Second}
	return &experiment{title: "Windows 2000: distant servers", rows: "window",
		about: "Note on Windows 2000 (2001): 1.8 Mbit/s with the default of 17520 bytes, 7 with 131400 (90 × 1460) and " +
			"Tcp1323Opts 3. Neither rate nor round trip is given: 17520 bytes at 1.8 Mbit/s are 78 ms, and the 7 Mbit/s " +
			"are taken for the line's.",
		judge: judgeFactor,
		cells: []*cell{l.window("17520 (default)", "rate", 0, 17520, 1.8e6), l.window("131400", "rate", 131400, 0, 7e6)}}
}

// laboratory is the guide's iperf between laboratories.
func laboratory() *experiment {
	l := line{"ds3-30ms", 45e6, 30 * time.Millisecond, model.IPHeaders, 4 * time.Second}
	return &experiment{title: "A laboratory's guide: iperf with windows", rows: "window",
		about: "Guide of a national laboratory (2000): 45 Mbit/s × 30 ms are 165 KB; iperf had 5.2 Mbit/s with 60 KB and " +
			"15.7 with 130 KB. The advice: ±10 % around the bandwidth-delay product, follow the better one.",
		judge: judgeFactor,
		cells: []*cell{l.window("60 KB", "rate", 60_000, 0, 5.2e6), l.window("130 KB", "rate", 130_000, 0, 15.7e6),
			l.window("150 KB (−10 %)", "rate", 150_000, 0, 0), l.window("165 KB (BDP)", "rate", 165_000, 0, 0),
			l.window("182 KB (+10 %)", "rate", 182_000, 0, 0)}}
}

// server2012 is the case of the window stuck at 64512.
func server2012() *experiment {
	l := line{"wan-80ms", 100e6, 80 * time.Millisecond, model.IPHeaders, 6 * time.Second}
	return &experiment{title: "Server 2012: a window that does not grow", rows: "receiver",
		about: "Case of a Windows Server 2012 at 100 Mbit/s and 80 ms: 5 Mbit/s with the window stuck at 64512, 87 with " +
			"SO_RCVBUF of 1 MB, 92 with a custom profile (1.5 MB asked; its autotuning level cannot exceed 1,048,560 bytes).",
		judge: judgeFactor,
		cells: []*cell{l.window("stuck at 64512", "rate", 0, 64512, 5e6), l.window("SO_RCVBUF 1 MB", "rate", 1_000_000, 0,
			87e6),
			l.window("1.5 MB", "rate", 1_500_000, 0, 92e6)}}
}

// gatewayTables is how many of all the experiments are the note's tables of write sizes.
const gatewayTables = 3

// all are the experiments in the order of the document.
func all() ([]*experiment, error) {
	columns, rows, err := table("mguard-sndbuf-sweep-rtt2.5ms.csv")
	if err != nil {
		return nil, err
	}
	var es []*experiment
	for _, t := range []struct {
		file          string
		path          path
		quota, window int
	}{
		{"mguard-rtt2.5ms.csv", shortPath(rows), 32_000, 0},
		{"mguard-rtt12ms.csv", middlePath, 150_000, 151_840},
		{"mguard-rtt40ms.csv", longPath, 490_000, 502_240},
	} {
		e, err := gatewayTable(t.file, t.path, t.quota, t.window)
		if err != nil {
			return nil, err
		}
		es = append(es, e)
	}
	sweep, err := sendBufferSweep(columns, rows)
	if err != nil {
		return nil, err
	}
	return append(es, sweep, surface(), windows95(), windows2000(), laboratory(), server2012()), nil
}
