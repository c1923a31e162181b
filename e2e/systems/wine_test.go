//go:build linux

package systems

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/audit"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// wine runs Windows programs in a prefix of its own: a registry and a C: drive that end
// with the test.
type wine struct {
	t   *testing.T
	dir string // where programs run
	env []string
	exe string // fullpipe.exe
}

func newWine(t *testing.T) *wine {
	t.Helper()
	const compiler = "x86_64-w64-mingw32-gcc"
	testenv.Need(t, testenv.Wine, testenv.MinGW)
	dir := t.TempDir()
	prefix := filepath.Join(dir, "prefix")
	w := &wine{t: t, dir: dir, exe: filepath.Join(dir, "fullpipe.exe"), env: append(os.Environ(), "WINEPREFIX="+prefix,
		"WINEDEBUG=-all",
		"WINEDLLOVERRIDES=mscoree,mshtml=", "DISPLAY=", "HOME="+dir, "FULLPIPE_STATE=C:\\state")}
	build := exec.Command("go", "build", "-o", w.exe, "github.com/fullpipe-net/fullpipe/cmd/fullpipe")
	build.Env = append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
	w.must(build)
	boot := exec.Command("wineboot", "--init")
	boot.Env = w.env
	t.Cleanup(func() {
		stop := exec.Command("wineserver", "-k", "-w") // the one of this prefix
		stop.Env = w.env
		stop.Run()
	})
	w.must(boot)
	w.must(exec.Command(compiler, "-shared", "-o", filepath.Join(prefix, "drive_c/windows/system32/bcryptprimitives.dll"),
		"testdata/bcryptprimitives.c", "-ladvapi32"))
	return w
}

func (w *wine) must(cmd *exec.Cmd) {
	w.t.Helper()
	if out, problems, err := w.output(cmd); err != nil {
		w.t.Fatalf("%v: %v\n%s%s", cmd, err, out, problems)
	}
}

// output runs a program with files for its output: the background services that Wine
// starts keep what they inherit, and a pipe would wait for them.
func (w *wine) output(cmd *exec.Cmd) (out, problems string, err error) {
	w.t.Helper()
	var texts [2]string
	var files [2]*os.File
	for i := range files {
		if files[i], err = os.CreateTemp(w.dir, "output"); err != nil {
			w.t.Fatal(err)
		}
		defer files[i].Close()
	}
	cmd.Stdout, cmd.Stderr = files[0], files[1]
	err = cmd.Run()
	for i, f := range files {
		text, readErr := os.ReadFile(f.Name())
		if readErr != nil {
			w.t.Fatal(readErr)
		}
		texts[i] = string(text)
	}
	return texts[0], texts[1], err
}

// run runs a Windows program and returns its output and its status. On a busy machine Wine fails to start a program
// about once in a hundred times, without a message or with notStarted. That is not the program's fault, and run
// starts it again.
func (w *wine) run(program string, args ...string) (string, int) {
	w.t.Helper()
	const notStarted = "Application could not be started"
	for try := 1; ; try++ {
		cmd := exec.Command("wine", append([]string{program}, args...)...)
		cmd.Dir, cmd.Env = w.dir, w.env
		out, problems, err := w.output(cmd)
		var ended *exec.ExitError
		if err != nil && !errors.As(err, &ended) {
			w.t.Fatal(err)
		}
		if said := out + problems; err != nil && (said == "" || strings.Contains(said, notStarted)) && try < 4 {
			w.t.Logf("Wine did not start %s %s: %v", filepath.Base(program), strings.Join(args, " "), err)
			continue
		}
		if problems != "" {
			w.t.Logf("%s %s: %s", filepath.Base(program), strings.Join(args, " "), problems)
		}
		return out, cmd.ProcessState.ExitCode()
	}
}

// fullpipe runs fullpipe.exe with --json and reads what it printed.
func (w *wine) fullpipe(wantStatus int, args ...string) map[string]any {
	w.t.Helper()
	out, status := w.run(w.exe, append(args, "--json")...)
	var doc map[string]any
	if err := json.Unmarshal([]byte(out), &doc); err != nil || status != wantStatus {
		w.t.Fatalf("fullpipe %s: status %d, want %d, %v\n%s", strings.Join(args, " "), status, wantStatus, err, out)
	}
	return doc
}

func (w *wine) write(name, text string) string {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
	return name
}

var queried = regexp.MustCompile(`(?m)^\s+(\S+)\s+(REG_\w+)\s+(.*?)\r?$`)

