package watch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/sockdiag"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// TestNetnsWatchers_FollowContainers follows connections of another network namespace until its last process ends;
// their sums remain.
func TestNetnsWatchers_FollowContainers(t *testing.T) {
	testenv.Need(t, testenv.Root)
	child := exec.Command("sh", "-c", "ip link set lo up; echo up; exec sleep 60")
	child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
	up, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		child.Process.Kill()
		child.Wait()
	}()
	up.Read(make([]byte, 3))
	var client, server net.Conn
	inside := func() error {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer l.Close()
		client, err = net.Dial("tcp", l.Addr().String())
		if err != nil {
			return err
		}
		server, err = l.Accept()
		return err
	}
	if err := sockdiag.InNamespace(fmt.Sprintf("/proc/%d/ns/net", child.Process.Pid), inside); err != nil {
		t.Fatalf("a connection in the namespace: %v", err)
	}
	defer client.Close()
	defer server.Close()
	cfg := Config{Namespaces: true, Every: 100 * time.Millisecond, Sample: 20 * time.Millisecond,
		Match: Match{Local: true, Ports: []uint16{uint16(server.LocalAddr().(*net.TCPAddr).Port)}}}
	w := newWatcher(cfg.complete())
	if err := w.open(); err != nil {
		t.Fatal(err)
	}
	defer w.close()
	if err := w.begin(); err != nil {
		t.Fatal(err)
	}
	is, err := os.Stat(fmt.Sprintf("/proc/%d/ns/net", child.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	entered := func() bool {
		for _, one := range w.netns.open {
			if os.SameFile(is, one.is) {
				return true
			}
		}
		return false
	}
	if !entered() {
		t.Fatalf("%d namespaces are entered, %d refused, not the container's", len(w.netns.open), w.netns.refused)
	}
	var last View
	period := func() {
		t.Helper()
		if err := w.period(func(v *View) error { last = *v; return nil }, false); err != nil {
			t.Fatal(err)
		}
	}
	go client.Write(make([]byte, 50_000))
	if _, err := io.ReadFull(server, make([]byte, 50_000)); err != nil {
		t.Fatal(err)
	}
	seen, turns := 0, len(w.netns.open)+1
	for range turns {
		period()
		for _, s := range last.Connections {
			if seen++; s.Bytes() != 50_000 || s.Length <= 0 || s.Owner.PID != os.Getpid() {
				t.Errorf("%d bytes in %v of %+v", s.Bytes(), s.Length, s.Owner)
			}
		}
	}
	if want := (Totals{Sent: 50_000, Received: 50_000}); seen != 2 || last.Totals != want || last.Standing != 2 {
		t.Errorf("%d ends are reported, %+v, %d open", seen, last.Totals, last.Standing)
	}
	child.Process.Kill()
	child.Wait()
	for range 3 {
		period()
		if want := (Totals{Sent: 50_000, Received: 50_000, Unfinished: 2}); last.Totals != want || last.Standing != 0 {
			t.Errorf("without its process: %+v, %d open", last.Totals, last.Standing)
		}
	}
	if entered() {
		t.Error("a namespace without a process is kept")
	}
}

// TestEverywhereAsNobody: without privilege only the own namespace is seen, and the view reports the others.
func TestEverywhereAsNobody(t *testing.T) {
	p := netnsWatchers{refused: 2, hidden: 3}
	if got := p.unread(); len(got) != 2 {
		t.Errorf("%+v", got)
	}
	ctx, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer stop()
	views := 0
	err := Run(ctx, Config{Namespaces: true, Every: 100 * time.Millisecond},
		func(*View) error { views++; return nil })
	if !errors.Is(err, context.DeadlineExceeded) || views == 0 {
		t.Errorf("%d views, %v", views, err)
	}
}
