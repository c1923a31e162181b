package web

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestLive follows the live view with several clients: one watch serves them and stops after the last.
func TestLive(t *testing.T) {
	var watches, ended atomic.Int32
	period := make(chan float64)
	s, _, _ := newTestServer(t, Config{Viewer: "viewer's token", Ours: func(*http.Request) bool { return true },
		Watch: func(ctx context.Context, each func(*record.Watch)) error {
			watches.Add(1)
			defer ended.Add(1)
			for {
				select {
				case <-ctx.Done():
					return nil
				case at := <-period:
					if at < 0 {
						return errors.New("the kernel fell silent")
					}
					each(&record.Watch{AtS: at, Connections: []record.WatchedConnection{{Program: "a\nb"}}})
				}
			}
		}})
	testenv.NoGoroutineLeft(t)
	site := httptest.NewServer(s)
	defer site.Close()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // no idle connections at the check
	follow := func() (next func() string, leave func()) {
		ctx, stop := context.WithCancel(t.Context())
		r := must.Get(http.NewRequestWithContext(ctx, "GET", site.URL+"/api/v1/live", nil))(t)
		r.Header.Set("Authorization", "Bearer viewer's token")
		answer, err := client.Do(r)
		if err != nil || answer.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatal(answer, err)
		}
		lines := bufio.NewScanner(answer.Body)
		return func() string {
				for lines.Scan() {
					if strings.HasPrefix(lines.Text(), "data: ") && lines.Text() != "data: {}" {
						return lines.Text()
					}
				}
				return "end"
			}, func() {
				stop()
				answer.Body.Close()
			}
	}
	one, leaveOne := follow()
	period <- 1
	if line := one(); !strings.Contains(line, `"at_s":1,`) || !strings.Contains(line, `a\nb`) {
		t.Error(line)
	}
	two, leaveTwo := follow()
	if line := two(); !strings.Contains(line, `"at_s":1,`) {
		t.Errorf("the second client begins with %s", line)
	}
	period <- 2
	if a, b := one(), two(); a != b || !strings.Contains(a, `"at_s":2,`) || watches.Load() != 1 {
		t.Errorf("%s and %s, %d watches", a, b, watches.Load())
	}
	period <- -1
	if line := one(); !strings.Contains(line, "the kernel fell silent") {
		t.Error(line)
	}
	leaveOne()
	leaveTwo()
	three, leaveThree := follow()
	period <- 3
	if line := three(); !strings.Contains(line, `"at_s":3,`) || watches.Load() != 2 {
		t.Errorf("after the end: %s, %d watches", line, watches.Load())
	}
	leaveThree()
	site.Close()
	s.Close()
	if watches.Load() != ended.Load() {
		t.Errorf("%d watches, %d ended", watches.Load(), ended.Load())
	}
}

// TestLive_OutlastsReadTimeout checks that the read timeout of a request does not end the stream.
func TestLive_OutlastsReadTimeout(t *testing.T) {
	period, ended := make(chan float64), make(chan struct{})
	s, _, _ := newTestServer(t, Config{Viewer: "viewer's token", Ours: func(*http.Request) bool { return true },
		Watch: func(ctx context.Context, each func(*record.Watch)) error {
			defer close(ended)
			for {
				select {
				case <-ctx.Done():
					return nil
				case at := <-period:
					each(&record.Watch{AtS: at})
				}
			}
		}})
	site := httptest.NewUnstartedServer(s)
	site.Config.ReadTimeout = 50 * time.Millisecond
	site.Start()
	defer site.Close()
	r := must.Get(http.NewRequest("GET", site.URL+"/api/v1/live", nil))(t)
	r.Header.Set("Authorization", "Bearer viewer's token")
	answer := must.Get(site.Client().Do(r))(t)
	defer answer.Body.Close()
	select {
	case <-ended:
		t.Error("the stream ended with the read timeout")
	case <-time.After(10 * site.Config.ReadTimeout):
		period <- 1
	}
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() && !strings.Contains(lines.Text(), `"at_s":1`) {
	}
	if lines.Err() != nil || lines.Text() == "" {
		t.Errorf("nothing came of it: %v", lines.Err())
	}
}
