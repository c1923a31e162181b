package main

import (
	"errors"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/watch"
)

func TestScrapes(t *testing.T) {
	l, err := listenForScrapes("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &exporter{metrics: watch.NewMetrics()}
	stop := e.serve(l)
	defer stop()
	c := &watch.Connection{Owner: watch.Owner{Program: "rsync"}}
	c.Local, c.Remote = netip.MustParseAddrPort("10.0.0.1:40000"), netip.MustParseAddrPort("192.0.2.7:22")
	e.add(&watch.View{Length: time.Second,
		Seen: []watch.Seen{{Connection: c, Flows: []watch.Flow{{Direction: transfer.Up, Bytes: 1234,
			Verdict: verdict.Verdict{Shares: verdict.Shares{verdict.Bottleneck: 1}}}}}}})
	for _, accept := range []string{"", "application/openmetrics-text; version=1.0.0"} {
		request, err := http.NewRequest(http.MethodGet, "http://"+l.Addr().String()+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept", accept)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		open := strings.HasSuffix(string(text), "# EOF\n")
		if err != nil || answer.StatusCode != http.StatusOK || open != (accept != "") ||
			strings.HasPrefix(answer.Header.Get("Content-Type"), "application/openmetrics-text") != open ||
			!strings.Contains(string(text), `sent_bytes_total{group="rsync 192.0.2.0/24 22"} 1234`) {
			t.Errorf("%q: %v, %s, %v\n%s", accept, answer.Status, answer.Header, err, text)
		}
	}
}

func TestScrapesAreForThisHostAlone(t *testing.T) {
	for _, address := range []string{"0.0.0.0:9909", ":9909", "[::]:9909", "192.0.2.1:9909", "localhost", "127.0.0.1"} {
		var usage *usageError
		if l, err := listenForScrapes(address); !errors.As(err, &usage) {
			t.Errorf("%s: %v, %v", address, l, err)
		}
	}
}
