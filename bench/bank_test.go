//go:build linux

package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// bankRow is one line of benchmarks.jsonl; Verdict is pass, fail or inconclusive.
type bankRow struct {
	Section  string `json:"section"`
	Case     string `json:"case"`
	Claim    string `json:"claim"`
	Measured string `json:"measured"`
	Spread   string `json:"spread"`
	Verdict  string `json:"verdict"`
	Late     string `json:"late,omitempty"` // how exact the lab was
	Command  string `json:"command"`
	Machine  string `json:"machine"` // filled in by record
	At       string `json:"at"`
}

// bankOnly skips a measuring test outside of the bank.
func bankOnly(t *testing.T) {
	t.Helper()
	testenv.Need(t, testenv.Quiet)
}

// machine returns a line that describes the machine of the measurements.
func machine() string {
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		kernel = []byte("unknown")
	}
	cpu := "unknown CPU"
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if _, rest, ok := strings.Cut(string(info), "model name\t: "); ok {
			cpu, _, _ = strings.Cut(rest, "\n")
		}
	}
	return fmt.Sprintf("%d × %s, Linux %s, %s", runtime.NumCPU(), cpu, strings.TrimSpace(string(kernel)),
		runtime.Version())
}

// bankMu guards the file that rows are appended to.
var bankMu sync.Mutex

// record appends a row to the bank's file and logs it.
func record(t *testing.T, row bankRow) {
	t.Helper()
	t.Logf("%s | %s | %s | %s (%s): %s", row.Section, row.Case, row.Claim, row.Measured, row.Spread, row.Verdict)
	name := os.Getenv("FULLPIPE_BANK_OUT")
	if name == "" {
		return
	}
	row.Machine, row.At = machine(), time.Now().UTC().Format("2006-01-02 15:04 MST")
	line, err := json.Marshal(row)
	if err != nil {
		t.Fatal(err)
	}
	bankMu.Lock()
	defer bankMu.Unlock()
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}
