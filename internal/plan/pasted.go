package plan

import (
	"encoding/json"
	"errors"
	"iter"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/model"
)

// Pasted is the part of a path that another program's output states. A zero field is not stated.
type Pasted struct {
	Program string // that wrote it
	// UpBps and DownBps are payload that this host sent and received, bit/s: at least so
	// much gets through.
	UpBps, DownBps float64
	RTT, Jitter    time.Duration // the least, and the 95th percentile less that
	// RTTAtMost says that RTT is the upper bound that a coarse clock gave ("time<10ms").
	RTTAtMost bool
	Lost      float64 // share of the probes
}

var (
	// reply is a time behind its label in any language; letters of a code page that touch the number are a unit too.
	// Windows 2000 writes two spaces before some, HP-UX a point behind them, and tracert's times have no label.
	reply = regexp.MustCompile(`(?i)[^\s0-9] ?([=<]) *([0-9]+(?:[.,][0-9]*)?)` +
		`(?: ?(?:ms|мс|毫秒|ミリ秒)|[^\x00-\x7f]{2,8}\s*(?:TTL|$))`)
	// replyBare is a reply of fping, fping -e, Test-NetConnection, or Test-Connection of PowerShell 7 or before.
	replyBare = regexp.MustCompile(`(?:: \[[0-9]+\], [0-9]+ bytes, |is alive \(|\(RTT\) +: )([0-9.]+) ms|` +
		`\s([0-9]+) +[0-9]+ +Success|^\S+ +\S+ +(?:[0-9]+(?:\.[0-9]+){3}|[0-9a-f]*:\S*:\S*) .*\s[0-9]+ +([0-9]+)\s*$`)
	repliesOf  = regexp.MustCompile(`^\S+ +:((?: (?:[0-9]+(?:\.[0-9]+)?|-))+)\s*$`) // fping -C
	summary    = regexp.MustCompile(`= ?([0-9.]+)/([0-9.]+)/([0-9.]+)(?:/([0-9.]+))?(?: ?(?:ms|мс|毫秒|ミリ秒)|\s*$)`)
	sentOf     = regexp.MustCompile(`^([0-9]+) [^,0-9]+, ([0-9]+) [^,0-9]+,.*%`)
	lostOf     = regexp.MustCompile(`\([^()%0-9]*(?:([0-9]+) ?%|%([0-9]+))`)
	bitRate    = regexp.MustCompile(`(?i)([0-9]+(?:\.[0-9]+)?) *([KMGT]?)(bits/sec|bit/s|bps|bytes/sec)`)
	latency    = regexp.MustCompile(`(?i)(?:latency|ping|\]): +([0-9.]+) *m(?:s|illiseconds)`)
	jitterText = regexp.MustCompile(`(?i)jitter: *([0-9.]+) *ms`)
	hop        = regexp.MustCompile(`^ *[0-9]+\.(?:\|--)? *(\S+) +([0-9.]+)% +[0-9]+` + strings.Repeat(` +([0-9.]+)`, 5))
)

const (
	longestPasted = 8 << 20 // bytes
	// longestLine is more than any of these programs prints in a line, bytes. Longer ones
	// are left out: to search megabytes of one line by every expression takes many seconds.
	longestLine = 4096
)

// lines are those of text that one of these programs may have printed.
func lines(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			if len(line) <= longestLine && !yield(line) {
				return
			}
		}
	}
}

