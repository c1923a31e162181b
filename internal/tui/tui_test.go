package tui

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// watched returns a period with these rates in bit/s to and from three far ends.
func watched(rates ...float64) *record.Watch {
	one := func(program, local, remote string, way transfer.Direction, bps float64,
		shares verdict.Shares) record.WatchedConnection {
		limiter := shares.Top()[0]
		return record.WatchedConnection{Local: local, Remote: remote, PID: 7, Program: program, SendBufferBytes: 64 << 10,
			FollowedS: 90, Directions: []record.WatchedDirection{{Direction: way, Bytes: int64(bps / 4), GoodputBps: bps,
				RetransmittedBytes: int64(bps / 400), RTT: units.Duration(74 * time.Millisecond),
				RTTMin: units.Duration(40 * time.Millisecond), OfferedBytes: 128 << 10,
				Verdict: verdict.Verdict{Limiter: limiter, Confidence: verdict.Medium, Shares: shares}}}}
	}
	full := verdict.Shares{verdict.Bottleneck: 0.75, verdict.SlowStart: 0.25}
	return &record.Watch{Matching: 3, Connections: []record.WatchedConnection{
		one("rsync", "192.0.2.1:40000", "198.51.100.7:873", transfer.Up, rates[0], full),
		one("rsync", "192.0.2.1:40001", "198.51.100.8:873", transfer.Up, rates[1], verdict.Shares{verdict.Application: 1}),
		one("curl", "192.0.2.1:40002", "203.0.113.9:443", transfer.Down, rates[2], verdict.Shares{verdict.Unknown: 1}),
	}}
}

// after returns a model of 80 columns and 24 lines after a period and some keys.
func after(t *testing.T, d *record.Watch, keys ...string) model {
	t.Helper()
	m := model{width: 80, height: 24}.withPeriod(d)
	for _, key := range keys {
		var quit bool
		typed := ""
		if len(key) == 1 {
			typed = key
		}
		m, quit = m.pressed(key, typed)
		if quit {
			t.Fatalf("%q quits", key)
		}
	}
	return m
}

// names are the first words of the rows that are shown.
func names(m model) (all []string) {
	for _, r := range m.shown() {
		all = append(all, r.name+" "+r.where)
	}
	return all
}

func TestKeys(t *testing.T) {
	d := watched(1e6, 3e6, 2e6)
	const big, small, down = "rsync[7] to 198.51.100.8:873", "rsync[7] to 198.51.100.7:873", "curl[7] from 203.0.113.9:443"
	for _, c := range []struct {
		keys string
		want []string
	}{
		{"", []string{big, down, small}},
		{"/ c u r l enter", []string{down}},
		{"/ C U R x backspace L enter", []string{down}},
		{"/ c u r l esc", []string{big, down, small}},
		{"/ b o t t l enter", []string{small}},
		{"/ q q enter", nil},
		{"g", []string{"rsync to 2 far ends", "curl from 203.0.113.9:443"}},
		{"g g g", []string{"198.51.100.0/24 to 2 far ends", "203.0.113.0/24 from 203.0.113.9:443"}},
		{"g g g g", []string{":873 to 2 far ends", ":443 from 203.0.113.9:443"}},
		{"g g g g g", []string{big, down, small}},
	} {
		if got := names(after(t, d, strings.Fields(c.keys)...)); strings.Join(got, "|") != strings.Join(c.want, "|") {
			t.Errorf("after %q: %q, want %q", c.keys, got, c.want)
		}
	}
	if _, quit := (model{}).pressed("q", "q"); !quit {
		t.Error("q does not quit")
	}
	if _, quit := (model{typing: true}).pressed("q", "q"); quit {
		t.Error("a q in a filter quits")
	}
}

// Frozen rows keep their places while their figures go on; a paused picture stays as it is.
func TestFreezeAndPause(t *testing.T) {
	then, now := watched(1e6, 3e6, 2e6), watched(9e6, 3e6, 2e6)
	frozen := after(t, then, "f")
	order := names(frozen)
	frozen = frozen.withPeriod(now)
	if got := names(frozen); strings.Join(got, "|") != strings.Join(order, "|") || frozen.shown()[2].bps != 9e6 {
		t.Errorf("%q, %v bit/s in the last row, want %q", got, frozen.shown()[2].bps, order)
	}
	if got := names(after(t, then).withPeriod(now)); got[0] != order[2] {
		t.Errorf("without that the fastest is first: %q", got)
	}
	if paused := after(t, then, "p"); paused.withPeriod(now).draw() != paused.draw() {
		t.Error("a paused picture changes")
	}
	for key, state := range map[string]string{"f": "frozen", "p": "paused"} { // which a narrow terminal shows too
		if m := after(t, then, key); !strings.HasPrefix(ansi.Strip(m.draw()), "fullpipe watch   "+state+" ") {
			t.Errorf("%s is not said first:\n%s", state, ansi.Strip(m.draw()))
		}
	}
	line := after(t, then).withPeriod(now).past[frozen.shown()[2].key]
	if len(line) != 2 || line[0] != 1e6 || line[1] != 9e6 {
		t.Errorf("remembered rates: %v", line)
	}
}