// query reads a value back with Windows' own tool, as "REG_DWORD 65535", or "" if there is none.
func (w *wine) query(key, name string) string {
	w.t.Helper()
	out, status := w.run("reg", "query", key, "/v", name)
	m := queried.FindStringSubmatch(out)
	switch {
	case m == nil && status == 1 && strings.Contains(out, "Unable to find"):
		return ""
	case m == nil || m[1] != name:
		w.t.Fatalf("reg query %s: status %d, %q", name, status, out)
	}
	if n, err := strconv.ParseUint(m[3], 0, 64); err == nil && m[2] == "REG_DWORD" {
		return fmt.Sprintf("%s %d", m[2], n)
	}
	return m[2] + " " + m[3]
}

func (w *wine) add(key, name, kind, value string) {
	w.t.Helper()
	if out, status := w.run("reg", "add", key, "/v", name, "/t", kind, "/d", value, "/f"); status != 0 {
		w.t.Fatalf("reg add %s: %s", name, out)
	}
}

const (
	afd       = `HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\AFD\Parameters`
	tcpip     = `HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters`
	anAdapter = tcpip + `\Interfaces\{6a0b9e0c-0000-4000-8000-000000000001}`
)

// planOf returns a plan's JSON with registry settings.
func planOf(settings ...string) string {
	return `{"schema":"fullpipe/plan/v1","settings":[` + strings.Join(settings, ",") + `]}`
}

func registrySetting(key, name, kind, value string) string {
	return fmt.Sprintf(`{"role":"both","name":%q,"where":%q,"type":%q,"value":%q}`, name, key, kind, value)
}

// TestWine runs the Windows build on Wine's registry.
func TestWine(t *testing.T) {
	t.Parallel()
	testenv.Need(t, testenv.Wine, testenv.MinGW, testenv.NetworkNamespace)
	if !testenv.Inside(t, syscall.CLONE_NEWNET) {
		return
	}
	// Any user may open an ICMP socket under Wine, a datagram one, which Windows lacks.
	if err := os.WriteFile("/proc/sys/net/ipv4/ping_group_range", []byte("0 0"), 0); err != nil {
		t.Fatal(err)
	}
	w := newWine(t)
	t.Run("apply and undo", func(t *testing.T) { w.t = t; testWineApply(t, w) })
	t.Run("conflict", func(t *testing.T) { w.t = t; testWineConflict(t, w) })
	t.Run("refused", func(t *testing.T) { w.t = t; testWineRefused(t, w) })
	t.Run("audit", func(t *testing.T) { w.t = t; testWineAudit(t, w) })
	t.Run("measure", func(t *testing.T) { w.t = t; testWineMeasure(t, w) })
	t.Run("watch", func(t *testing.T) { w.t = t; testWineWatch(t, w) })
	t.Run("reg files", func(t *testing.T) { w.t = t; testWineRegFiles(t, w) })
}

func testWineApply(t *testing.T, w *wine) {
	w.add(afd, "DefaultSendWindow", "REG_SZ", "was a string")
	plan := w.write("plan.json", planOf(registrySetting(afd, "DefaultSendWindow", "dword", "502240"),
		registrySetting(anAdapter, "MTU", "dword", "1400")))
	preview := w.fullpipe(0, "apply", "--dry-run", plan)
	if preview["applied"] != false || w.query(anAdapter, "MTU") != "" {
		t.Errorf("a dry run changed something: %v", preview)
	}
	done := w.fullpipe(0, "apply", "--yes", plan)
	if done["applied"] != true || done["scope"] != "this host, after a restart too" {
		t.Errorf("apply: %v", done)
	}
	if send, mtu := w.query(afd, "DefaultSendWindow"), w.query(anAdapter, "MTU"); send != "REG_DWORD 502240" ||
		mtu != "REG_DWORD 1400" {
		t.Errorf("the registry has %q and %q", send, mtu)
	}
	if again := w.fullpipe(0, "apply", "--yes", plan); again["applied"] != true {
		t.Errorf("apply again: %v", again)
	}
	status := w.fullpipe(0, "status")
	if settings := status["settings"].([]any); len(settings) != 2 || settings[0].(map[string]any)["is"] != "ours" {
		t.Errorf("status: %v", status)
	}
	w.fullpipe(0, "undo")
	if send, mtu := w.query(afd, "DefaultSendWindow"), w.query(anAdapter, "MTU"); send != "REG_SZ was a string" ||
		mtu != "" {
		t.Errorf("undo left %q and %q", send, mtu)
	}
	if status := w.fullpipe(0, "status"); len(status["settings"].([]any)) != 0 {
		t.Errorf("status after undo: %v", status)
	}
}

// testWineConflict changes a value behind fullpipe's back.
func testWineConflict(t *testing.T, w *wine) {
	plan := w.write("plan.json", planOf(registrySetting(anAdapter, "MTU", "dword", "1400")))
	w.fullpipe(0, "apply", "--yes", plan)
	w.add(anAdapter, "MTU", "REG_DWORD", "1300")
	w.fullpipe(3, "undo")
	if mtu := w.query(anAdapter, "MTU"); mtu != "REG_DWORD 1300" {
		t.Errorf("undo overwrote somebody else's value: %q", mtu)
	}
	if out, status := w.run(w.exe, "undo", "--forget", anAdapter+`\MTU`); status != 0 {
		t.Errorf("forget: status %d, %s", status, out)
	}
}