// ParsePing reads the output of ping, of Windows in any language or of a Unix: every
// reply's time, or where only a summary is there its least and largest.
func ParsePing(text string) (*Pasted, error) {
	if len(text) > longestPasted {
		return nil, errors.New("more than 8 MiB")
	}
	p := &Pasted{Program: "ping"}
	var replies pings
	var least []time.Duration
	for line := range lines(text) {
		if m := sentOf.FindStringSubmatch(line); m != nil {
			sent := number(m[1])
			received := number(m[2])
			if sent > 0 {
				p.Lost = math.Max(1-received/sent, 0)
			}
		} else if m := lostOf.FindStringSubmatch(line); m != nil { // "Lost = 1 (25% loss)", "(perte 25%)", "(%25 kayıp)"
			p.Lost = math.Min(number(m[1]+m[2])/100, 1)
		}
		if m := summary.FindStringSubmatch(line); m != nil {
			least = []time.Duration{milliseconds(m[1]), milliseconds(m[3])}
			continue
		}
		if strings.Contains(line, "DUP!") { // a second reply to one probe
			continue
		}
		times := reply.FindAllStringSubmatch(line, -1)
		bare := replyBare.FindStringSubmatch(line)
		all := repliesOf.FindStringSubmatch(line)
		switch {
		case len(times) == 1:
			replies.add(times[0][1] == "<", times[0][2])
		case len(times) == 3: // minimum, maximum, average
			least = []time.Duration{milliseconds(times[0][2]), milliseconds(times[1][2])}
		case bare != nil:
			replies.add(false, bare[1]+bare[2]+bare[3])
		case all != nil:
			p.Lost = replies.addAll(strings.Fields(all[1]))
		}
	}
	if len(replies.times) == 0 {
		replies.times = least
	}
	if len(replies.times) == 0 {
		return nil, errors.New("no reply's time in it")
	}
	p.RTT, p.Jitter = replies.spread()
	p.RTTAtMost = replies.below > 0
	if p.RTT <= 0 {
		return nil, errors.New("a round trip of 0")
	}
	return p, nil
}

// pings are the replies that a ping printed, in their order.
type pings struct {
	times []time.Duration
	below time.Duration // the largest N of "time<N"; 0: none
	step  time.Duration // of the clock, as far as the decimals show it
}

func (p *pings) add(below bool, text string) {
	t := milliseconds(text)
	step := time.Millisecond
	if i := strings.IndexAny(text, ".,"); i >= 0 {
		for range text[i+1:] {
			step /= 10
		}
	}
	if below {
		p.below = max(p.below, t)
	}
	p.step = max(p.step, step, p.below)
	p.times = append(p.times, t)
}

// addAll adds the replies that one line lists and returns the share of the absent ones, "-".
func (p *pings) addAll(texts []string) (lost float64) {
	for _, text := range texts {
		if text == "-" {
			lost++
			continue
		}
		p.add(false, text)
	}
	return lost / float64(len(texts))
}

// coarseStep is the clock step of Windows before XP: all round trips are multiples of it.
const coarseStep = 10 * time.Millisecond

// minReplies is the least number of replies that distinguishes the first packet's extra time and a coarse clock from
// chance.
const minReplies = 3

// spread returns the least time, and the 95th percentile less that. The first packet, which waits for address
// resolution, and one step of the clock are no part of the spread.
func (p *pings) spread() (least, jitter time.Duration) {
	least = slices.Min(p.times)
	rest := p.times
	step := p.step
	if len(rest) >= minReplies {
		rest = rest[1:]
		coarse := func(t time.Duration) bool { return t%coarseStep != 0 }
		if !slices.ContainsFunc(p.times, coarse) {
			step = max(step, coarseStep)
		}
	}
	rest = slices.Sorted(slices.Values(rest))
	p95 := rest[int(math.Ceil(0.95*float64(len(rest))))-1]
	return least, max(p95-least-step, 0)
}

// ParseResult reads what iperf, iperf3, a speed test or mtr printed, as text or as JSON.
func ParseResult(text string) (*Pasted, error) {
	if len(text) > longestPasted {
		return nil, errors.New("more than 8 MiB")
	}
	p, ok := parseJSON(text)
	if !ok {
		p = parseText(text)
	}
	for _, bps := range []*float64{&p.UpBps, &p.DownBps} {
		if !(*bps >= 0 && *bps < 1e15) {
			*bps = 0
		}
	}
	if p.UpBps == 0 && p.DownBps == 0 && p.RTT <= 0 {
		return nil, errors.New("neither a rate nor a round trip in it")
	}
	return p, nil
}

