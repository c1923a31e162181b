package waits

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// open returns switches that end with the test; nil where the kernel does not offer them.
func open(t *testing.T) *switches {
	t.Helper()
	testenv.Need(t, testenv.BPF)
	s, err := openSwitches()
	switch {
	case errors.Is(err, socket.ErrNotSupported): // another PID namespace, or an older kernel
		t.Log(err)
	case err != nil:
		t.Fatal(err)
	default:
		t.Cleanup(func() { _ = s.Close() }) // TestSwitches_Close looks at it
	}
	return s
}

// TestSwitches_Calls: sleeps have their call and descriptor, those that last as well.
func TestSwitches_Calls(t *testing.T) {
	s := open(t)
	if s == nil {
		return
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	pid := start(t, r, nil, "cat")
	s.follow(pid)
	s.read()
	sum := time.Duration(0)
	before := time.Now()
	for end := before.Add(30 * time.Second); sum < 200*ms; time.Sleep(10 * ms) {
		if time.Now().After(end) {
			t.Fatalf("%v of a read from a pipe were seen", sum)
		}
		if _, err := w.WriteString("x"); err != nil {
			t.Fatal(err)
		}
		s.read()
		sum += s.take(pid, 10*ms)[call{number: unix.SYS_READ}]
	}
	if lasted := time.Since(before); sum > lasted {
		t.Errorf("%v of sleep in %v", sum, lasted)
	}
}

// TestSwitches_Debts counts the part of a sleep that was seen before its end once.
func TestSwitches_Debts(t *testing.T) {
	s := open(t)
	if s == nil {
		return
	}
	pid := start(t, nil, nil, "sleep", "1000")
	s.follow(pid)
	child := call{number: unix.SYS_CLOCK_NANOSLEEP}
	s.add(s.debts, pid, child, 50*ms)
	key := [totalKey]byte{}
	for i, v := range []uint32{uint32(pid), unix.SYS_CLOCK_NANOSLEEP, 0, 0} {
		for j := range 4 {
			key[4*i+j] = byte(v >> (8 * j))
		}
	}
	if err := s.totals.Put(key, uint64(80*ms)); err != nil {
		t.Fatal(err)
	}
	s.read()
	if got := s.ended[pid][child]; got != 30*ms {
		t.Errorf("%v, want 30ms", got)
	}
	if s.debts[pid][child] != 0 {
		t.Errorf("%v is owed", s.debts[pid][child])
	}
}

// TestSwitches_Close: closing releases everything and may be repeated; following then does nothing.
func TestSwitches_Close(t *testing.T) {
	s := open(t)
	if s == nil {
		return
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	s.follow(1)
	s.forget(1)
	var none *switches
	none.follow(1)
	none.forget(1)
	none.read()
	if none.take(1, ms) != nil || none.Close() != nil {
		t.Error("nothing has waits")
	}
}

// TestDisks counts requests of the device below a file that is written through.
func TestDisks(t *testing.T) {
	s := open(t)
	if s == nil {
		return
	}
	name := filepath.Join(t.TempDir(), "file")
	file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|unix.O_DSYNC, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	at := device(name)
	disk := diskOf(filepath.Base(at))
	if _, err := os.Stat("/sys/block/" + disk + "/mq"); err != nil {
		t.Logf("%q has no requests", at)
		return
	}
	s.disks.read()
	before := s.disks.sums[operation{disk, true}]
	for range 4 {
		if _, err := file.Write(make([]byte, 4096)); err != nil {
			t.Fatal(err)
		}
	}
	s.disks.read()
	got := s.disks.sums[operation{disk, true}].since(before)
	if got.Count < 4 || got.Bytes < 4*4096 || got.Time <= 0 {
		t.Errorf("%+v", got)
	}
}