// testWineRefused requests settings that Windows ignores, a key outside the network's keys, and settings that only
// the cmdlets can set, which Wine lacks.
func testWineRefused(t *testing.T, w *wine) {
	run := `HKEY_LOCAL_MACHINE\SOFTWARE\Microsoft\Windows\CurrentVersion\Run`
	for _, c := range []struct{ plan, message string }{
		{planOf(registrySetting(tcpip, "TcpWindowSize", "dword", "65535")), "ignores it"},
		{planOf(registrySetting(run, "evil", "string", "calc.exe")), "not one of the network's keys"},
		{planOf(`{"role":"receiver","name":"AutoTuningLevelLocal","where":"Set-NetTCPSetting -AutoTuningLevelLocal",` +
			`"value":"Normal"}`), "Get-NetTCPSetting"},
	} {
		doc := w.fullpipe(1, "apply", "--yes", w.write("plan.json", c.plan))
		failure, _ := doc["error"].(map[string]any)
		if message, _ := failure["message"].(string); !strings.Contains(message, c.message) {
			t.Errorf("%s: %v, want %q", c.plan, doc["error"], c.message)
		}
	}
	if w.query(tcpip, "TcpWindowSize") != "" || w.query(run, "evil") != "" {
		t.Error("a refused value was written")
	}
}

func testWineAudit(t *testing.T, w *wine) {
	w.add(tcpip, "TcpWindowSize", "REG_DWORD", "131400")
	w.add(afd, "DefaultReceiveWindow", "REG_DWORD", "65536")
	out, status := w.run(w.exe, "audit", "--rate", "100mbit", "--rtt", "40ms")
	for _, want := range []string{"TcpWindowSize = 131400", "DefaultReceiveWindow = 65536", "NetTCPIP cmdlets"} {
		if !strings.Contains(out, want) {
			t.Errorf("audit (status %d) does not name %q:\n%s", status, want, out)
		}
	}
	snapshot := w.fullpipe(0, "audit", "--collect")
	if values, _ := snapshot["values"].(map[string]any); values["TcpWindowSize"] != "131400" ||
		snapshot["system"] != "windows" {
		t.Errorf("snapshot: %v", snapshot)
	}
	w.add(anAdapter, "MTU", "REG_DWORD", "576")
	w.write("collect.cmd", audit.CollectBatch)
	collected, _ := w.run("cmd", "/c", "collect.cmd")
	read, err := audit.ParseSnapshot([]byte(collected))
	if err != nil || read.Values["TcpWindowSize"] != "0x20148" || read.Values["DefaultReceiveWindow"] != "0x10000" ||
		read.Values["Interfaces/{6a0b9e0c-0000-4000-8000-000000000001}/MTU"] != "0x240" ||
		strings.Contains(collected, "Hostname") {
		t.Errorf("the batch collector: %v, %+v\n%s", err, read, collected)
	}
}

// testWineRegFiles imports the files that plan writes for systems without another way, reads every value back, and
// restores them with the undo files.
func testWineRegFiles(t *testing.T, w *wine) {
	for _, target := range []string{"windows-95", "windows-95-winsock2", "windows-98", "windows-me", "windows-nt4",
		"windows-2000",
		"windows-xp", "server-2003"} {
		args := []string{"plan", "--target", target, "--rate", "100mbit", "--rtt", "40ms"}
		doc := w.fullpipe(0, args...)
		settings := doc["settings"].([]any)
		for _, undo := range []bool{false, true} {
			with := append(args, "--format", "reg")
			if undo {
				with = append(with, "--undo")
			}
			text, status := w.run(w.exe, with...)
			if status != 0 {
				t.Fatalf("%v: status %d", with, status)
			}
			if out, status := w.run("reg", "import", w.write("change.reg", text)); status != 0 {
				t.Errorf("%s: reg import: status %d, %s", target, status, out)
			}
			for _, s := range settings {
				s := s.(map[string]any)
				kind := "REG_DWORD"
				if s["type"] == "string" {
					kind = "REG_SZ"
				}
				want := fmt.Sprintf("%s %v", kind, s["value"])
				if undo {
					want = ""
				}
				if got := w.query(s["where"].(string), s["name"].(string)); got != want {
					t.Errorf("%s, undo %v: %s is %q, want %q", target, undo, s["name"], got, want)
				}
			}
		}
		if len(settings) == 0 {
			t.Errorf("%s: the plan sets nothing", target)
		}
	}
}
