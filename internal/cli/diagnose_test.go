package cli

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
)

const recorded = "../../internal/diagnose/testdata/"

func runDiagnose(t *testing.T, args ...string) (status int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status = run(context.Background(), append([]string{"diagnose"}, args...), console.NewStreams(strings.NewReader(""),
		&stdout,
		&stderr))
	return status, stdout.String(), stderr.String()
}

func TestDiagnose(t *testing.T) {
	file := recorded + "rwnd-64k-100m-40.near.pcap.zst"
	status, text, _ := runDiagnose(t, file)
	if status != 0 || !strings.Contains(text, "35539: 15 Mbit/s, limited by receiver-window (fixed, 78.6 KiB at") ||
		!strings.Contains(text, "the receiver's window of 80,480 bytes was full") {
		t.Errorf("status %d: %s", status, text)
	}

	status, out, errs := runDiagnose(t, "--json", file)
	var doc struct {
		Schema      string
		Connections []struct {
			Handshake  map[string]any
			Vantage    string
			Directions []struct {
				Limiter    string
				Shares     map[string]float64
				GoodputBps float64 `json:"goodput_bps"`
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil || status != 0 || errs != "" {
		t.Fatalf("status %d, %v, %q", status, err, errs)
	}
	if doc.Schema != "fullpipe/diagnose/v1" || len(doc.Connections) != 1 || doc.Connections[0].Vantage != "client" ||
		doc.Connections[0].Directions[0].Limiter != "receiver-window" || doc.Connections[0].Directions[0].GoodputBps < 10e6 {
		t.Errorf("%+v", doc)
	}
	sum := 0.0
	for _, share := range doc.Connections[0].Directions[0].Shares {
		sum += share
	}
	if sum < 0.999 || sum > 1.001 {
		t.Errorf("shares sum to %v", sum)
	}

	_, out, _ = runDiagnose(t, "--csv", file)
	if rows, err := csv.NewReader(strings.NewReader(out)).ReadAll(); err != nil || len(rows) != 2 ||
		len(rows[0]) != len(rows[1]) {
		t.Errorf("%v: %v", err, rows)
	}

	page := filepath.Join(t.TempDir(), "page.html")
	if status, _, errs := runDiagnose(t, file, "--html", page); status != 0 {
		t.Fatal(errs)
	}
	if html, err := os.ReadFile(page); err != nil || !bytes.Contains(html, []byte("<svg")) {
		t.Errorf("%v, %d bytes", err, len(html))
	}

	if status, out, errs := runDiagnose(t, file, "--html", "-"); status != 0 || errs != "" ||
		!strings.HasPrefix(out, "<!doctype html>") || strings.Contains(out, "limited by high") ||
		!strings.HasSuffix(strings.TrimSpace(out), "</html>") {
		t.Errorf("--html -: %d, %q, %.60q", status, errs, out)
	}
	if status, out, _ := runDiagnose(t, file, "--html", "-", "--json"); status != exit.Misused ||
		!strings.Contains(out, "one form") {
		t.Errorf("--html - --json: %d, %q", status, out)
	}
	if _, out, _ := runDiagnose(t, file, "--port", "1"); !strings.Contains(out, "no connection matches") {
		t.Error(out)
	}
}

func TestDiagnoseRefuses(t *testing.T) {
	file := recorded + "short.near.pcap.zst"
	notes := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(notes, []byte("these are notes"), 0o644); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		args   []string
		status int
		says   string
	}{
		{nil, exit.Misused, "no capture was named"},
		{[]string{"/nowhere.pcap"}, exit.Misused, "/nowhere.pcap: there is no such file"},
		{[]string{notes}, exit.Failed, "not a capture"},
		{[]string{file, "--host", "example"}, exit.Misused, "--host"},
		{[]string{"--near", file}, exit.Misused, "both are needed"},
		{[]string{"--interface", "lo", file}, exit.Misused, "reads no file"},
		{[]string{file, "--time", "1s"}, exit.Misused, "--time"},
		{[]string{file, "--fail-on", "p98>1s"}, exit.Misused, "no percentile"},
		{[]string{file, "--fail-on", "p99>50"}, exit.Misused, "no percentile"},
		{[]string{file, "--fail-on", "congestion"}, exit.Misused, "no kind of stall"},
	}
	for _, test := range tests {
		if status, _, errs := runDiagnose(t, test.args...); status != test.status || !strings.Contains(errs, test.says) {
			t.Errorf("%v: status %d: %s", test.args, status, errs)
		}
	}
}

// TestDiagnose_TwoPlaces names two captures of one connection without a flag.
func TestDiagnose_TwoPlaces(t *testing.T) {
	const near = recorded + "reader-5m.near.pcap.zst"
	const far = recorded + "reader-5m.far.pcap.zst"
	const other = recorded + "short.near.pcap.zst"
	page := filepath.Join(t.TempDir(), "page.html")
	for _, files := range [][]string{{near, far}, {far, near}} {
		status, out, errs := runDiagnose(t, append(files, "--details", "--html", page)...)
		if status != 0 || !strings.Contains(out, "judged by the near capture") == (files[0] == near) ||
			!strings.Contains(strings.Join(strings.Fields(out), ""), "--near"+files[0]+"--far"+files[1]) ||
			!strings.Contains(out, "limited by receiver-application") {
			t.Errorf("%v: status %d: %s%s", files, status, out, errs)
		}
		html, err := os.ReadFile(page)
		if err != nil || !bytes.Contains(html, []byte("lost before the first tap 0 B")) {
			t.Errorf("%v: %v: no comparison on the page", files, err)
		}
	}
	status, out, errs := runDiagnose(t, near, near)
	if status != 0 || !strings.Contains(out, "was left out") || strings.Contains(out, "clock") {
		t.Errorf("one file twice: status %d: %s%s", status, out, errs)
	}
	beginning := beginningOf(t, near)
	for _, files := range [][]string{{beginning, near, near}, {near, beginning, near}, {near, near, near}} {
		status, out, errs := runDiagnose(t, files...)
		if status != 0 || strings.Count(out, "was left out") != 2 || strings.Contains(out, "clock") {
			t.Errorf("%v: status %d: %s%s", files, status, out, errs)
		}
	}
	status, _, errs = runDiagnose(t, near, other, far)
	if status != exit.Misused || !strings.Contains(errs, "--near "+near+" --far "+far) {
		t.Errorf("three files: status %d: %s", status, errs)
	}
}

// beginningOf writes the first half of a capture's packets into a file.
func beginningOf(t *testing.T, name string) string {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	all, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	const fileHeader, recordHeader = 24, 16
	at := fileHeader
	for at < len(all)/2 {
		at += recordHeader + int(binary.LittleEndian.Uint32(all[at+8:]))
	}
	to := filepath.Join(t.TempDir(), "beginning.pcap")
	if err := os.WriteFile(to, all[:at], 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}

// TestDiagnose_FailOn judges 251 requests: median 12.2 ms, p99 242 ms, 14 stalls by tail-loss probes.
func TestDiagnose_FailOn(t *testing.T) {
	const requests = "../diagnose/testdata/cases/requests-loss.pcap.zst"
	const bulk = recorded + "short.near.pcap.zst"
	for _, test := range []struct {
		file, criteria string
		status         int
		line           string
	}{
		{requests, "p99>250ms,timeout", exit.Done, "pass  timeout    0 ns"},
		{requests, "p50>5ms", exit.No, "FAIL  p50>5ms  12.2 ms"},
		{requests, "p99>50ms,p50>1s", exit.No, "FAIL  p99>50ms  242 ms"},
		{requests, "nagle,tail-loss-probe", exit.No, "FAIL  tail-loss-probe"},
		{bulk, "p99>10s", exit.No, "unknown: too few requests"},
	} {
		status, out, errs := runDiagnose(t, test.file, "--fail-on", test.criteria)
		if status != test.status || !strings.Contains(out, test.line) {
			t.Errorf("%s: status %d, want %d and %q: %s%s", test.criteria, status, test.status, test.line, out, errs)
		}
	}
}
