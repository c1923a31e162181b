//go:build linux

package e2e

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/lab/still"
)

// seenByWatch is what was said of the heaviest connection at one end.
type seenByWatch struct {
	Limiter, Subtype, Confidence, Direction string
	Candidates                              []string
	Sampled                                 bool
	Bps                                     float64 `json:"goodput_bps"`
	Shares                                  map[string]float64
	Program                                 struct{ Name string }
}

func (s *seenByWatch) String() string {
	text := cmp.Or(s.Limiter, "nothing")
	if s.Subtype != "" {
		text += "/" + s.Subtype
	}
	if s.Program.Name != "" {
		text += " (" + s.Program.Name + ")"
	}
	if s.Limiter == "unknown" || s.Limiter == "mixed" || s.Limiter == "sender" || len(s.Candidates) > 0 {
		text += " " + strings.Join(s.Candidates, "|")
	}
	return fmt.Sprintf("%s, %s, %.3g Mbit/s", text, s.Confidence, s.Bps/1e6)
}

// tiers are what the two tiers said at one end: of samples, and of the kernel's clocks alone.
type tiers struct{ Fine, Coarse seenByWatch }

// seenAtEnds are the ends that were asked.
type seenAtEnds struct {
	Sender, Receiver tiers
	Late             bool // the machine stood still meanwhile
}

// once makes the cause and asks at both ends while it lasts, both tiers at the same time.
func (c *watchedCause) once(t *testing.T, program string) (v seenAtEnds) {
	t.Helper()
	dir, err := os.MkdirTemp("", "fp") // smbd's sockets want a short path
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	env := programsFiles(t, dir)
	const grow = "cd /proc/sys/net/ipv4; echo 4096 16384 67108864 >tcp_wmem; echo 4096 131072 67108864 >tcp_rmem; cd /\n"
	const ask = `look() {
	$F watch --for 5s --every 1s --sampled 0 --port $PORT --json >$D/$1.coarse 2>$D/$1.coarse.err & coarse=$!
	$F why :$PORT --for 5s --json >$D/$1.fine 2>$D/$1.fine.err
	wait $coarse
}
`
	far := grow + ask + "(until test -e $D/go; do sleep 0.1; done; look far; touch $D/done) &\n" +
		cmp.Or(c.far, "iperf3 -s")
	near := grow + ask + "DEVICE=$(ip -o route get $FULLPIPE_FAR | sed 's/.* dev //; s/ .*//')\n" + c.shaped + `
until python3 -c "import os,socket; socket.create_connection((os.environ['FULLPIPE_FAR'], $PORT))" 2>/dev/null
do sleep 0.2; done
(` + cmp.Or(c.near, client) + `) >$D/out 2>&1 & client=$!
sleep $SETTLE; touch $D/go
look near || true
until test -e $D/done; do sleep 0.1; done
kill $client; cat $D/*.err $D/out >&2`
	path := c.path
	if !strings.HasPrefix(path, "rate=") {
		path = "rate=20mbit,rtt=60ms," + path
	}
	cmd := exec.Command(program, "lab", path, "--far", far, "--", "sh", "-c", near)
	cmd.Env = append(env, "F="+program, fmt.Sprintf("PORT=%d", cmp.Or(c.port, 5201)),
		fmt.Sprintf("SETTLE=%d", cmp.Or(c.settle, 3)))
	var failed strings.Builder
	cmd.Stderr = &failed
	if err := cmd.Run(); err != nil {
		t.Logf("%v", err)
	}
	read := func(name string) (seen seenByWatch) {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err, failed.String())
		}
		var doc struct {
			Connections []struct{ Directions []seenByWatch }
		}
		if err := json.Unmarshal(text, &doc); err != nil || len(doc.Connections) == 0 ||
			len(doc.Connections[0].Directions) == 0 {
			t.Logf("%s: %v: %.300s; %.2000s", name, err, text, failed.String())
			return seen
		}
		return doc.Connections[0].Directions[0]
	}
	v.Sender = tiers{read("near.fine"), read("near.coarse")}
	v.Receiver = tiers{read("far.fine"), read("far.coarse")}
	if c.down {
		v.Sender, v.Receiver = v.Receiver, v.Sender
	}
	return v
}

