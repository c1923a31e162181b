package sweep

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/atomicfile"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func identity() Identity {
	return Identity{Peer: "host", Axes: plane([]int{8192, 0}, []int{65536}), Time: time.Second, Seed: 1}
}

func open(t testing.TB, path string, id Identity) (*Journal, error) {
	t.Helper()
	file, err := atomicfile.Edit(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return OpenJournal(file, id)
}

func begun(t *testing.T, path string, runs int) {
	t.Helper()
	j, err := open(t, path, identity())
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if err := j.Meet(Ends{&record.Host{Address: "192.0.2.1", Kernel: "Linux 6.18"},
		&record.Host{Address: "192.0.2.2", Kernel: "Linux 6.1"}}); err != nil {
		t.Fatal(err)
	}
	for i := range runs {
		again := int64(3)
		if err := j.Add(Trial{Cell: i % 2, Elapsed: time.Second, GoodputBps: 1e6, Send: &transfer.Buffer{Requested: 8192},
			Retransmitted: &again}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestJournal_Truncated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sweep.jsonl")
	begun(t, path, 3)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// After truncation at any byte, the complete lines remain and the next run follows them.
	for cut := 0; cut < len(whole); cut += 1 + cut%13 {
		if err := os.WriteFile(path, whole[:cut], 0o644); err != nil {
			t.Fatal(err)
		}
		j, err := open(t, path, identity())
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		kept := max(0, bytes.Count(whole[:cut], []byte("\n"))-2)
		if len(j.Runs) != kept {
			t.Fatalf("cut at %d: %d runs, want %d", cut, len(j.Runs), kept)
		}
		if err := j.Add(Trial{Cell: 1, Elapsed: 2 * time.Second, GoodputBps: 2e6}); err != nil {
			t.Fatal(err)
		}
		j.Close()
		again, err := open(t, path, identity())
		if err != nil || len(again.Runs) != kept+1 || again.Runs[kept].GoodputBps != 2e6 {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		again.Close()
	}
}

func TestOpenJournal_OtherSweep(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sweep.jsonl")
	begun(t, path, 1)
	before, _ := os.ReadFile(path)
	for want, change := range map[string]func(*Identity){
		"with host, not with other": func(id *Identity) { id.Peer = "other" },
		"another grid":              func(id *Identity) { id.Axes.Send = []int{8192} },
		"directions [up]":           func(id *Identity) { id.Axes.Directions = []transfer.Direction{transfer.Down} },
		"congestion controls":       func(id *Identity) { id.Axes.Congestion = []string{"bbr"} },
		"runs of 1s":                func(id *Identity) { id.Time = 2 * time.Second },
		"seed 1":                    func(id *Identity) { id.Seed = 2 },
	} {
		id := identity()
		change(&id)
		_, err := open(t, path, id)
		var refused *JournalError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), want) || refused.Try() == "" {
			t.Errorf("%v; want %q", err, want)
		}
	}
	j, err := open(t, path, identity())
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for _, far := range []*record.Host{{Address: "192.0.2.9", Kernel: "Linux 6.1"},
		{Address: "192.0.2.2", Kernel: "Linux 6.2"}, nil} {
		err := j.Meet(Ends{&record.Host{Address: "192.0.2.1", Kernel: "Linux 6.18"}, far})
		if err == nil || !strings.Contains(err.Error(), "began with 192.0.2.2 Linux 6.1 as the far host") {
			t.Errorf("with %v: %v", far, err)
		}
	}
	if err := j.Meet(Ends{&record.Host{Address: "192.0.2.77", Kernel: "Linux 6.18"},
		&record.Host{Address: "192.0.2.2", Kernel: "Linux 6.1"}}); err != nil {
		t.Errorf("this host has another address: %v", err)
	}
	other, err := open(t, path, identity())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := other.Add(Trial{GoodputBps: 1}); err != nil {
		t.Fatal(err)
	}
	if err := j.Add(Trial{GoodputBps: 1}); err == nil || !strings.Contains(err.Error(), "something else writes") {
		t.Errorf("two sweeps write to one file: %v", err)
	}
	if after, _ := os.ReadFile(path); !bytes.HasPrefix(after, before) {
		t.Error("earlier lines changed")
	}
	// A file that is no journal does not change.
	for _, text := range []string{"precious", "{\"precious\":1}\n", "precious\n"} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := open(t, path, identity()); err == nil {
			t.Errorf("%q was taken for a journal", text)
		}
		if after, _ := os.ReadFile(path); string(after) != text {
			t.Errorf("%q became %q", text, after)
		}
	}
}

func FuzzParseJournal(f *testing.F) {
	path := filepath.Join(f.TempDir(), "sweep.jsonl")
	j, err := open(f, path, identity())
	if err != nil {
		f.Fatal(err)
	}
	j.Add(Trial{Cell: 1, GoodputBps: 1e6})
	j.Close()
	text, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		j, whole, err := parseJournal(text)
		if err != nil {
			return
		}
		if whole > len(text) || whole > 0 && text[whole-1] != '\n' {
			t.Errorf("%d of %d bytes are whole lines", whole, len(text))
		}
		if whole == 0 {
			return
		}
		s := NewSchedule(j.Identity.Axes, Rules{Precision: 0.03, Budget: time.Second})
		for _, r := range j.Runs {
			s.Observe(r)
		}
		s.Next()
		s.Sure()
	})
}
