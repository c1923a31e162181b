//go:build linux

package bench

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/lab/stalltest"
)

// seenByWatch is the verdict on the heaviest connection at one end.
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

// tiers are the verdicts of the two tiers at one end: from samples, and from the kernel's clocks alone.
type tiers struct{ Fine, Coarse seenByWatch }

// seenAtEnds are the observations at both ends.
type seenAtEnds struct {
	Sender, Receiver tiers
	Late             bool // the machine stalled during the run
}

// once creates the cause, with programs set for a link of the given rate in bit/s. While it lasts, once asks both
// tiers at both ends at the same time.
func (c *watchedCause) once(t *testing.T, program string, bps float64) (v seenAtEnds) {
	t.Helper()
	dir, err := os.MkdirTemp("", "fp") // smbd's sockets want a short path
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	env := programsFiles(t, dir, bps)
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
	cmd := exec.Command(program, "lab", c.path, "--far", far, "--", "sh", "-c", near)
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

// still repeats the observation once if the machine stalled during it. It reports a second stall.
func (c *watchedCause) still(t *testing.T, program string, bps float64) *seenAtEnds {
	t.Helper()
	var v seenAtEnds
	for range 2 {
		before := stalltest.Now()
		v = c.once(t, program, bps)
		v.Late = stalltest.Now().Since(before).Disturbs()
		if !v.Late {
			break
		}
	}
	return &v
}

// keep writes the observations into a directory.
func (c *watchedCause) keep(t *testing.T, dir string, v *seenAtEnds) {
	t.Helper()
	text, err := json.Marshal(v)
	if err = errors.Join(err, os.MkdirAll(dir, 0o700), os.WriteFile(c.file(dir), text, 0o600)); err != nil {
		t.Fatal(err)
	}
}

// kept returns the observations of an earlier run, or nil.
func (c *watchedCause) kept(dir string) *seenAtEnds {
	text, err := os.ReadFile(c.file(dir))
	v := &seenAtEnds{}
	if err != nil || json.Unmarshal(text, v) != nil {
		return nil
	}
	return v
}

func (c *watchedCause) file(dir string) string {
	return filepath.Join(dir, strings.ReplaceAll(c.name, "/", "-")+".json")
}

// watchedCode returns a hash of the code that judges watched connections.
func watchedCode(t *testing.T) (all string) {
	t.Helper()
	for _, dir := range []string{"watch", "sockdiag", "verdict/live", "verdict/threshold"} {
		code, err := codeOf(filepath.Join("../internal", dir))
		if err != nil {
			t.Fatal(err)
		}
		all += code[:6]
	}
	return all
}

// TestBankWatchCauses creates causes with ordinary programs. `why`, and `watch` by the kernel's clocks alone, observe
// them from outside, at the sender and at the receiver: on a link of 20 Mbit/s and 60 ms, then on
// FULLPIPE_BANK_TRIALS drawn links (3), for an hour or FULLPIPE_BANK_TIME. Slow links run concurrently. A run during
// which the machine stalled is repeated once. FULLPIPE_BANK_SERIES, a directory, keeps the observations, and the next
// run of the same judge with the same FULLPIPE_BANK_SEED continues from there. -run 'TestBankWatchCauses/LINK/NAME'
// picks causes.
func TestBankWatchCauses(t *testing.T) {
	bankOnly(t)
	program := harness.Program(t)
	seed, err := strconv.ParseUint(os.Getenv("FULLPIPE_BANK_SEED"), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	trials, err := strconv.Atoi(os.Getenv("FULLPIPE_BANK_TRIALS"))
	if err != nil {
		trials = 3
	}
	kept, end := os.Getenv("FULLPIPE_BANK_SERIES"), time.Now().Add(bankTime(t, time.Hour))
	if kept != "" {
		kept = filepath.Join(kept, watchedCode(t))
	}
	r, links := rand.New(rand.NewPCG(seed, 0)), []watchedLink{{20e6, 60 * time.Millisecond}}
	for range trials {
		links = append(links, drawWatchedLink(r))
	}
	room := places{all: mostWatched, free: mostWatched}
	var count watchedTally
	t.Run("all", func(t *testing.T) {
		for _, l := range links {
			for _, c := range slices.Concat(watchedCauses(l), watchedPrograms(l)) {
				t.Run(fmt.Sprintf("%v/%s", l, c.name), func(t *testing.T) {
					t.Parallel()
					c.needed(t)
					dir := filepath.Join(kept, l.String())
					v := c.kept(dir)
					if v == nil {
						defer room.take(c.bps)()
						if time.Now().After(end) {
							t.Skip("no time is left")
						}
						v = c.still(t, program, l.bps)
						if kept != "" {
							c.keep(t, dir, v)
						}
					}
					count.add(t, &c, v)
				})
			}
		}
	})
	count.report(t, fmt.Sprintf("FULLPIPE_BANK_SEED=%d FULLPIPE_BANK_TRIALS=%d make bank RUN=TestBankWatchCauses", seed,
		trials))
}

// mostWatched is the largest sum of the rates of links that run concurrently, in bit/s; a faster link runs alone.
const mostWatched = 80e6
