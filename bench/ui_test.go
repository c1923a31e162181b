//go:build linux

package bench

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/lab/stalltest"
	printed "github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// TestBankPages fills a history with 100,000 results of 60 paths and times each page, from
// the request to the last byte.
func TestBankPages(t *testing.T) {
	bankOnly(t)
	const results, paths, times = 100_000, 60, 40
	s, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	newest := harness.FillHistory(t, s, "busy.example.org", results/2)
	other := ""
	for i := range paths - 1 {
		other = harness.FillHistory(t, s, fmt.Sprintf("host%02d.example.org", i), results/2/(paths-1))
	}
	site, open := harness.ServePages(t, s)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	get := func(address string) (text string, took time.Duration) {
		began := time.Now()
		answer, err := client.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s, %v: %.300s", address, answer.Status, err, body)
		}
		return string(body), time.Since(began)
	}
	opened, _ := get(open)
	_, base, _ := strings.Cut(opened, `url=`)
	base, _, _ = strings.Cut(base, `"`)
	base = site.URL + base
	key := printed.SeriesID{Far: "busy.example.org"}.Key()
	for _, page := range []struct{ name, path string }{
		{"all paths", ""}, {"a path with 50,000 results", "paths/" + key},
		{"the same, the last month", "paths/" + key + "?span=month"}, {"a result", "runs/" + newest},
		{"two results", "compare?first=" + newest + "&second=" + other}, {"all paths as JSON", "api/v1/paths"},
		{"500 results as JSON", "api/v1/paths/" + key + "/runs"},
	} {
		get(base + page.path)
		var took []time.Duration
		tries := 0
		for ; len(took) < times && tries < 5*times; tries++ {
			began := stalltest.Now()
			_, one := get(base + page.path)
			if !stalltest.Now().Since(began).Disturbs() { // else the machine was not the page's
				took = append(took, one)
			}
		}
		if len(took) == 0 {
			t.Fatalf("%s: the machine let none of %d requests run", page.name, tries)
		}
		slices.Sort(took)
		row := bankRow{Section: "Pages", Case: page.name, Claim: "less than 200 ms with 100,000 results in the history",
			Measured: fmt.Sprintf("median %.1f ms", 1e3*took[len(took)/2].Seconds()),
			Spread: fmt.Sprintf("%.1f to %.1f ms of %d requests, one after another, %d more dropped", 1e3*took[0].Seconds(),
				1e3*took[len(took)-1].Seconds(), len(took), tries-len(took)),
			Verdict: "fail", Command: "make bank RUN=TestBankPages"}
		switch {
		case len(took) < times: // the machine did not let it
			row.Verdict = "inconclusive"
		case took[times-1] < 200*time.Millisecond:
			row.Verdict = "pass"
		case took[0] < 200*time.Millisecond:
			row.Verdict = "inconclusive"
		}
		record(t, row)
	}
}
