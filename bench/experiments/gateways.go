package main

import (
	"embed"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// The application note's figures, in Mbit/s; sizes in bytes.
//
//go:embed published/*.csv
var files embed.FS

// row is one line of a published table: a write size and a rate for each column.
type row struct {
	write int
	rates map[string]float64 // bit/s
}

func table(name string) (columns []string, rows []row, err error) {
	f, err := files.Open("published/" + name)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	columns = lines[0][1:]
	for _, line := range lines[1:] {
		r := row{rates: map[string]float64{}}
		if r.write, err = strconv.Atoi(line[0]); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		for i, column := range columns {
			mbit, err := strconv.ParseFloat(line[i+1], 64)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", name, err)
			}
			r.rates[column] = mbit * 1e6
		}
		rows = append(rows, r)
	}
	return columns, rows, nil
}

// setting is the change of the note from one column to the next.
type setting struct {
	vpn           bool
	quota, window int // bytes; 0: the systems' defaults
}

// Windows XP's window where a program asks for none, and the rates of the note's line and
// of its gateways.
const (
	defaultWindow = 65535
	lineRate      = 100e6
	gatewayRate   = 30e6
	framing       = 38 // bytes of Ethernet around a packet; the note's rates count them
	mss           = 1460
	tunnelMSS     = 1398
)

// ceiling is the largest payload rate of the line or the gateways.
func (s setting) ceiling() float64 {
	if s.vpn {
		const acknowledgement = 40 // bytes, for two segments
		return model.Goodput(gatewayRate, tunnelMSS, model.IPHeaders+acknowledgement/2)
	}
	return model.Goodput(lineRate, mss, model.IPHeaders+framing)
}

// expected is the least of line or gateways, window/RTT and outstanding/RTT by AFD's rule.
func (s setting) expected(write int, rtt time.Duration) float64 {
	quota, window := s.quota, s.window
	if quota == 0 {
		quota = model.DefaultAFDQuota
	}
	if window == 0 {
		window = defaultWindow
	}
	return afdGoodput(model.AFD{Quota: quota}, write, rtt, s.ceiling(), model.Rate(window, rtt))
}

// lab returns the note's path with the two Windows hosts at its ends.
func (s setting) lab(rtt time.Duration) string {
	text := fmt.Sprintf("rate=100mbit,rtt=%gms,overhead=%d,queue=200packets,near.stack=windows-2000,far.stack=windows-xp",
		float64(rtt)/float64(time.Millisecond), framing)
	if s.vpn {
		text += ",vpn=gateway,crypto=30mbit"
	}
	return text
}

func (s setting) args(write int) []string {
	args := []string{"--time", "2500ms", "--write-size", strconv.Itoa(write)}
	if s.quota > 0 {
		args = append(args, "--send-buffer", strconv.Itoa(s.quota))
	}
	if s.window > 0 {
		args = append(args, "--receive-buffer", strconv.Itoa(s.window))
	}
	return args
}

func (s setting) cell(row row, column string, published float64, path path) *cell {
	return &cell{row: kib(row.write), column: column, lab: s.lab(path.lab), args: s.args(row.write), rtt: path.implied,
		published: published, expected: s.expected(row.write, path.implied)}
}

// path is a round trip: as the note names it, as its cells imply it, and the RTT that the lab is configured with to
// create it.
type path struct{ named, implied, lab time.Duration }

var (
	middlePath = path{12 * time.Millisecond, 12 * time.Millisecond, 12 * time.Millisecond}
	longPath   = path{40 * time.Millisecond, 40 * time.Millisecond, 40 * time.Millisecond}
)

// ofTheHosts is what a segment's time on the line and four wake-ups of the hosts add to
// the lab's round trip. It counts where the round trip is not much longer.
const ofTheHosts = 500 * time.Microsecond

// shortPath is called 2.5 ms; the cells of its send-buffer sweep imply less (1.7): a
// delay simulator of then counted whole ticks.
func shortPath(sweep []row) path {
	var cells []afdCell
	for _, r := range sweep {
		for column, bps := range r.rates {
			quota, _ := strconv.Atoi(column)
			cells = append(cells, afdCell{quota, r.write, bps})
		}
	}
	implied := fitRTT(cells, setting{}.ceiling()).Round(50 * time.Microsecond)
	return path{2500 * time.Microsecond, implied, implied - ofTheHosts}
}