// still has the cause looked at on a machine that does not stand still meanwhile, or says that it did twice.
func (c *watchedCause) still(t *testing.T, program string) *seenAtEnds {
	t.Helper()
	var v seenAtEnds
	for range 2 {
		before := still.Now()
		v = c.once(t, program)
		if v.Late = still.Now().Since(before).Disturbs(); !v.Late {
			break
		}
	}
	return &v
}

// keep writes what was seen into a directory, unless that is "".
func (c *watchedCause) keep(t *testing.T, dir string, v *seenAtEnds) {
	t.Helper()
	if dir == "" {
		return
	}
	text, err := json.Marshal(v)
	if err = errors.Join(err, os.MkdirAll(dir, 0o700), os.WriteFile(c.file(dir), text, 0o600)); err != nil {
		t.Fatal(err)
	}
}

// kept is what an earlier run saw; nil: nothing.
func (c *watchedCause) kept(dir string) *seenAtEnds {
	text, err := os.ReadFile(c.file(dir))
	v := &seenAtEnds{}
	if dir == "" || err != nil || json.Unmarshal(text, v) != nil {
		return nil
	}
	return v
}

func (c *watchedCause) file(dir string) string {
	return filepath.Join(dir, strings.ReplaceAll(c.name, "/", "-")+".json")
}

// How a verdict stands to the truth: right, open with the truth among what is possible, open
// without it, or wrong.
const (
	rightVerdict   = "right"
	openVerdict    = "open"
	astrayVerdict  = "open without the truth"
	wrongVerdict   = "wrong"
	nothingVerdict = "nothing seen"
)

// judged says so; a link that is full is its limit whatever else was made.
func (c *watchedCause) judged(s *seenByWatch) string {
	link := cmp.Or(c.bps, 20e6)
	is := func(name string) bool {
		return slices.Contains(c.limiters, name) || name == "bottleneck" && s.Bps >= 0.85*link
	}
	possible := s.Candidates
	if s.Limiter == "sender" {
		possible = append([]string{"application", "send-buffer"}, possible...)
	}
	open := s.Limiter == "unknown" || s.Limiter == "mixed" || s.Limiter == "sender"
	switch {
	case s.Limiter == "":
		return nothingVerdict
	case is(s.Limiter):
		return rightVerdict
	case open && slices.ContainsFunc(possible, is):
		return openVerdict
	case open:
		return astrayVerdict
	}
	return wrongVerdict
}

// watchedRow counts the verdicts of one end and tier.
type watchedRow struct {
	name  string
	of    func(*seenAtEnds) *seenByWatch
	count map[string]int // by judged, wrong ones by confidence as well
	not   []string       // which were not right, and what was said
}

func (r *watchedRow) add(c *watchedCause, v *seenAtEnds) {
	s := r.of(v)
	how := c.judged(s)
	r.count[how]++
	if how == wrongVerdict {
		r.count[how+" "+s.Confidence]++
	}
	switch how {
	case rightVerdict:
	case openVerdict:
		r.not = append(r.not, c.name+": "+how)
	default:
		r.not = append(r.not, fmt.Sprintf("%s: %s (%s)", c.name, how, s))
	}
}

func (r *watchedRow) among(good ...string) (n among) {
	for _, how := range []string{rightVerdict, openVerdict, astrayVerdict, wrongVerdict, nothingVerdict} {
		n.all += r.count[how]
		if slices.Contains(good, how) {
			n.good += r.count[how]
		}
	}
	return n
}

func (r *watchedRow) String() string {
	return fmt.Sprintf("right %d, open with the truth %d, open without it %d, wrong %d (high %d, medium %d, low %d), "+
		"nothing seen %d", r.count[rightVerdict], r.count[openVerdict], r.count[astrayVerdict], r.count[wrongVerdict],
		r.count["wrong high"], r.count["wrong medium"], r.count["wrong low"], r.count[nothingVerdict])
}

