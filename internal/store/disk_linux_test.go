package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/store/pgtest"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// Environment of the child process of TestStore_FullAndReadOnlyDisks: a disk of 1 MiB, and the history's URL.
const diskVariable, diskURLVariable = "FULLPIPE_TEST_DISK", "FULLPIPE_TEST_DISK_URL"

// TestStore_FullAndReadOnlyDisks: a full disk refuses new results with an error, stored results stay readable, and
// writing works again once there is space. A read-only disk allows reading a file's history and writing a server's.
func TestStore_FullAndReadOnlyDisks(t *testing.T) {
	testenv.Need(t, testenv.MountNamespace)
	test := func(t *testing.T, url string) {
		dir := t.TempDir()
		child := exec.Command("sh", "-c", `mount -t tmpfs -o size=1m none "$1" || exit; exec "$2" -test.run '^TestOnSmallDisk$' -test.v`,
			"sh", dir, os.Args[0])
		child.Env = append(os.Environ(), diskVariable+"="+dir, diskURLVariable+"="+url)
		child.SysProcAttr = testenv.Namespaces(syscall.CLONE_NEWNS)
		out, err := child.CombinedOutput()
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		t.Logf("%s", out)
	}
	t.Run("sqlite", func(t *testing.T) { test(t, "") })
	t.Run("postgres", func(t *testing.T) { test(t, pgtest.Shared(t).URL(t)) })
}

// TestOnSmallDisk is the child process of TestStore_FullAndReadOnlyDisks.
func TestOnSmallDisk(t *testing.T) {
	if dir := os.Getenv(diskVariable); dir != "" {
		must.Do(t, onSmallDisk(dir, os.Getenv(diskURLVariable)))
	}
}

// fill writes a file until the disk is full.
func fill(name string) error {
	f, err := os.Create(name)
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return err
	}
	return f.Close()
}

func onSmallDisk(dir, url string) error {
	ctx, rng := context.Background(), rand.NewChaCha8([32]byte{})
	keep := func(s *Store, n int) error {
		doc, err := document(n, "b", 1e6)
		if err != nil {
			return err
		}
		noise := make([]byte, 2000)
		rng.Read(noise)
		return s.Keep(ctx, doc, fmt.Appendf(nil, `{"x":"%x"}`, noise))
	}
	// checkKept compares the stored results with those that Keep confirmed.
	kept := func(s *Store, want int) error {
		runs, err := s.List(ctx, Filter{})
		if err != nil {
			return fmt.Errorf("list: %w", err)
		}
		if len(runs) != want {
			return fmt.Errorf("%d results of %d", len(runs), want)
		}
		for _, r := range runs {
			if _, samples, err := s.Get(ctx, r.ID); err != nil || len(samples) != 4008 {
				return fmt.Errorf("%s: %d bytes of samples, %w", r.ID, len(samples), err)
			}
		}
		return nil
	}
	forget := func(s *Store) error {
		runs, err := s.List(ctx, Filter{})
		if err != nil {
			return err
		}
		return s.Forget(ctx, runs[0].ID)
	}
	// checkRefused checks that the error has advice.
	refused := func(s *Store, unkept error) error {
		for doing, err := range map[string]error{"keep": unkept, "forget": forget(s)} {
			var full *FullError
			if !errors.As(err, &full) || full.Try() == "" {
				return fmt.Errorf("%s on a full disk: %v", doing, err)
			}
		}
		return nil
	}
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 400<<10), 0o600); err != nil {
		return err
	}
	first := url
	if url != "" {
		first = "postgres://127.0.0.1:1/away"
	}
	s, err := OpenAt(ctx, dir, first)
	if err != nil {
		return err
	}
	n := 0
	for ; ; n++ {
		err = keep(s, n)
		if err != nil && !errors.As(err, new(*Waiting)) {
			break
		}
		if n == 2000 {
			return errors.New("the disk never fills")
		}
	}
	fmt.Printf("after %d: %v\n", n, err)
	if n < 5 || !strings.Contains(err.Error(), "full") && !errors.Is(err, syscall.ENOSPC) {
		return err
	}
	if s.outbox == nil {
		if err := kept(s, n); err != nil {
			return fmt.Errorf("on the full disk: %w", err)
		}
		if err := errors.Join(refused(s, err), kept(s, n)); err != nil {
			return err
		}
	}
	s.Close()
	if left, _ := filepath.Glob(filepath.Join(dir, "outbox", ".new-"+"*")); len(left) > 0 {
		return fmt.Errorf("left half written: %q", left)
	}
	s, err = OpenAt(ctx, dir, url)
	if err != nil {
		return err
	}
	if s.outbox != nil { // without outbox space the server stores at once
		if err := keep(s, n); err != nil {
			return fmt.Errorf("with a full outbox: %w", err)
		}
		if err := errors.Join(s.Deliver(ctx), kept(s, n+1)); err != nil {
			return fmt.Errorf("delivered: %w", err)
		}
	}
	if err := errors.Join(os.Remove(ballast), keep(s, n), kept(s, n+1), s.Close()); err != nil {
		return fmt.Errorf("with room again: %w", err)
	}
	if url == "" { // a full disk with a history that no process has open
		if err := fill(ballast); err != nil {
			return err
		}
		s, err = OpenAt(ctx, dir, url)
		if !errors.As(err, new(*FullError)) {
			return fmt.Errorf("opened on a full disk: %v", err)
		}
		err = os.Remove(ballast)
		if err == nil {
			s, err = OpenAt(ctx, dir, url)
		}
		if err != nil {
			return err
		}
		if err := errors.Join(forget(s), kept(s, n), keep(s, n+1), kept(s, n+1), s.Close()); err != nil {
			return fmt.Errorf("forgotten with room again: %w", err)
		}
	}
	if err := syscall.Mount("none", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		return err
	}
	s, err = OpenAt(ctx, dir, url)
	if err != nil {
		return fmt.Errorf("read-only: %w", err)
	}
	defer s.Close()
	n++
	err = keep(s, n)
	fmt.Printf("read-only: %v\n", err)
	if s.outbox == nil {
		if err == nil {
			return errors.New("kept where nothing can be written")
		}
		n--
	} else if err != nil {
		return err
	}
	return kept(s, n+1)
}
