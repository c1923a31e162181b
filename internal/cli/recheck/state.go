package recheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/atomicfile"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/peer"
	"github.com/fullpipe-net/fullpipe/internal/recheck"
	"github.com/fullpipe-net/fullpipe/internal/recheck/runner"
)

// charge is the file that charges a running test to the day's budgets. A killed process leaves it behind, and the test
// stays charged. It is removed when the test's result is in the history, or two days later.
type charge struct {
	file    *atomicfile.File
	id      string // of the test's run
	at      time.Time
	cost    recheck.Cost // expected; bytes grow with what the test moves
	unknown bool         // no test has shown the bytes yet: all that it may move are charged
}

const (
	// longestDay is the length of a day on which the clocks go back. Later results were dated by a clock that was ahead.
	longestDay = 25 * time.Hour
	// keepCharge is longer than the offset between any two time zones' days.
	keepCharge = 48 * time.Hour
)

const (
	chargeFiles = "recheck-charge-*"
	// chargeForm has the start in ns since 1970, the run's id, the bytes and the ns. Its length is fixed: a killed
	// process leaves a whole line.
	chargeForm = "fullpipe recheck charge 1 %019d %s %019d %019d\n"
)

// charge charges a test whose transfers are of a length in all.
func (k *rechecker) charge(o runner.Order, id string, length time.Duration) (*charge, error) {
	f, err := atomicfile.Temporary(k.dir, chargeFiles)
	if err != nil {
		return nil, err
	}
	c := &charge{file: f, id: id, at: o.At, cost: o.Cost}
	if c.cost.Bytes == 0 {
		c.unknown = true
		c.cost.Bytes = o.MaxBytes
	}
	if c.cost.Time == 0 {
		c.cost.Time = length
	}
	if err := c.write(); err != nil {
		c.settle()
		return nil, err
	}
	return c, nil
}

func (c *charge) write() error {
	line := fmt.Appendf(nil, chargeForm, c.at.UnixNano(), c.id, c.cost.Bytes, int64(c.cost.Time))
	_, err := c.file.File().WriteAt(line, 0)
	return err
}

// moved raises the charge to the bytes that the test moved, the newest interval counted twice: a kill may end the next
// one.
func (c *charge) moved(bytes, newest int64) {
	bytes += newest
	if bytes > c.cost.Bytes || c.unknown {
		c.cost.Bytes = bytes
		c.unknown = false
		_ = c.write() // the charge stays as it was
	}
}

// settle removes the charge.
func (c *charge) settle() {
	_ = c.file.Remove() // its run is known by its id
}

// charged returns the cost of all charges of a day whose runs are in no account. It removes those that count on no day.
func (k *rechecker) charged(since time.Time) (all recheck.Cost) {
	names, _ := filepath.Glob(filepath.Join(k.dir, chargeFiles)) // the pattern is valid
	for _, name := range names {
		c, err := readCharge(name)
		if err != nil {
			continue
		}
		_, known := k.accounts[c.id]
		switch {
		case known, c.at.Before(since.Add(-keepCharge)):
			_ = atomicfile.RemoveLeft(name)
		case !c.at.Before(since) && c.at.Before(since.Add(longestDay)):
			all = all.Plus(c.cost)
		}
	}
	return all
}

// readCharge reads a charge. A line that cannot be parsed costs nothing and has the file's time.
func readCharge(name string) (c charge, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return c, err
	}
	c, ok := parseCharge(text)
	if ok {
		return c, nil
	}
	info, err := os.Lstat(name)
	if err != nil {
		return c, err
	}
	return charge{at: info.ModTime()}, nil
}

// parseCharge parses a charge's line. It returns false where a field is missing or out of every test's range, so that
// the sum of a day's charges neither falls nor overflows.
func parseCharge(text []byte) (c charge, ok bool) {
	var ns, took int64
	if _, err := fmt.Sscanf(string(text), chargeForm, &ns, &c.id, &c.cost.Bytes, &took); err != nil {
		return c, false
	}
	c.at = time.Unix(0, ns)
	c.cost.Time = time.Duration(took)
	const maxBytes = 1 << 50
	return c, c.cost.Bytes >= 0 && c.cost.Bytes <= maxBytes && c.cost.Time >= 0 && c.cost.Time <= keepCharge
}

