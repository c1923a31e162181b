//go:build linux

package hostile

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/server"
	"github.com/fullpipe-net/fullpipe/internal/socket"
)

// vanishing are clients whose host vanishes while they run; two of the three ways over the native protocol occupy a
// place of iperf3's too.
var vanishing = []string{"measure fullpipe://$FULLPIPE_FAR --udp --rate 1mbit -d down -t 300s",
	"measure fullpipe://$FULLPIPE_FAR --udp --rate 1mbit -d up -t 300s",
	"measure fullpipe://$FULLPIPE_FAR -d down --write-rate 1mbit -t 300s",
	"measure iperf3://$FULLPIPE_FAR --udp --rate 1mbit -d down -t 300s"}

// TestClientsThatVanish checks that a client whose host vanishes silently keeps neither its place nor a goroutine of
// the server. Each test asked for five minutes, so nothing but its silence ends it.
func TestClientsThatVanish(t *testing.T) {
	t.Parallel()
	program := harness.Program(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l, _ := harness.StartLab(t, "rate=20mbit,rtt=5ms,queue=2bdp")
	key := "FULLPIPE_KEY=" + probe.NewKey().String()
	var out, near bytes.Buffer
	far, err := l.Far.Start(lab.Command{Args: []string{self}, Env: []string{key, harness.ProgramVariable + "=vanish"},
		Stdout: &out,
		Stderr: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	l.Far.AwaitListener(t.Context(), far)
	script := "for line in '" + strings.Join(vanishing,
		"' '") + "'; do\n(exec >/dev/null 2>&1; eval exec $F $line) &\ndone\n" +
		"until test $(ss -Htn | wc -l) -ge 7 && test $(ss -Hun | wc -l) -ge 3; do sleep 0.05; done\n" +
		"until test $(awk '/lab0/ {print $3}' /proc/net/dev) -gt 500; do sleep 0.05; done\nip link set lab0 down"
	gone, err := l.Near.Start(lab.Command{Args: []string{"timeout", "40", "sh", "-euc", script},
		Env: []string{key, "F=" + program}, Stdout: &near, Stderr: &near})
	if err != nil {
		t.Fatal(err)
	}
	if status, err := gone.Wait(); err != nil || status != 0 {
		t.Fatalf("status %d, %v: %s", status, err, near.String())
	}
	if status, err := far.Wait(); err != nil || status != 0 {
		t.Fatalf("status %d, %v: %s", status, err, out.String())
	}
	var saw struct{ Before, After, Tests, Gone int }
	if err := json.Unmarshal(out.Bytes(), &saw); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	if saw.Tests != 3 || saw.Gone != 3 || saw.After > saw.Before {
		t.Errorf("%+v: 3 tests were to end, 3 clients to leave, and no goroutine to stay", saw)
	}
}

// vanishProgram serves until it has noticed all clients that vanish, or for a minute, and prints its counts.
func vanishProgram() error {
	key, err := probe.ParseKey(os.Getenv("FULLPIPE_KEY"))
	if err != nil {
		return err
	}
	const silence = 4 * time.Second
	var mu sync.Mutex // guards saw
	var saw struct{ Before, After, Tests, Gone int }
	count := func(counter *int) {
		mu.Lock()
		defer mu.Unlock()
		*counter++
	}
	clients := &iperf3.Server{UDP: true, UnreachableTimeout: silence, Report: func(iperf3.Report) { count(&saw.Tests) }}
	ctx := context.Background()
	s, err := server.New(ctx, server.Config{Address: ":5201", Key: key, AllowUnauthenticated: true,
		UnreachableTimeout: silence,
		Iperf3: func(ctx context.Context, conn *net.TCPConn, preface probe.Preface, order int64, keyed bool) {
			clients.Handle(ctx, conn, iperf3.Cookie(preface), order, keyed)
		}, Event: func(e server.Event) {
			if e.Kind == "gone" {
				count(&saw.Gone)
			}
		}})
	if err != nil {
		return err
	}
	flows, err := socket.ListenFlows(ctx, s.Addr().String())
	if err != nil {
		return err
	}
	go clients.ServeDatagrams(flows)
	go s.Serve(ctx)
	// Goroutines that the two start must not count as left over: wait until no more start.
	for same := 0; same < 20; time.Sleep(time.Millisecond) {
		n := runtime.NumGoroutine()
		if same++; n != saw.Before {
			same = 0
		}
		saw.Before = n
	}
	for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		mu.Lock()
		saw.After = runtime.NumGoroutine()
		over := saw.Tests >= 3 && saw.Gone >= 3 && saw.After <= saw.Before
		mu.Unlock()
		if over {
			break
		}
	}
	mu.Lock()
	defer mu.Unlock()
	return json.NewEncoder(os.Stdout).Encode(saw)
}