// TestBankWatchCauses makes causes by ordinary programs and has `why`, and `watch` by the
// kernel's clocks alone, look at them from outside, at the sender and at the receiver. A run
// during which the machine stood still is made once again. It takes ten minutes, or
// FULLPIPE_BANK_TIME: then FULLPIPE_BANK_SERIES, a directory, keeps what was seen, and the next
// run goes on from there. -run 'TestBankWatchCauses/NAME' picks causes.
func TestBankWatchCauses(t *testing.T) {
	bankOnly(t)
	program, err := fullpipe()
	if err != nil {
		t.Fatal(err)
	}
	rows := []*watchedRow{
		{name: "at the sender, by samples", of: func(v *seenAtEnds) *seenByWatch { return &v.Sender.Fine }},
		{name: "at the receiver, by samples", of: func(v *seenAtEnds) *seenByWatch { return &v.Receiver.Fine }},
		{name: "at the sender, by clocks alone", of: func(v *seenAtEnds) *seenByWatch { return &v.Sender.Coarse }},
		{name: "at the receiver, by clocks alone", of: func(v *seenAtEnds) *seenByWatch { return &v.Receiver.Coarse }},
	}
	for _, r := range rows {
		r.count = map[string]int{}
	}
	var both, named, programs among
	var unnamed, nameless []string
	disturbed, kept, end := 0, os.Getenv("FULLPIPE_BANK_SERIES"), time.Now().Add(bankTime(t, time.Hour))
	for _, c := range slices.Concat(watchedCauses(), watchedPrograms()) {
		t.Run(c.name, func(t *testing.T) {
			c.needed(t)
			v := c.kept(kept)
			switch {
			case v == nil && time.Now().After(end):
				t.Skip("no time is left")
			case v == nil:
				v = c.still(t, program)
				c.keep(t, kept, v)
			}
			if v.Late {
				disturbed++
			}
			for _, r := range rows {
				r.add(&c, v)
				t.Logf("%s: %s: %s", r.name, c.judged(r.of(v)), r.of(v))
			}
			sender, receiver := c.judged(&v.Sender.Fine), c.judged(&v.Receiver.Fine)
			both.count((sender == rightVerdict || sender == openVerdict && receiver == rightVerdict) &&
				receiver != wrongVerdict)
			if !slices.Contains(c.limiters, "bottleneck") && clocksTell(c.limiters) {
				named.count(c.judged(&v.Sender.Coarse) == rightVerdict)
				if c.judged(&v.Sender.Coarse) != rightVerdict {
					unnamed = append(unnamed, c.name)
				}
			}
			if s := &v.Sender.Fine; c.subtype != "" {
				programs.count(s.Limiter == "application" && s.Subtype == c.subtype)
				if s.Subtype != c.subtype {
					nameless = append(nameless, c.name)
				}
			}
		})
	}
	row := func(name, claim string, n among, least float64, measured string, spread []string) {
		late := ""
		if disturbed > 0 {
			late = fmt.Sprintf("the machine stood still during %d of them", disturbed)
		}
		record(t, bankRow{Section: "watch", Case: name, Claim: claim, Measured: cmp.Or(measured, n.String()),
			Spread:  strings.Join(append([]string{n.interval()}, spread...), "; "),
			Verdict: n.verdict(least), Late: late, Command: "make bank RUN=TestBankWatchCauses"})
	}
	for i, r := range rows {
		sure := among{good: -r.count["wrong high"]}
		sure.all = r.among().all
		sure.good += sure.all
		switch i {
		case 0:
			row("causes "+r.name, "right in at least 90 %", r.among(rightVerdict), 0.9, r.String(), r.not)
		default:
			row("causes "+r.name, "right, or open with the truth among what is possible, in 90 %",
				r.among(rightVerdict, openVerdict), 0.9, r.String(), r.not)
		}
		row("causes "+r.name, "wrong with high confidence in at most 1 %", sure, 0.99, "", nil)
	}
	row("causes at both ends", "right at the sender, or open there and right at the receiver, which is not wrong, in 90 %",
		both, 0.9, "", nil)
	row("causes that the kernel's clocks tell", "named by them alone in 80 %", named, 0.8, "", unnamed)
	row("what the kernel's clocks alone leave open at the sender", "the truth is among what they leave possible in 90 %",
		among{rows[2].count[openVerdict], rows[2].count[openVerdict] + rows[2].count[astrayVerdict]}, 0.9, "", nil)
	row("exchanges and programs' own windows", "named in 90 %", programs, 0.9, "", nameless)
}

// clocksTell says whether the kernel's cumulative clocks name what limits: an idle program, the
// receiver's window with what is behind it, and the send buffer.
func clocksTell(limiters []string) bool {
	return slices.ContainsFunc(limiters, func(l string) bool {
		return slices.Contains([]string{"application", "send-buffer", "receiver-window", "receiver-application"}, l)
	})
}