// mark names the newest result of a series whose events were reported; those of earlier results were reported too.
// A process that is killed after it stored a result and before it reported leaves the mark; the next process reports.
type mark struct {
	at time.Time
	id string // of the run
}

func (m mark) after(o mark) bool {
	return cmp.Or(m.at.Compare(o.at), cmp.Compare(m.id, o.id)) > 0
}

// markFile returns the file of a series' mark. Marks are always on this host, because its processes report, even if the
// history is in a database server.
func (k *rechecker) markFile(series string) string {
	return filepath.Join(k.dir, "recheck-"+series+".told")
}

const markForm = "fullpipe recheck told 1 %d %s\n" // when the run began, ns since 1970; its id, - for none

// readMark returns a series' mark, or false if there is none that can be read.
func (k *rechecker) readMark(series string) (m mark, ok bool) {
	text, err := os.ReadFile(k.markFile(series))
	if err != nil {
		return m, false
	}
	var ns int64
	if _, err := fmt.Sscanf(string(text), markForm, &ns, &m.id); err != nil {
		return m, false
	}
	m.at = time.Unix(0, ns)
	return m, true
}

// mark advances a series' mark. If that fails, an event may be reported twice, which a note says.
func (k *rechecker) mark(series string, m mark) {
	if err := k.writeMark(series, m); err != nil && !k.unmarked {
		k.unmarked = true
		console.Note(k.cmd, "reported events cannot be marked as reported, and may be reported again: %v", err)
	}
}

func (k *rechecker) writeMark(series string, m mark) error {
	ns := int64(0)
	if !m.at.IsZero() {
		ns = m.at.UnixNano()
	}
	return k.replace(k.markFile(series), fmt.Appendf(nil, markForm, ns, cmp.Or(m.id, "-")))
}

// replace writes a small file to the directory of the history, atomically.
func (k *rechecker) replace(name string, text []byte) error {
	return atomicfile.WritePrivate(context.Background(), name, text)
}

// platforms are the domains of M-Lab's servers, to which --own does not apply.
var platforms = []string{"measurement-lab.org", "measurementlab.net"}

// ownAddresses lists, besides the private ranges, those that no server on the Internet has (RFC 6598, 2544, 5737, 5180,
// 3849): their hosts are in this host's own networks.
var ownAddresses = []netip.Prefix{netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("2001:2::/48"),
	netip.MustParsePrefix("2001:db8::/32")}

// publicServer reports whether a PEER is a public speed test server: one of M-Lab's, or an ndt7 server at a public
// address without --own. A server whose address cannot be resolved counts as public.
func publicServer(ctx context.Context, far string, own bool) bool {
	if !peer.OnceOnly(far) {
		return false
	}
	host := strings.TrimSuffix(farHost(far), ".")
	if slices.ContainsFunc(platforms, func(d string) bool { return host == d || strings.HasSuffix(host, "."+d) }) {
		return true
	}
	if own {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	all, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	return err != nil || len(all) == 0 || slices.ContainsFunc(all, func(a netip.Addr) bool { return !ownAddress(a) })
}

func ownAddress(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	return a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() ||
		slices.ContainsFunc(ownAddresses, func(p netip.Prefix) bool { return p.Contains(a) })
}

const turnForm = "fullpipe recheck public 1 %d\n" // when the next test may begin, ns since 1970

// turn reserves the turn of public servers, which all processes of this user share. The caller has their lock. The turn
// is recorded before the test, so that a killed process has used it.
func (k *rechecker) turn(now, next time.Time) (until time.Time, err error) {
	name := filepath.Join(k.dir, "recheck-public")
	text, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return until, err
	}
	var ns int64
	if _, err := fmt.Sscanf(string(text), turnForm, &ns); err == nil {
		until = time.Unix(0, ns)
		if until.After(now) && !until.After(recheck.LatestPublic(now)) { // otherwise the clock was set
			return until, nil
		}
	}
	return time.Time{}, k.replace(name, fmt.Appendf(nil, turnForm, next.UnixNano()))
}