// fitted returns a note for the heading of an experiment whose round trip differs from its name, or "".
func (p path) fitted() string {
	if p.implied == p.named {
		return ""
	}
	return fmt.Sprintf(" (run at a fitted %s)", units.Time(p.lab))
}

// both returns a sentence with the rates that arithmetic gives for the two round trips, or "".
func (p path) both() string {
	if p.implied == p.named {
		return ""
	}
	rate := func(rtt time.Duration) string {
		return units.Rate(afdGoodput(model.AFD{Quota: model.DefaultAFDQuota}, 8192, rtt)).String()
	}
	return fmt.Sprintf(" The note says %s; its own cells imply %s, which the lab's hosts make of a link of %s. By "+
		"arithmetic "+
		"8192 bytes give %s at %s and %s at %s.", units.Time(p.named), units.Time(p.implied), units.Time(p.lab),
		rate(p.named), units.Time(p.named), rate(p.implied), units.Time(p.implied))
}

// twice is a column of unpublished cells: the tuned ones of the network with twice their buffers. They show how much
// of a full line is lost with buffers of exactly the path's capacity.
const twice = "network, twice the buffers"

// gatewayTable is one of the note's tables: write sizes against default and tuned
// settings, on the network and through the gateways.
func gatewayTable(file string, path path, quota, window int) (*experiment, error) {
	columns, rows, err := table(file)
	if err != nil {
		return nil, err
	}
	e := &experiment{title: fmt.Sprintf("Two Windows hosts at %s%s, by write size", units.Time(path.named), path.fitted()),
		rows: "write size",
		about: fmt.Sprintf("Application note on tuning for VPN gateways (about 2006): 100 Mbit/s Ethernet, a delay "+
			"simulator, "+
			"writes of five sizes; default settings (send buffer 8192 bytes) and tuned ones (%d bytes, window %s).",
			quota, windowText(window)) + path.both(),
		judge: judgeGateways}
	for _, row := range rows {
		for _, column := range columns {
			s := setting{vpn: strings.HasPrefix(column, "vpn")}
			if strings.HasSuffix(column, "tuned") {
				s.quota, s.window = quota, window
			}
			e.cells = append(e.cells, s.cell(row, strings.ReplaceAll(column, "_", ", "), row.rates[column], path))
		}
		e.cells = append(e.cells, setting{quota: 2 * quota, window: 2 * window}.cell(row, twice, 0, path))
	}
	return e, nil
}

func windowText(window int) string {
	if window == 0 {
		return "left as it was"
	}
	return fmt.Sprintf("%d", window)
}

// sendBufferSweep is the note's table of send buffers at 2.5 ms.
func sendBufferSweep(columns []string, rows []row) (*experiment, error) {
	short := shortPath(rows)
	e := &experiment{title: "Send buffer against write size at 2.5 ms" + short.fitted(), rows: "write size",
		about: "The same note: the network without gateways, send buffers of 8 to 64 KiB." + short.both(), judge: judgeSweep}
	for _, row := range rows {
		for _, column := range columns {
			quota, err := strconv.Atoi(column)
			if err != nil {
				return nil, err
			}
			e.cells = append(e.cells, setting{quota: quota}.cell(row, kib(quota), row.rates[column], short))
		}
	}
	return e, nil
}

// surface is what the note describes in words: throughput over send buffer and window at
// 12 ms, writes of 16 KB.
func surface() *experiment {
	e := &experiment{title: "Send buffer against window at 12 ms", rows: "window",
		about: "The same note shows a surface and says in words: without large windows throughput stops growing at a send " +
			"buffer of 64 kB, because the receiver's window is 64 kB; with them it is best where both equal the " +
			"bandwidth-delay product (150 kB), and larger windows add nothing. Writes of 16 KB.",
		judge: judgeSurface}
	for _, window := range []int{65535, 102200, 151840, 204400, 303680} {
		for _, quota := range []int{8192, 32768, 65536, 102400, 151552, 204800, 303104} {
			s := setting{quota: quota, window: window}
			c := s.cell(row{write: 16384}, kib(quota), 0, middlePath)
			c.row = strconv.Itoa(window)
			e.cells = append(e.cells, c)
		}
	}
	return e
}
