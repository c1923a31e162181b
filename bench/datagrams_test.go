//go:build linux

package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// datagramRun is one UDP run of a client and a server program.
type datagramRun struct {
	received int64
	seconds  float64
	loss     float64
	cpu      time.Duration // both programs'
}

func (r datagramRun) rate() float64 { return float64(r.received) / r.seconds }

// cost returns the CPU time per million datagrams received.
func (r datagramRun) cost() float64 { return r.cpu.Seconds() / float64(r.received) * 1e6 }

func usedBy(cmds ...*exec.Cmd) (sum time.Duration) {
	for _, c := range cmds {
		if c.ProcessState != nil {
			sum += c.ProcessState.UserTime() + c.ProcessState.SystemTime()
		}
	}
	return sum
}

func runDatagrams(t *testing.T, server, client *exec.Cmd, read func([]byte) datagramRun) datagramRun {
	t.Helper()
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond) // a fixed pause for both kinds of server
	out, err := client.Output()
	server.Process.Signal(syscall.SIGINT)
	server.Wait()
	if err != nil {
		t.Fatalf("%v: %v: %s", client.Args, err, out)
	}
	r := read(out)
	r.cpu = usedBy(server, client)
	return r
}

// theirDatagrams runs iperf3 at both ends once; ourDatagrams does the same with fullpipe.
func theirDatagrams(t *testing.T, ctx context.Context, port, rate, seconds string) datagramRun {
	its := testenv.Program(t, testenv.Iperf3)
	return runDatagrams(t, exec.CommandContext(ctx, its, "-s", "-p", port), exec.CommandContext(ctx, its, "-c",
		"127.0.0.1", "-p", port, "-u", "-b", rate,
		"-l", "1448", "-t", seconds, "-J"), func(out []byte) datagramRun {
		var doc struct {
			End struct {
				Sum struct {
					Seconds float64
					Packets int64
					Lost    int64 `json:"lost_packets"`
				}
			}
		}
		if err := json.Unmarshal(out, &doc); err != nil {
			t.Fatal(err)
		}
		s := doc.End.Sum
		return datagramRun{received: s.Packets - s.Lost, seconds: s.Seconds, loss: float64(s.Lost) / float64(s.Packets)}
	})
}

func ourDatagrams(t *testing.T, ctx context.Context, port, rate, seconds string) datagramRun {
	ours := harness.Program(t)
	return runDatagrams(t, exec.CommandContext(ctx, ours, "serve", "--iperf3", "--quiet", "--listen", "127.0.0.1:"+port),
		exec.CommandContext(ctx, ours, "measure", "iperf3://127.0.0.1:"+port, "--udp", "--rate", rate, "-t", seconds+"s",
			"--json"), func(out []byte) datagramRun {
			var doc struct {
				Directions []struct {
					Received int64   `json:"received_datagrams"`
					Seconds  float64 `json:"duration_s"`
					Loss     float64 `json:"loss_ratio"`
				}
			}
			if err := json.Unmarshal(out, &doc); err != nil || len(doc.Directions) != 1 {
				t.Fatalf("%v: %s", err, out)
			}
			d := doc.Directions[0]
			return datagramRun{received: d.Received, seconds: d.Seconds, loss: d.Loss}
		})
}

// TestBankDatagrams sends at equal rates with iperf3 and fullpipe in turn. It takes four minutes.
func TestBankDatagrams(t *testing.T) {
	bankOnly(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	const port, seconds = "5391", "5"
	for _, c := range []struct{ name, its, ours string }{
		{"100 Mbit/s of 1448 bytes", "100M", "100mbit"}, {"1 Gbit/s of 1448 bytes", "1G", "1gbit"},
		{"as fast as it goes, 1448 bytes", "0", "0"},
	} {
		const enough, dearer = 0.99, 1.02
		var rates, costs, losses [2][]float64 // iperf3's, ours
		faster := func() (ratio stats.Interval, verdict string) {
			ratio = stats.Gain(rates[0], rates[1], 0.95)
			return ratio, byInterval(ratio.Low >= enough, ratio.Low >= enough || ratio.High < enough)
		}
		cheaper := func() (ratio stats.Interval, verdict string) {
			ratio = stats.Gain(costs[0], costs[1], 0.95)
			return ratio, byInterval(ratio.High <= dearer, ratio.High <= dearer || ratio.Low > dearer)
		}
		runs := exact{want: 6, crowded: true, open: func() bool {
			_, rate := faster()
			_, cost := cheaper()
			return rate == "inconclusive" || cost == "inconclusive"
		}}
		for runs.more() {
			alone(t, func() {
				for i, r := range []datagramRun{theirDatagrams(t, ctx, port, c.its, seconds), ourDatagrams(t, ctx, port, c.ours,
					seconds)} {
					rates[i], costs[i], losses[i] = append(rates[i], r.rate()), append(costs[i], r.cost()),
						append(losses[i], 100*r.loss)
				}
			})
			runs.keep(onTime)
		}
		row := func(claim, measured string, ratio stats.Interval, verdict string) {
			record(t, bankRow{Section: "UDP against iperf3 3.12, loopback", Case: c.name, Claim: claim, Measured: measured,
				Spread: fmt.Sprintf("%d pairs in turn; %.3f times iperf3's, 95 %%: %.3f to %.3f", len(rates[0]), ratio.Mid,
					ratio.Low, ratio.High), Verdict: verdict,
				Command: "fullpipe measure iperf3://HOST --udp --rate " + c.ours + "; iperf3 -u -l 1448 -b " + c.its})
		}
		ratio, verdict := faster()
		row("at least iperf3's datagrams a second (99 %)", fmt.Sprintf("%.0f a second, %.2g %% lost (median; at most %.2g "+
			"%%); iperf3 %.0f, %.2g %% (%.2g %%)",
			median(rates[1]), median(losses[1]), slices.Max(losses[1]), median(rates[0]), median(losses[0]),
			slices.Max(losses[0])), ratio, verdict)
		ratio, verdict = cheaper()
		row("at no more CPU for each datagram received (102 %)", fmt.Sprintf("%.2f s of CPU a million, both ends; iperf3 "+
			"%.2f s", median(costs[1]), median(costs[0])), ratio, verdict)
	}
}