// parseJSON reads iperf3's, Ookla's and speedtest-cli's objects.
func parseJSON(text string) (*Pasted, bool) {
	var d struct {
		End struct {
			Received struct {
				Bps float64 `json:"bits_per_second"`
			} `json:"sum_received"`
			Streams []struct {
				Sender struct {
					MinRTT  float64 `json:"min_rtt"`
					MeanRTT float64 `json:"mean_rtt"`
				}
			}
		}
		Start struct {
			Test struct{ Reverse int } `json:"test_start"`
		}
		Ping             json.RawMessage
		Download, Upload json.RawMessage
	}
	if !strings.HasPrefix(strings.TrimSpace(text), "{") || json.Unmarshal([]byte(text), &d) != nil {
		return nil, false
	}
	p := &Pasted{Program: "iperf3", UpBps: d.End.Received.Bps}
	if d.Start.Test.Reverse != 0 {
		p.DownBps = p.UpBps
		p.UpBps = 0
	}
	if len(d.End.Streams) > 0 && d.End.Streams[0].Sender.MinRTT > 0 {
		p.RTT = time.Duration(math.Min(d.End.Streams[0].Sender.MinRTT, 1e9)) * time.Microsecond
	}
	if d.Ping == nil {
		return p, true
	}
	p.Program = "speed test"
	var ping struct{ Latency, Jitter float64 }
	var plain float64
	if json.Unmarshal(d.Ping, &plain) == nil { // speedtest-cli: ms and bit/s
		p.RTT = seconds(plain / 1000)
		json.Unmarshal(d.Download, &p.DownBps)
		json.Unmarshal(d.Upload, &p.UpBps)
	} else if json.Unmarshal(d.Ping, &ping) == nil { // Ookla: ms and bytes/s
		p.RTT = seconds(ping.Latency / 1000)
		p.Jitter = seconds(ping.Jitter / 1000)
		for raw, bps := range map[*json.RawMessage]*float64{&d.Download: &p.DownBps, &d.Upload: &p.UpBps} {
			var way struct{ Bandwidth float64 }
			json.Unmarshal(*raw, &way)
			*bps = way.Bandwidth * 8
		}
	}
	return p, true
}

// parseText reads lines: of several rates the receiver's sum, else the last.
func parseText(text string) *Pasted {
	p := &Pasted{Program: "iperf"}
	reverse := strings.Contains(text, "Reverse mode")
	var rate float64
	var jitter time.Duration
	best := 0
	for line := range lines(text) {
		if m := hop.FindStringSubmatch(line); m != nil && m[1] != "???" { // the last one is the far end
			p.Lost = math.Min(number(m[2])/100, 1)
			p.Program = "mtr"
			p.RTT = milliseconds(m[5])
			p.Jitter = max(milliseconds(m[4])-p.RTT+2*milliseconds(m[7]), 0)
			continue
		}
		if m := latency.FindStringSubmatch(line); m != nil && p.RTT == 0 {
			p.RTT = milliseconds(m[1])
		}
		if m := jitterText.FindStringSubmatch(line); m != nil && jitter == 0 {
			jitter = milliseconds(m[1])
		}
		m := bitRate.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		bps := number(m[1]) * map[string]float64{"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}[strings.ToUpper(m[2])]
		if strings.HasPrefix(strings.ToLower(m[3]), "bytes") {
			bps *= 8
		}
		switch lower := strings.ToLower(line); {
		case strings.Contains(lower, "download"), strings.Contains(lower, "downlink"): // downlink: macOS networkQuality
			p.Program = "speed test"
			p.DownBps = bps
		case strings.Contains(lower, "upload"), strings.Contains(lower, "uplink"):
			p.Program = "speed test"
			p.UpBps = bps
		default:
			weight := 1
			if strings.Contains(line, "[SUM]") {
				weight += 2
			}
			if strings.Contains(line, "receiver") {
				weight += 4
			}
			if weight >= best {
				rate = bps
				best = weight
			}
		}
	}
	if p.Program == "speed test" {
		p.Jitter = jitter
	}
	switch {
	case p.Program == "speed test" || rate == 0:
	case reverse:
		p.DownBps = rate
	default:
		p.UpBps = rate
	}
	return p
}

// LineBps is the rate at the IP layer that a payload needs, in segments of mss bytes with
// timestamps.
func LineBps(payloadBps float64, mss int) float64 {
	return model.LinkRate(payloadBps, mss-model.TimestampBytes, model.IPHeaders+model.TimestampBytes)
}

// number returns 0 for text that is no number or is out of range.
func number(text string) float64 {
	v, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", "."), 64)
	if err != nil {
		return 0
	}
	return v
}

func milliseconds(text string) time.Duration { return seconds(number(text) / 1000) }

func seconds(s float64) time.Duration {
	return time.Duration(math.Round(math.Min(math.Max(s, 0), 3600) * float64(time.Second)))
}