// A group's shares and losses are weighted by payload.
func TestGroupsAreWeighed(t *testing.T) {
	r := after(t, watched(1e6, 3e6, 2e6), "g").shown()[0]
	if r.bps != 4e6 || r.connections != 2 || r.shares[verdict.Application] != 0.75 ||
		r.shares[verdict.Bottleneck] != 0.1875 ||
		r.limited != "application, bottleneck" {
		t.Errorf("%+v", r)
	}
}

// The picture fits its terminal, says the same without colours, and an open row says what to do.
func TestPicture(t *testing.T) {
	d := watched(1e6, 3e6, 2e6)
	for _, size := range [][2]int{{0, 0}, {1, 1}, {40, 8}, {80, 24}, {200, 60}} {
		for _, keys := range []string{"", "?", "down enter", "g down enter", "/ x"} {
			m := after(t, d, strings.Fields(keys)...)
			m.width, m.height = size[0], size[1]
			lines := strings.Split(m.draw(), "\n")
			if len(lines) != max(m.high(), leastHeight) {
				t.Errorf("%v: %d lines", size, len(lines))
			}
			for _, line := range lines {
				if wide := ansi.StringWidth(line); wide > max(m.wide(), leastWidth) {
					t.Errorf("%v after %q: a line of %d columns: %q", size, keys, wide, line)
				}
			}
		}
	}
	opened := ansi.Strip(after(t, d, "end", "enter").draw())
	for _, want := range []string{"bbbbbbii", "74 ms (40 ms)", "bottleneck 75 %", "do ", "nothing to tune", "64 KiB",
		"128 KiB"} {
		if !strings.Contains(opened, want) {
			t.Errorf("%q is not in\n%s", want, opened)
		}
	}
}

// Names of programs and far ends cannot move the cursor.
func TestForeignNames(t *testing.T) {
	d := watched(1e6, 3e6, 2e6)
	d.Connections[0].Program, d.Connections[0].Unit = "\x1b[2J\x1b]0;owned\a", "a\nb\rc"
	drawn := after(t, render.Document(d), "end", "enter").draw()
	for _, bad := range []string{"\x1b[2J", "\x1b]", "\a", "\r"} {
		if strings.Contains(drawn, bad) {
			t.Errorf("%q comes through", bad)
		}
	}
}

// Run ends with the watch, and hands on its error.
func TestRunEndsWithTheWatch(t *testing.T) {
	broken := errors.New("broken")
	in, hold := io.Pipe() // a user who presses nothing
	defer hold.Close()
	err := Run(t.Context(), in, io.Discard, func(_ context.Context, each func(*record.Watch)) error {
		each(watched(1e6, 3e6, 2e6))
		return broken
	})
	if !errors.Is(err, broken) {
		t.Error(err)
	}
}

// Run ends when the user quits, and the watch with it.
func TestRunEndsWithTheUser(t *testing.T) {
	err := Run(t.Context(), strings.NewReader("q"), io.Discard, func(ctx context.Context, each func(*record.Watch)) error {
		each(watched(1e6, 3e6, 2e6))
		<-ctx.Done()
		return ctx.Err()
	})
	if err != nil {
		t.Error(err)
	}
}

// TestNetworksAreNotCut: a group's name has the room that its far ends do not need, on 80 columns too.
func TestNetworksAreNotCut(t *testing.T) {
	d := watched(1e6, 3e6, 2e6)
	d.Connections[0].Remote, d.Connections[1].Remote = "198.151.100.107:873", "198.151.100.108:873"
	picture := after(t, d, "g", "g", "g").draw()
	if whole := "198.151.100.0/24 (2)  to 2 far ends"; !strings.Contains(ansi.Strip(picture), whole) {
		t.Errorf("%q is not in\n%s", whole, ansi.Strip(picture))
	}
	for _, line := range strings.Split(ansi.Strip(picture), "\n") {
		if ansi.StringWidth(line) > 80 {
			t.Errorf("%d columns: %q", ansi.StringWidth(line), line)
		}
	}
}
