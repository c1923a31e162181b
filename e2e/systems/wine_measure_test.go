//go:build linux

package systems

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
)

// testWineMeasure measures and tunes with the Windows build against this host.
func testWineMeasure(t *testing.T, w *wine) {
	program := harness.Program(t)
	serve := exec.Command(program, "serve", "--listen", "127.0.0.1:0", "--iperf3", "--json")
	events, err := serve.StdoutPipe()
	if err == nil {
		err = serve.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = serve.Process.Kill(); _ = serve.Wait() }()
	var ready struct{ Listen, Key string }
	if err := json.NewDecoder(events).Decode(&ready); err != nil {
		t.Fatal(err)
	}
	w.write("key", ready.Key+"\n")
	doc := w.fullpipe(0, "measure", ready.Listen, "--key-file", "key", "--bytes", "1MB", "--direction", "both")
	directions, _ := doc["directions"].([]any)
	for _, d := range directions {
		if d := d.(map[string]any); d["bytes"] != 1e6 {
			t.Errorf("%v: %v bytes", d["direction"], d["bytes"])
		}
	}
	near, _ := doc["near"].(map[string]any)
	if !strings.HasPrefix(fmt.Sprint(near["kernel"]), "windows ") || len(directions) != 2 {
		t.Errorf("%d directions, near %v", len(directions), doc["near"])
	}
	doc = w.fullpipe(0, "measure", "iperf3://"+ready.Listen, "--bytes", "1MB")
	if directions, _ := doc["directions"].([]any); len(directions) != 1 {
		t.Errorf("iperf3: %v", doc)
	}
	out, status := w.run(w.exe, "tune", ready.Listen, "--key-file", "key", "--budget", "2s", "--json")
	var tuned map[string]any
	if err := json.Unmarshal([]byte(out), &tuned); err != nil || status != 0 && status != 3 {
		t.Fatalf("tune: status %d, %v\n%s", status, err, out)
	}
	if directions, _ := tuned["directions"].([]any); len(directions) != 1 {
		t.Errorf("tune: %v", tuned)
	}
}

// testWineWatch watches two connections of a fake library that counts as Windows does: only after an Administrator
// turned it on, and as long as it is on.
func testWineWatch(t *testing.T, w *wine) {
	system := filepath.Join(w.dir, "prefix/drive_c/windows/system32/iphlpapi.dll")
	own, err := os.ReadFile(system)
	if err != nil {
		t.Fatal(err)
	}
	defer func(env []string) {
		w.env = env
		if err := os.WriteFile(system, own, 0o644); err != nil {
			t.Error(err)
		}
	}(w.env)
	if err := os.Remove(system); err != nil {
		t.Fatal(err)
	}
	w.must(exec.Command("x86_64-w64-mingw32-gcc", "-shared", "-o", system, "testdata/iphlpapi.c", "-lws2_32"))
	w.env = append(slices.Clone(w.env), "WINEDLLOVERRIDES=mscoree,mshtml=;iphlpapi=n")

	refused := w.fullpipe(1, "watch", "--for", "1s")
	if failure, _ := refused["error"].(map[string]any); failure["code"] != "not-supported" ||
		!strings.Contains(fmt.Sprint(failure["try"]), "--count") {
		t.Errorf("without counting: %v", refused["error"])
	}
	if counted, err := os.ReadFile(filepath.Join(w.dir, "prefix/drive_c/counted")); err == nil {
		t.Errorf("it was let count all the same: %q", counted)
	}
	doc := w.fullpipe(0, "watch", "--count", "--for", "3s")
	want := map[string]string{"192.0.2.7:443": "receiver-window", "[2000::2]:22": "application"}
	connections, _ := doc["connections"].([]any)
	for _, c := range connections {
		c := c.(map[string]any)
		remote, _ := c["remote"].(string)
		up, _ := c["directions"].([]any)[0].(map[string]any)
		if up["limiter"] != want[remote] || up["direction"] != "up" || c["program"] != "fullpipe.exe" {
			t.Errorf("%s: %v, %v of %v: %v", remote, up["direction"], up["limiter"], c["program"], up)
		}
		least := map[string]any{"192.0.2.7:443": 0.064}[remote] // the other one may have had a queue before
		if bps, _ := up["goodput_bps"].(float64); bps < 3e6 || bps > 9e6 || up["rtt_s"] != 0.065 || up["rtt_min_s"] != least {
			t.Errorf("%s: %v bit/s of 8 Mbit/s, round trip %v of %v", remote, up["goodput_bps"], up["rtt_min_s"], up["rtt_s"])
		}
		delete(want, remote)
	}
	if len(want) > 0 {
		t.Errorf("not seen: %v of %v", want, doc)
	}
	counted, err := os.ReadFile(filepath.Join(w.dir, "prefix/drive_c/counted"))
	if lines := strings.Fields(string(counted)); err != nil || len(lines) != 24 || lines[11] != "12" || lines[23] != "0" {
		t.Errorf("groups that counted, as it went: %q, %v", counted, err)
	}
}
