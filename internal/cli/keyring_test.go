package cli

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/cli/serverkey"
	"github.com/fullpipe-net/fullpipe/internal/config"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// keysIn returns the secrets of a file by name.
func keysIn(t *testing.T, file string) map[string]string {
	t.Helper()
	k := must.Get(serverkey.ReadKeys(t.Context(), file))(t)
	secrets := map[string]string{}
	for name, h := range k.Key {
		secrets[name] = h.Secret
	}
	return secrets
}

// TestKey_ConcurrentProcessesLoseNothing makes keys in one file by processes that all run at once: each
// makes one key, and all of them also the same one, which one of them gets.
func TestKey_ConcurrentProcessesLoseNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "keys.toml")
	const processes = 30
	var made [processes]string
	var shared [processes]int
	var wait sync.WaitGroup
	for i := range processes {
		wait.Go(func() {
			var out bytes.Buffer
			cmd := program(t, "key", "new", fmt.Sprintf("k%d", i), "--keys", file)
			cmd.Stdout = &out
			if status, errs := ended(t, cmd); status != 0 {
				t.Errorf("k%d: status %d: %s", i, status, errs)
			}
			made[i] = strings.TrimSpace(out.String())
			shared[i], _ = ended(t, program(t, "key", "new", "shared", "--keys", file))
		})
	}
	wait.Wait()
	got, won := keysIn(t, file), 0
	for i, secret := range made {
		if got[fmt.Sprintf("k%d", i)] != secret || secret == "" {
			t.Errorf("k%d is lost", i)
		}
		if shared[i] == 0 {
			won++
		}
	}
	if len(got) != processes+1 || won != 1 {
		t.Errorf("%d keys; the same name was given %d times", len(got), won)
	}
	onlyFile(t, dir, "keys.toml")
}

// onlyFile checks that nothing else is left in a directory.
func onlyFile(t *testing.T, dir, name string) {
	t.Helper()
	left := must.Get(os.ReadDir(dir))(t)
	for _, f := range left {
		if f.Name() != name && (runtime.GOOS != "windows" || !strings.HasSuffix(f.Name(), ".lock")) {
			t.Errorf("left behind: %s", f.Name())
		}
	}
}

// TestKey_KilledProcessesLoseNothing kills processes that rotate a key, at any moment: the file stays
// whole, a key that was printed is in it, and the next process removes their temporary files.
func TestKey_KilledProcessesLoseNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "keys.toml")
	rotate := func() (*bytes.Buffer, func(after time.Duration) bool) {
		var out bytes.Buffer
		cmd := program(t, "key", "rotate", "a", "--keys", file, "--overlap", "1h")
		cmd.Stdout = &out
		must.Do(t, cmd.Start())
		return &out, func(after time.Duration) bool {
			timer := time.AfterFunc(after, func() { cmd.Process.Kill() })
			defer timer.Stop()
			return cmd.Wait() == nil
		}
	}
	if status, errs := ended(t, program(t, "key", "new", "a", "--keys", file)); status != 0 {
		t.Fatal(errs)
	}
	began := time.Now()
	if _, end := rotate(); !end(time.Hour) {
		t.Fatal("not rotated")
	}
	took := time.Since(began)
	seed := uint64(began.UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	printed, killed := map[string]bool{}, 0
	for range 50 {
		before := keysIn(t, file)
		out, end := rotate()
		if !end(took/4 + time.Duration(random.Int64N(int64(took)))) {
			killed++
		}
		if key := strings.TrimSpace(out.String()); len(key) == 64 {
			printed[key] = true
		}
		after := keysIn(t, file)
		secrets := map[string]bool{}
		for _, secret := range after {
			secrets[secret] = true
		}
		for _, secret := range before {
			if !secrets[secret] {
				t.Fatalf("seed %d: a key is lost", seed)
			}
		}
		for secret := range printed {
			if !secrets[secret] {
				t.Fatalf("seed %d: a key that was printed is lost", seed)
			}
		}
	}
	t.Logf("%d of 50 were killed, %d keys", killed, len(keysIn(t, file)))
	if _, end := rotate(); !end(time.Hour) {
		t.Fatal("not rotated after the kills")
	}
	onlyFile(t, dir, "keys.toml")
}

func TestHolders_RefuseInvalidKeys(t *testing.T) {
	key := probe.NewKey().String()
	for _, tt := range []struct{ name, a, b, want string }{
		{"two keys", key, probe.NewKey().String(), ""},
		{"the same text", key, key, "distinguished"},
		{"the same key in capitals", key, strings.ToUpper(key), "distinguished"},
		{"the same key with space around it", key, " " + key + "\t", "distinguished"},
		{"too short", key, key[:62], "not a key"},
		{"no digits", key, strings.Repeat("x", 64), "not a key"},
	} {
		k, err := config.ParseKeys([]byte(fmt.Sprintf("[key.a]\nsecret = %q\n[key.b]\nsecret = %q\n", tt.a, tt.b)))
		if err != nil {
			t.Fatal(err)
		}
		all, err := serverkey.Holders(k)
		if tt.want == "" && (err != nil || len(all) != 2) || tt.want != "" && (err == nil ||
			!strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %d holders, %v", tt.name, len(all), err)
		}
	}
}
