//go:build linux

package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/stats"
)

// siege has the observations of one server at the far end of a lab.
type siege struct {
	with, without []float64 // goodput in bit/s, pair by pair
	admitted      []float64 // seconds from the first packet to the server's hello, among strangers
	refused       int       // clients with the key that were not admitted
	resident      []int     // the server's memory after each pair, KiB
	files         []int     // its descriptors, likewise
}

// soaked runs one server for the given time. In every other run all strangers of the corpus attack it from its own
// host, together on half a core, while a client with the key measures for four seconds over a link of 100 Mbit/s.
func soaked(t *testing.T, length time.Duration) (s siege) {
	l, _ := harness.StartLab(t, "rate=100mbit,rtt=20ms,queue=2bdp")
	program := harness.Program(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	key := "FULLPIPE_KEY=" + probe.NewKey().String()
	far, err := l.Far.Start(lab.Command{Args: []string{program, "serve", "--iperf3", "--quiet"}, Env: []string{key},
		Stderr: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	l.Far.AwaitListener(t.Context(), far)
	crowd := fmt.Sprintf("echo 0 > %s; exec %s strangers 127.0.0.1:5201 1000000000 100 300ms", slowedTo(t,
		0.5).ProcsFile(),
		harness.HostileProgram(t))
	run := func(hostile bool) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // ends a command that hangs
		defer cancel()
		if hostile {
			strangers, err := l.Far.Start(lab.Command{Args: []string{"sh", "-euc", crowd}, Stderr: os.Stderr})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				select {
				case <-strangers.Done():
					t.Error("the strangers had gone before the test was over")
				default:
				}
				strangers.Signal(os.Kill)
				strangers.Wait()
			}()
			var out bytes.Buffer
			status, err := runIn(ctx, l.Near, lab.Command{Args: []string{self},
				Env: []string{key, harness.ProgramVariable + "=admission"}, Stdout: &out, Stderr: os.Stderr})
			var took []float64
			if jerr := json.Unmarshal(out.Bytes(), &took); err != nil || status != 0 || jerr != nil {
				t.Fatalf("admissions: status %d, %v, %v: %s", status, err, jerr, out.String())
			}
			for _, seconds := range took {
				if seconds < 0 {
					s.refused++
				}
			}
			s.admitted = append(s.admitted, took...)
		}
		var out, problems bytes.Buffer
		status, err := runIn(ctx, l.Near, lab.Command{Args: []string{program, "measure", "fullpipe://" +
			lab.FarAddr.String(), "--json", "--no-history", "-t", "4s", "-d", "up"}, Env: []string{key}, Stdout: &out,
			Stderr: &problems})
		var doc struct{ Directions []harness.MeasuredTransfer }
		if jerr := json.Unmarshal(out.Bytes(), &doc); err != nil || status != 0 || jerr != nil || len(doc.Directions) != 1 {
			t.Errorf("measure: status %d, %v, %v: %s%s", status, err, jerr, out.String(), problems.String())
			return
		}
		if bps := doc.Directions[0].GoodputBps; hostile {
			s.with = append(s.with, bps)
		} else {
			s.without = append(s.without, bps)
		}
	}
	for until, pair := time.Now().Add(length), 0; time.Now().Before(until) && !t.Failed(); pair++ {
		alone(t, func() { run(pair%2 == 0); run(pair%2 == 1) })
		var out bytes.Buffer
		ask := fmt.Sprintf("awk '/VmRSS/ {print $2}' /proc/%d/status; ls /proc/%[1]d/fd | wc -l", far.PID)
		status, err := l.Far.Run(lab.Command{Args: []string{"sh", "-euc", ask}, Stdout: &out})
		var resident, files int
		if _, serr := fmt.Sscan(out.String(), &resident, &files); err != nil || status != 0 || serr != nil {
			t.Fatalf("the server's memory: status %d, %v, %v: %s", status, err, serr, out.String())
		}
		s.resident, s.files = append(s.resident, resident), append(s.files, files)
	}
	return s
}

// runIn is End.Run within a context.
func runIn(ctx context.Context, end *lab.End, c lab.Command) (int, error) {
	p, err := end.Start(c)
	if err != nil {
		return 0, err
	}
	defer context.AfterFunc(ctx, func() { p.Signal(os.Kill) })()
	return p.Wait()
}

// rows are the soak's claims. "Flat" compares the mean of the last fifth with that of the second.
func (s *siege) rows(length time.Duration) []bankRow {
	row := func(quantity, claim, measured, spread, verdict string) bankRow {
		return bankRow{Section: "Hostile far ends", Case: fmt.Sprintf("strangers for %v, %s", length, quantity), Claim: claim,
			Measured: measured, Spread: spread, Verdict: verdict, Command: "FULLPIPE_BANK_TIME=" + length.String() +
				" make bank RUN=TestBankHostile/soak"}
	}
	n := min(len(s.with), len(s.without))
	if n < 3 {
		return nil
	}
	soon := 0
	for _, seconds := range s.admitted {
		if seconds >= 0 && seconds <= 1 {
			soon++
		}
	}
	slices.Sort(s.admitted)
	gain := stats.Gain(s.without[:n], s.with[:n], 0.95)
	fifth := max(len(s.resident)/5, 1)
	mean := func(of []int) (sum float64) {
		for _, v := range of {
			sum += float64(v) / float64(len(of))
		}
		return sum
	}
	early, late := mean(s.resident[fifth:min(2*fifth+1, len(s.resident))]), mean(s.resident[len(s.resident)-fifth:])
	return []bankRow{
		row("admission", "99 % of clients with the key are admitted within 1 s", fmt.Sprintf("%d of %d, median %.3g s", soon,
			len(s.admitted), stats.Median(s.admitted)), fmt.Sprintf("%.3g s at most, %d refused",
			s.admitted[len(s.admitted)-1], s.refused), passed(float64(soon) >= 0.99*float64(len(s.admitted)))),
		row("goodput", "a test loses 2 % at most, in pairs with and without", fmt.Sprintf("%+.2f %% (%.4g against %.4g "+
			"Mbit/s)", 100*(gain.Mid-1), stats.Median(s.with)/1e6, stats.Median(s.without)/1e6),
			fmt.Sprintf("%+.2f to %+.2f %% (95 %%, %d pairs)", 100*(gain.Low-1), 100*(gain.High-1), n),
			byInterval(gain.Low > 0.98, gain.Low > 0.98 || gain.High <= 0.98)),
		row("memory", "bounded and flat", fmt.Sprintf("%.1f MiB early, %.1f MiB late", early/1024, late/1024),
			fmt.Sprintf("%.1f MiB at most; %d to %d descriptors", float64(slices.Max(s.resident))/1024,
				slices.Min(s.files), slices.Max(s.files)), passed(late < 1.1*early+4096 && slices.Max(s.resident) < 256<<10)),
	}
}

// admissionProgram connects several times with the key and prints the seconds for each, or -1 if it was not admitted.
func admissionProgram() error {
	key, err := probe.ParseKey(os.Getenv("FULLPIPE_KEY"))
	if err != nil {
		return err
	}
	var took []float64
	for range 5 {
		began := time.Now()
		c, err := probe.Connect(context.Background(), net.JoinHostPort(os.Getenv("FULLPIPE_FAR"), "5201"), key)
		if err != nil || c.Hello().Busy {
			fmt.Fprintln(os.Stderr, "not admitted:", err)
			took = append(took, -1)
			continue
		}
		took = append(took, time.Since(began).Seconds())
		c.Close()
	}
	return json.NewEncoder(os.Stdout).Encode(took)
}
