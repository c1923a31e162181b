//go:build linux

package systems

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// TestPrometheusReadsWatch has a real Prometheus scrape `watch --listen` with a token, load
// the contributed alerts, and answer a query about what it read.
func TestPrometheusReadsWatch(t *testing.T) {
	t.Parallel()
	prometheus, promtool := testenv.Program(t, testenv.Prometheus), testenv.Program(t, testenv.Promtool)
	program := harness.Program(t)
	dir := t.TempDir()
	const secret = "0123456789abcdef0123"
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	watch := exec.Command(program, "watch", "--local", "--every", "500ms", "--listen", "127.0.0.1:0",
		"--listen-token-file", token)
	output, err := watch.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	harness.StartCommand(t, watch)
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	at := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "serving http://"), "/metrics")

	alerts, err := filepath.Abs("../../contrib/watch/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf(`global: {scrape_interval: 500ms, evaluation_interval: 500ms}
rule_files: [%q]
scrape_configs:
  - job_name: watch
    authorization: {credentials_file: %q}
    static_configs: [{targets: [%q]}]
`, alerts, token, at)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(promtool, "check", "config", config).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	rules, err := filepath.Glob("../../contrib/*/alerts.yml")
	if err != nil || len(rules) < 2 {
		t.Fatalf("%v, %v", rules, err)
	}
	if out, err := exec.Command(promtool, append([]string{"check", "rules"}, rules...)...).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	checkDocumentedScrapes(t, promtool)
	page := scrape(t, at, secret)
	check := exec.Command(promtool, "check", "metrics")
	check.Stdin = strings.NewReader(page)
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v: %s\n%s", err, out, page)
	}

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	api := l.Addr().String()
	l.Close()
	server := exec.Command(prometheus, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+api)
	harness.StartCommand(t, server)
	for until := time.Now().Add(60 * time.Second); time.Now().Before(until); time.Sleep(300 * time.Millisecond) {
		answer, err := http.Get("http://" + api + "/api/v1/query?query=" + url.QueryEscape("fullpipe_watch_connections"))
		if err != nil {
			continue // it is not up yet
		}
		var doc struct {
			Data struct{ Result []struct{ Value [2]any } }
		}
		err = json.NewDecoder(answer.Body).Decode(&doc)
		answer.Body.Close()
		if err == nil && len(doc.Data.Result) == 1 {
			return
		}
	}
	t.Error("Prometheus never had a value")
}

// checkDocumentedScrapes checks the scrape configurations of docs/metrics.md and, for OpenTelemetry's collector, of
// docs/containers.md.
func checkDocumentedScrapes(t *testing.T, promtool string) {
	t.Helper()
	for page, between := range map[string][2]string{
		"metrics.md":    {"```yaml\n", "```"},
		"containers.md": {"    config:\n", "processors:"},
	} {
		text, err := os.ReadFile("../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		_, after, found := strings.Cut(string(text), between[0])
		if !found {
			t.Fatal(page + " has no scrape configuration")
		}
		example, _, _ := strings.Cut(after, between[1])
		file := filepath.Join(t.TempDir(), "documented.yml")
		if err := os.WriteFile(file, []byte(example), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(promtool, "check", "config", "--syntax-only", file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", page, err, out)
		}
	}
}

func scrape(t *testing.T, at, token string) string {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, "http://"+at+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s, %v", answer.Status, err)
	}
	return string(page)
}
